import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { DeniedFileFinder } from "../../src/permissions/denied-files.ts";
import { type Policy, policyWith } from "../../src/permissions/policy.ts";
import { missingSandbox, ShellContainment } from "../../src/runtime/permissions/containment.ts";
import { policyOf } from "../../src/runtime/permissions/policy.ts";
import { sandboxSource } from "../../src/runtime/permissions/shells.ts";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import { onStage } from "../features/stage.ts";
import { hasBubblewrap } from "../shell/bubblewrap.ts";

const withBubblewrap = await hasBubblewrap();

function policyIn(root: string, ...denyTools: string[]): Policy {
  return policyOf({ denyTools }, { roots: [root], stateRoot: join(root, "state"), writable: [] });
}

function contain(folder: TempFolder, policy: Policy, mode: "auto" | "off" = "auto", candidates?: readonly string[]) {
  const environment = { TROUPE_SANDBOX: mode };
  const source = sandboxSource({ environment, stateRoot: folder.at("state"), disk: nodeDisk });
  const [cwd = ""] = policy.roots;
  return new ShellContainment({
    ...{ policy, cwd, mode, network: false },
    async sandbox() {
      const { createSandbox } = await import("../../src/tools/shell/sandbox/sandbox.ts");
      if (candidates) return createSandbox({ mode: "auto", stateRoot: folder.at("state"), candidates });
      return source.get(false);
    },
  });
}

const place = (cwd: string) => ({ workspace: [cwd], cwd, ownTerminal: false, detached: false });

describe("files that rules deny to read", () => {
  it("denied files are found below every allowed folder, in any case, through links, and after a change", async () => {
    await using folder = await tempFolder({
      "work/secret.txt": "",
      "work/a/SECRET.TXT": "",
      "work/a/other.txt": "",
      "work/node_modules/x/secret.txt": "",
      "work/.git/secret.txt": "",
      "work/keys/deep/one": "",
      "elsewhere/target": "",
    });
    const at = (name: string): string => folder.at(`work/${name}`);
    mkdirSync(at("b"));
    symlinkSync(folder.at("elsewhere/target"), at("b/secret.txt"));
    const finder = new DeniedFileFinder(
      policyIn(folder.at("work"), "read(secret.txt)", `read(${at("keys")})`),
      at("a"),
    );
    const first = await finder.find();
    const expected = [at("secret.txt"), at("a/SECRET.TXT"), at("node_modules/x/secret.txt"), at("keys")];
    expect([...first.paths].sort()).toEqual([...expected, folder.at("elsewhere/target")].sort());
    expect(first.complete).toBe(true);
    await folder.files({ "work/new/secret.txt": "", "work/a/deep/secret.txt": "" });
    expect((await finder.find()).paths).toEqual(
      expect.arrayContaining([at("new/secret.txt"), at("a/deep/secret.txt")]),
    );
  });

  it.each([["read(work)"], ["read"]])(
    "denied files are not searched for where a rule denies everything: %s",
    async (rule) => {
      await using folder = await tempFolder({ "work/a": "" });
      const found = await new DeniedFileFinder(policyIn(folder.at("work"), rule), folder.at("work")).find();
      expect(found.complete).toBe(false);
      expect(found.paths).toEqual([]);
    },
  );

  it("denied files are reported as incomplete when a name on the way is not valid UTF-8", async () => {
    await using folder = await tempFolder({ "work/a.txt": "", "work/sub/b.txt": "" });
    const inside = Buffer.from(`${folder.at("work/sub")}/d`);
    const odd = (name: string, end: string): Buffer =>
      Buffer.concat([inside, Buffer.from([0xff]), Buffer.from(name + end)]);
    const find = () => new DeniedFileFinder(policyIn(folder.at("work"), "read(*.pem)"), folder.at("work")).find();
    writeFileSync(odd("plain", ".txt"), "");
    expect(await find()).toMatchObject({ paths: [], complete: true });
    writeFileSync(odd("key", ".pem"), "");
    expect(await find()).toMatchObject({ complete: false });
    rmSync(odd("key", ".pem"));
    mkdirSync(odd("folder", ""));
    expect(await find()).toMatchObject({ complete: false });
  });

  it.runIf(process.getuid?.() !== 0)(
    "denied files include a folder of the user as a whole when it cannot be listed",
    async () => {
      await using folder = await tempFolder({ "work/locked/secret.txt": "", "work/passed/secret.txt": "" });
      const [locked, passed] = [folder.at("work/locked"), folder.at("work/passed")];
      chmodSync(locked, 0o000);
      chmodSync(passed, 0o600);
      const finder = new DeniedFileFinder(policyIn(folder.at("work"), "read(secret.txt)"), folder.at("work"));
      const { paths } = await finder.find();
      for (const path of [locked, passed]) chmodSync(path, 0o700);
      expect([...paths].sort()).toEqual([locked, passed]);
    },
  );

  it("denied files never include the working folder, whatever a link of that name leads to", async () => {
    await using folder = await tempFolder({ "work/a": "" });
    symlinkSync("..", folder.at("work/secret"));
    const found = await new DeniedFileFinder(policyIn(folder.at("work"), "read(secret)"), folder.at("work")).find();
    expect(found).toMatchObject({ paths: [], complete: false });
  });

  it("denied files of the session are hidden from agents in other folders too", async () => {
    await using folder = await tempFolder({ "work/secret.txt": "", "tree/secret.txt": "" });
    const outer = policyIn(folder.at("work"), "read(secret.txt)");
    const inner = policyWith(outer, { containment: contain(folder, outer), roots: [folder.at("tree")] });
    const { paths } = await contain(folder, inner).files();
    expect([...paths].sort()).toEqual([folder.at("tree/secret.txt"), folder.at("work/secret.txt")]);
  });
});

describe("denials that the sandbox enforces", () => {
  const denyTools = ["read(secret.txt)", "write(a)", "url(example.com)"];
  const held = async (containment: ShellContainment, policy: Policy, command = {}) => {
    const enforced = await containment.enforced(command);
    return policy.rules.filter(enforced).map(({ text }) => text);
  };

  it.skipIf(!withBubblewrap)(
    "sandbox denials cover reading and network, but not changes, and no command outside of the sandbox",
    async () => {
      await using folder = await tempFolder({ "work/secret.txt": "" });
      const policy = policyIn(folder.at("work"), ...denyTools);
      const containment = contain(folder, policy);
      expect(await held(containment, policy)).toEqual(["read(secret.txt)", "url(example.com)"]);
      expect(await held(containment, policy, { unsandboxed: true })).toEqual([]);
      expect(await held(contain(folder, policy, "off"), policy)).toEqual([]);
      expect(await held(contain(folder, policy, "auto", []), policy)).toEqual([]);
    },
  );

  it.skipIf(!withBubblewrap)(
    "sandbox denials do not apply to a shell that was started before the file existed",
    async () => {
      await using folder = await tempFolder({ "work/secret.txt": "" });
      const policy = policyIn(folder.at("work"), "read(secret.txt)");
      const containment = contain(folder, policy);
      const prepared = await (await containment.sandbox()).prepare(place(folder.at("work")));
      expect(prepared.kind).toBe("sandboxed");
      expect(await held(containment, policy, { shellId: "1" })).toEqual(["read(secret.txt)"]);
      await folder.files({ "work/later/secret.txt": "" });
      expect(await held(containment, policy, { shellId: "1" })).toEqual([]);
      expect(await held(containment, policy)).toEqual(["read(secret.txt)"]);
      if (prepared.kind === "sandboxed") await prepared.release();
    },
  );

  it.skipIf(!withBubblewrap)("sandbox denials stop the command when not all files can be hidden", async () => {
    await using folder = await tempFolder({ "work/secret.txt": "" });
    const policy = policyIn(folder.at("work"), "read(secret.txt)");
    const containment = contain(folder, policy);
    await containment.enforced({});
    symlinkSync("..", folder.at("work/a-link"));
    mkdirSync(folder.at("work/x"));
    symlinkSync("../..", folder.at("work/x/secret.txt"));
    await expect((await containment.sandbox()).prepare(place(folder.at("work")))).rejects.toThrow(/Nothing was run/);
  });

  it("sandbox denials are reported as weaker without a sandbox, with the reason", async () => {
    await using folder = await tempFolder({ "work/a": "" });
    writeFileSync(folder.at("work/b"), "");
    const policy = policyIn(folder.at("work"));
    const prepared = await (await contain(folder, policy, "auto", []).sandbox()).prepare(place(folder.at("work")));
    expect(prepared).toMatchObject({ kind: "plain" });
    const warning = prepared.kind === "plain" ? prepared.warning : "";
    if (missingSandbox("auto") === undefined) {
      for (const part of ["credentials", ".env", "protected files", "network", "Unix sockets"]) {
        expect(warning).toContain(part);
      }
    }
    expect(missingSandbox("off")).toBeUndefined();
  });
});

describe("commands that are permitted because the sandbox confines them", () => {
  it.skipIf(!withBubblewrap)(
    "confined commands run without a rule, read-only, and start no program of the repository",
    async () => {
      const look = calls(["bash", { command: "ls && git status --short" }]);
      const write = calls(["bash", { command: "touch made" }]);
      const named = calls(["bash", { command: "ls", shellId: "one" }]);
      await onStage(
        [look, write, named, says("seen")],
        { permissions: {}, environment: { TROUPE_SANDBOX: "auto" }, files: { "a.txt": "one" } },
        async ({ session, folder, heard }) => {
          execFileSync("git", ["init", "-q"], { cwd: folder });
          execFileSync("git", ["config", "core.fsmonitor", "touch fsmonitor-ran; false"], { cwd: folder });
          await session.sendAndWait({ prompt: "look" });
          const ends = heard.flatMap(({ type, data }) => (type === "tool.execution_complete" ? [data] : []));
          expect(ends.map(({ success }) => success)).toEqual([true, false, false]);
          expect(ends[0]?.result?.content).toContain("?? a.txt");
          const decisions = heard.flatMap(({ type, data }) => (type === "troupe.permission" ? [data] : []));
          expect(decisions.map(({ decision, by }) => `${decision} ${by}`)).toEqual([
            "allowed default",
            "denied nobody_to_ask",
            "denied nobody_to_ask",
          ]);
          expect([existsSync(join(folder, "fsmonitor-ran")), existsSync(join(folder, "made"))]).toEqual([false, false]);
        },
      );
    },
  );

  it("confined commands are denied without a rule when the sandbox is off or a client decides about reads", async () => {
    const look = calls(["bash", { command: "ls" }]);
    for (const [mode, askReads] of [
      ["off", false],
      ["auto", true],
    ] as const) {
      const how = { permissions: { askReads }, environment: { TROUPE_SANDBOX: mode } };
      await onStage([look, says("seen")], how, async ({ session, heard }) => {
        await session.sendAndWait({ prompt: "look" });
        const ends = heard.flatMap(({ type, data }) => (type === "tool.execution_complete" ? [data.success] : []));
        expect({ mode, ends }).toEqual({ mode, ends: [false] });
      });
    }
  });

  it("confined commands never run without a sandbox", async () => {
    await using folder = await tempFolder({ "work/a": "" });
    const { createSandbox } = await import("../../src/tools/shell/sandbox/sandbox.ts");
    for (const mode of ["auto", "off"] as const) {
      const sandbox = createSandbox({ mode, stateRoot: folder.at("state"), candidates: [] });
      await expect(sandbox.prepare({ ...place(folder.at("work")), required: true })).rejects.toThrow("Nothing was run");
    }
  });
});
