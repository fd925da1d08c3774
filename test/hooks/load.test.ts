import { chmod, mkdir, symlink } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { type LoadOptions, loadHooks, programHook } from "../../src/hooks/load.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { bashCall, hookStage } from "./stage.ts";

const ownerId = process.getuid?.() ?? 0;
const hook = (name: string) => JSON.stringify({ version: 1, hooks: { sessionStart: [{ bash: name }] } });
const shown = ({ definitions }: { definitions: readonly { pinned: { shown: string } }[] }) =>
  definitions.map(({ pinned }) => pinned.shown.replace("sessionStart: ", ""));

type Folder = Awaited<ReturnType<typeof tempFolder>>;
const load = (folder: Folder, more: Partial<LoadOptions> = {}) =>
  loadHooks({
    stateRoot: folder.at("state"),
    projectRoots: [folder.at("project")],
    plugins: [
      { root: folder.at("plugins/one"), data: folder.at("data/one"), owner: "user" },
      { root: folder.at("plugins/two"), data: folder.at("data/two"), owner: "project" },
    ],
    policy: { folders: [folder.at("etc/troupe"), folder.at("etc/copilot")], ownerId },
    environment: {},
    ...more,
  });

const everywhere = {
  "etc/troupe/b.json": hook("policy b"),
  "etc/troupe/a.json": hook("policy a"),
  "etc/copilot/c.json": hook("policy c"),
  "state/hooks/user.json": hook("user"),
  "project/.troupe/hooks/own.json": hook("project own"),
  "project/.github/hooks/github.json": hook("project github"),
  "project/.claude/settings.json": JSON.stringify({
    permissions: {},
    hooks: { SessionStart: [{ matcher: "startup", hooks: [{ type: "command", command: "project claude" }] }] },
  }),
  "project/.claude/settings.local.json": hook("project local"),
  "plugins/one/hooks.json": hook("plugin one"),
  "plugins/one/hooks/hooks.json": hook("not read"),
  "plugins/two/hooks/hooks.json": hook("plugin two"),
};

describe("the search for hooks", () => {
  it("the search for hooks covers every location, in the order in which they run, with their owners", async () => {
    await using folder = await tempFolder(everywhere);
    const loaded = await load(folder, {
      settings: [
        { file: "settings.json", scope: "user", hooks: { sessionStart: [{ bash: "user settings" }] } },
        { file: ".troupe/settings.json", scope: "project", hooks: { sessionStart: [{ bash: "project settings" }] } },
      ],
      program: [programHook({ point: "sessionStart", run: () => undefined })],
    });
    expect(loaded.notices).toEqual([]);
    expect(
      loaded.definitions.map(({ pinned, source }) => [
        pinned.shown.replace(/^[^:]+: /, ""),
        source.scope,
        source.owner,
      ]),
    ).toEqual([
      ["policy a", "policy", "user"],
      ["policy b", "policy", "user"],
      ["policy c", "policy", "user"],
      ["user", "user", "user"],
      ["user settings", "user", "user"],
      ["project own", "project", "project"],
      ["project github", "project", "project"],
      ["project claude", "project", "project"],
      ["project local", "project", "project"],
      ["project settings", "project", "project"],
      ["plugin one", "plugin", "user"],
      ["plugin two", "plugin", "project"],
      ["a function of the program", "program", "user"],
    ]);
    expect(loaded.definitions.find(({ source }) => source.scope === "plugin")?.source.plugin).toEqual({
      root: folder.at("plugins/one"),
      data: folder.at("data/one"),
    });
  });

  it("the search for hooks finds none when there is nothing, or a folder in the place of a file", async () => {
    await using folder = await tempFolder({ "project/.troupe": "a file", "state/hooks/x.json/y": "" });
    await mkdir(folder.at("project/.claude/settings.json"), { recursive: true });
    expect(await load(folder)).toEqual({ definitions: [], notices: [] });
  });

  it("the search for hooks follows no links out of a project, but all links of the user", async () => {
    await using folder = await tempFolder({ "outside/x.json": hook("linked"), "project/.github/a": "", "state/a": "" });
    await symlink(folder.at("outside"), folder.at("project/.github/hooks"));
    await mkdir(folder.at("project/.troupe/hooks"), { recursive: true });
    await symlink(folder.at("outside/x.json"), folder.at("project/.troupe/hooks/x.json"));
    await symlink(folder.at("outside"), folder.at("state/hooks"));
    const loaded = await load(folder);
    expect(shown(loaded)).toEqual(["linked"]);
    expect(loaded.definitions[0]?.source.scope).toBe("user");
    expect(loaded.notices).toHaveLength(2);
  });

  it("the search for hooks reads up to 100 files of at most 256 KiB, and a broken file does not affect others", async () => {
    const many = Array.from({ length: 105 }, (_, index) => [`state/hooks/${1000 + index}.json`, hook(`${index}`)]);
    await using folder = await tempFolder({
      ...Object.fromEntries(many),
      "state/hooks/0000.json": " ".repeat(256 * 1024 + 1),
      "state/hooks/0001.json": "{",
      "state/hooks/.hidden.json": hook("hidden"),
      "state/hooks/readme.md": "hello",
    });
    const loaded = await load(folder);
    expect(loaded.definitions).toHaveLength(99);
    const said = loaded.notices.map(({ message }) => message).join("\n");
    expect(said).toContain("262145 bytes");
    expect(said).toContain("not JSON");
    expect(said).toContain("more than 100 files");
  });
});

describe("a policy of hooks", () => {
  it("a hook policy is used only if no other user can write it", async () => {
    await using folder = await tempFolder(everywhere);
    await chmod(folder.at("etc/troupe/a.json"), 0o620);
    await chmod(folder.at("etc/copilot"), 0o777);
    const loaded = await load(folder);
    expect(shown(loaded).filter((name) => name.startsWith("policy"))).toEqual(["policy b"]);
    expect(loaded.notices.map(({ message }) => message)).toEqual([
      "a.json is not used: users other than its owner can write it",
      "copilot is not used: users other than its owner can write it",
    ]);
  });

  it("a hook policy is not used when another user owns it", async () => {
    await using folder = await tempFolder({ "etc/troupe/a.json": hook("policy") });
    const loaded = await load(folder, { policy: { folders: [folder.at("etc/troupe")], ownerId: ownerId + 1 } });
    expect(loaded.definitions).toEqual([]);
    expect(loaded.notices[0]?.message).toBe("troupe is not used: it does not belong to the administrator");
  });
});

describe("disabling hooks", () => {
  it("disableAllHooks of a user keeps policy, of a project the user's hooks, and of a file all other files", async () => {
    await using folder = await tempFolder(everywhere);
    const off = (scope: "user" | "project") =>
      load(folder, { settings: [{ file: "s", scope, disableAllHooks: true }] });
    expect(shown(await off("user"))).toEqual(["policy a", "policy b", "policy c"]);
    expect(shown(await off("project"))).toEqual(["policy a", "policy b", "policy c", "user", "plugin one"]);
    await folder.files({
      "state/hooks/user.json": JSON.stringify({ disableAllHooks: true, ...JSON.parse(hook("x")) }),
    });
    expect(shown(await load(folder))).toHaveLength(9);
  });
});

describe("troupe started by a hook", () => {
  it("troupe started by a hook runs only hooks that decide, and is refused beyond a depth", async () => {
    const guard = JSON.stringify({
      hooks: { preToolUse: [{ bash: "guard" }], sessionStart: [{ bash: "troupe -p x" }] },
    });
    await using folder = await tempFolder({ "state/hooks/a.json": guard });
    const inside = await load(folder, { environment: { TROUPE_HOOK_DEPTH: "1" } });
    expect(inside.definitions.map(({ point }) => point)).toEqual(["preToolUse"]);
    expect(inside.notices[0]?.message).toBe("1 hook not used: this troupe was started by a hook");
    await expect(load(folder, { environment: { TROUPE_HOOK_DEPTH: "4" } })).rejects.toThrow(
      "recursively, 4 levels deep",
    );
  });

  it("troupe started by a hook is recognised by a variable that the hook received", async () => {
    await using folder = await tempFolder();
    const { hooks } = hookStage(
      (
        await load(folder, {
          settings: [
            { file: "s", scope: "user", hooks: { preToolUse: [{ bash: "echo $TROUPE_HOOK_DEPTH > depth" }] } },
          ],
        })
      ).definitions,
      { projectRoot: folder.path, environment: { PATH: process.env.PATH, TROUPE_HOOK_DEPTH: "2" } },
    );
    await hooks.fire("preToolUse", bashCall);
    expect(await folder.read("depth")).toBe("3\n");
  });
});
