/** What a person can set about the sandbox. */
import { spawnSync } from "node:child_process";
import { chmodSync } from "node:fs";
import { beforeEach, describe, expect, it } from "vitest";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import { createSandbox } from "../../src/tools/shell/sandbox/sandbox.ts";
import { hasBubblewrap } from "./bubblewrap.ts";
import { shellStage } from "./stage.ts";

const works = await hasBubblewrap();
const CANARY = "canary-77aa";

let home: TempFolder;

beforeEach(async () => {
  home = await tempFolder();
  return () => home.remove();
});

describe.runIf(works)("settings of the sandbox", () => {
  it("sandbox settings hide denied files and folders, in the workspace and in writable folders", async () => {
    await home.files({ "shared/keys/a": CANARY, "shared/open": "open" });
    const options = { writable: [home.at("shared")], denied: [home.at("shared/keys")] };
    await using stage = await shellStage({ sandboxed: options });
    const { output } = await stage.run(
      `ls -A '${home.at("shared/keys")}'; cat '${home.at("shared/open")}'; echo changed > '${home.at("shared/open")}'`,
    );
    expect([output, await home.read("shared/open")]).toEqual(["open", "changed\n"]);
    await stage.workspace.files({ "data/secret.pem": CANARY });
    await using other = await shellStage({ sandboxed: { denied: [stage.workspace.at("data/secret.pem")] } });
    const { path: cwd } = stage.workspace;
    const reply = await other.run("cat data/secret.pem; rm -f data/secret.pem", { cwd, roots: [cwd] });
    expect(reply.output).not.toContain(CANARY);
    expect(await stage.workspace.read("data/secret.pem")).toBe(CANARY);
  });

  it("sandbox settings show a program in a temporary folder, and nothing else of that folder", async () => {
    await using installed = await tempFolder({ "app/tool": "from the tool", secret: CANARY });
    await using workspace = await tempFolder();
    await using state = await tempFolder();
    const sandbox = createSandbox({ mode: "required", stateRoot: state.path });
    const place = { workspace: [workspace.path], cwd: workspace.path, ownTerminal: false, detached: false };
    const prepared = await sandbox.prepare({ ...place, readable: [installed.at("app")] });
    if (prepared.kind !== "sandboxed") throw new Error("no sandbox");
    const command = `cat '${installed.at("app/tool")}' '${installed.at("secret")}' 2>/dev/null; echo x > '${installed.at("app/tool")}'`;
    const [program = "", ...rest] = [...prepared.launcher, "bash", "-c", command];
    const { stdout } = spawnSync(program, rest, { encoding: "utf8" });
    await prepared.release();
    await sandbox.close();
    expect([stdout, await installed.read("app/tool")]).toEqual(["from the tool", "from the tool"]);
  });

  it("sandbox settings hide the home folder under the strict profile, except tools", async () => {
    await home.files({
      "letters/draft.txt": CANARY,
      ".cargo/credentials.toml": CANARY,
      ".cargo/bin/tool": "#!/bin/sh\necho from the tool\n",
    });
    chmodSync(home.at(".cargo/bin/tool"), 0o755);
    const command = `cat '${home.path}'/letters/* '${home.path}'/.cargo/cred*; '${home.path}/.cargo/bin/tool'; ls -A '${home.path}'; echo x > '${home.path}/.cargo/bin/tool'`;
    await using strict = await shellStage({ sandboxed: { home: home.path, profile: "strict" } });
    const hidden = await strict.run(command);
    expect(hidden.output).not.toContain(CANARY);
    expect(hidden.output).toContain("from the tool\n.cargo\n");
    expect(await home.read(".cargo/bin/tool")).toContain("from the tool");
    expect((await strict.run("echo mine > made; cat made")).output).toBe("mine\n");
  });
});
