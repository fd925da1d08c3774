import { mkdir, readFile, symlink } from "node:fs/promises";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseManifest } from "../../src/catalog/plugins/plugin-manifest.ts";
import { findParts } from "../../src/catalog/plugins/plugin-parts.ts";
import { loadPlugins, type PluginSearchPaths, pluginEnvironment } from "../../src/catalog/plugins/plugins.ts";
import { isInside } from "../../src/lib/node/paths.ts";
import { PluginsAdmin } from "../../src/runtime/workspace/plugins-admin.ts";
import { type FileTree, tempFolder } from "../../src/testing/temp-folder.ts";

async function stage(tree: FileTree) {
  const folder = await tempFolder({ "work/keep": "", "home/keep": "", ...tree });
  const load = (more: Partial<PluginSearchPaths> = {}) =>
    loadPlugins({ cwd: folder.at("work"), stateRoot: folder.at("home"), workspace: folder.at("work"), ...more });
  return { at: folder.at, load, [Symbol.asyncDispose]: () => folder.remove() };
}

const manifest = (value: object): string => JSON.stringify(value);

describe("a plugin", () => {
  it("a plugin has its parts in the usual folders when its manifest names none", async () => {
    await using it = await stage({
      "p/plugin.json": manifest({ name: "tools", version: "1.0.0", description: "Some\n tools", lspServers: {} }),
      "p/skills/a/SKILL.md": "x",
      "p/agents/b.md": "x",
      "p/commands/c.md": "x",
      "p/hooks/hooks.json": "{}",
      "p/.mcp.json": "{}",
    });
    const root = it.at("p");
    expect(await it.load({ given: ["../p"] })).toEqual({
      plugins: [
        {
          name: "tools",
          version: "1.0.0",
          description: "Some tools",
          root,
          dataDirectory: it.at("home/plugin-data/tools"),
          source: "flag",
          skillFolders: [`${root}/skills`],
          agentFolders: [`${root}/agents`],
          commandFolders: [`${root}/commands`],
          hooks: [{ kind: "file", path: `${root}/hooks/hooks.json` }],
          mcpServers: [{ kind: "file", path: `${root}/.mcp.json` }],
        },
      ],
      notices: [],
    });
  });

  it("a plugin may name its parts, one or several, or have them inline", async () => {
    const inline = { mcpServers: { x: { command: "x" } } };
    await using it = await stage({
      "p/.claude-plugin/plugin.json": manifest({
        name: "p",
        skills: ["./s1", "s2/"],
        agents: "./who",
        hooks: "h.json",
        mcpServers: inline,
      }),
      "p/s1/keep": "",
      "p/s2/keep": "",
      "p/skills/keep": "not used: the manifest names others",
      "p/who/keep": "",
      "p/h.json": "{}",
      "p/hooks.json": "{}",
    });
    const root = it.at("p");
    expect((await it.load({ given: [root] })).plugins).toMatchObject([
      {
        skillFolders: [`${root}/s1`, `${root}/s2`],
        agentFolders: [`${root}/who`],
        hooks: [{ kind: "file", path: `${root}/h.json` }],
        mcpServers: [{ kind: "inline", value: inline }],
      },
    ]);
  });

  it.each(["plugin.json", ".github/plugin.json", ".claude-plugin/plugin.json", ".plugin/plugin.json"])(
    "a plugin may have its manifest at %s",
    async (path) => {
      await using it = await stage({ [`folder/${path}`]: manifest({ name: "named" }) });
      expect((await it.load({ given: [it.at("folder")] })).plugins).toMatchObject([{ name: "named" }]);
    },
  );

  it("a plugin needs no manifest when it has a part, and is then named after its folder", async () => {
    await using it = await stage({ "bare/skills/a/SKILL.md": "x", "empty/keep": "" });
    const { plugins, notices } = await it.load({ given: [it.at("bare"), it.at("empty"), it.at("nowhere")] });
    expect(plugins).toMatchObject([{ name: "bare" }]);
    expect(notices.map(({ kind }) => kind)).toEqual(["broken", "broken"]);
  });

  it("a broken plugin is omitted with a notice, and the others load", async () => {
    await using it = await stage({
      "a/plugin.json": "{",
      "b/plugin.json": manifest({ name: "../up" }),
      "c/plugin.json": '{"name":"c","mcpServers":{"__proto__":{}}}',
      "d/plugin.json": manifest({ name: "d", skills: 7 }),
      "e/plugin.json": `{"name":"e","description":"${"x".repeat(300_000)}"}`,
      "f/plugin.json/keep": "a folder where a file should be",
      "f/skills/keep": "",
      "g/plugin.json": manifest({ name: "g", skills: ["gone", "plugin.json"] }),
    });
    const given = ["a", "b", "c", "d", "e", "f", "g"].map((name) => it.at(name));
    const { plugins, notices } = await it.load({ given });
    expect(plugins.map(({ name }) => name)).toEqual(["f", "g"]);
    expect(notices.map(({ kind, path }) => `${kind} ${path.slice(-1)}`)).toEqual([
      "broken a",
      "broken b",
      "broken c",
      "broken d",
      "broken e",
      "part g",
      "part g",
    ]);
  });
});

describe("the loaded plugins", () => {
  const tree = {
    "flag/plugin.json": manifest({ name: "same", version: "flag" }),
    "set/plugin.json": manifest({ name: "Same", version: "settings" }),
    "more/plugin.json": manifest({ name: "more" }),
    "home/installed-plugins/direct/plugin.json": manifest({ name: "direct" }),
    "home/installed-plugins/market/deep/plugin.json": manifest({ name: "deep" }),
    "home/installed-plugins/market/notes.txt": "",
  };

  it("plugins load by flag first, then from settings, then installed, and a conflict is reported", async () => {
    await using it = await stage(tree);
    const { plugins, notices } = await it.load({ given: [it.at("flag")], configured: [it.at("set"), it.at("more")] });
    expect(plugins.map(({ name, source }) => [name, source])).toEqual([
      ["same", "flag"],
      ["more", "settings"],
      ["direct", "installed"],
      ["deep", "installed"],
    ]);
    expect(notices).toMatchObject([{ kind: "clash", path: it.at("set") }]);
  });

  it("plugins given by flag are the only ones on request", async () => {
    await using it = await stage(tree);
    const { plugins } = await it.load({ given: [it.at("flag")], configured: [it.at("more")], onlyGiven: true });
    expect(plugins.map(({ name }) => name)).toEqual(["same"]);
  });

  it("plugins can be switched off by name, but not when a flag names them", async () => {
    await using it = await stage(tree);
    const enabled = { same: false, more: false, deep: false };
    const { plugins } = await it.load({ given: [it.at("flag")], configured: [it.at("more")], enabled });
    expect(plugins.map(({ name }) => name)).toEqual(["same", "direct"]);
  });
});

describe("a plugin inside the workspace", () => {
  const tree = { "work/p/plugin.json": manifest({ name: "p" }), "work/p/hooks.json": "{}", "work/p/run.sh": "true" };

  it("a plugin inside the workspace is loaded by flag, and by settings only in the approved form", async () => {
    await using it = await stage(tree);
    expect((await it.load({ given: ["p"] })).plugins).toMatchObject([{ name: "p" }]);
    const untrusted = await it.load({ configured: ["p"] });
    expect(untrusted).toMatchObject({ plugins: [], notices: [{ kind: "untrusted" }] });
    expect(untrusted.notices[0]?.message).toContain("run: troupe trust");
    const digests: string[] = [];
    const collected = await it.load({
      configured: ["p"],
      check({ digest }) {
        digests.push(digest);
        return "new";
      },
    });
    expect(collected.plugins).toEqual([]);
    const check = ({ digest }: { digest: string }) => (digests.includes(digest) ? "approved" : "changed");
    expect((await it.load({ configured: ["p"], check })).plugins).toMatchObject([{ name: "p" }]);
    await symlink("run.sh", it.at("work/p/other.sh"));
    expect(await it.load({ configured: ["p"], check })).toMatchObject({ plugins: [], notices: [{ kind: "changed" }] });
  });
});

describe("a path of a plugin", () => {
  it("a path of a plugin's manifest never leads out of the plugin", async () => {
    await using it = await stage({ "p/in/a/keep": "", "p/in/f.json": "{}", "p-evil/keep": "", "secret/f.json": "{}" });
    const root = it.at("p");
    await symlink(it.at("secret"), it.at("p/in/link"));
    await symlink(it.at("secret/f.json"), it.at("p/in/link.json"));
    await symlink("..", it.at("p/in/a/up"));
    const piece = fc.constantFrom(
      "in",
      "a",
      "..",
      ".",
      "link",
      "link.json",
      "f.json",
      "up",
      "",
      "~",
      "p-evil",
      "\0",
      it.at("secret"),
      "C:",
    );
    const path = fc.tuple(
      fc.constantFrom("", "./", "/", "../", "..\\", "//"),
      fc.array(piece, { minLength: 1, maxLength: 6 }),
    );
    const paths = fc.array(
      path.map(([start, pieces]) => `${start}${pieces.join("/")}`),
      { maxLength: 5 },
    );
    let found = 0;
    await fc.assert(
      fc.asyncProperty(paths, async (list) => {
        const part = { kind: "files", paths: list } as const;
        const parts = findParts(
          root,
          { skills: list, agents: list, commands: list, hooks: part, mcpServers: part },
          () => {},
        );
        const all = [
          ...parts.skillFolders,
          ...parts.agentFolders,
          ...[...parts.hooks, ...parts.mcpServers].flatMap((one) => (one.kind === "file" ? [one.path] : [])),
        ];
        found += all.length;
        expect(all.filter((one) => !isInside(one, [root]))).toEqual([]);
      }),
      // One that leads to something is among them, whatever the others are.
      { numRuns: 500, examples: [[["in", "./in/a", "in/f.json"]]] },
    );
    expect(found).toBeGreaterThan(0);
  });

  it("a usual folder of a plugin never leads out of the plugin", async () => {
    await using it = await stage({ "p/plugin.json": manifest({ name: "p" }), "secret/hooks.json": "{}" });
    await symlink(it.at("secret"), it.at("p/skills"));
    await symlink(it.at("secret/hooks.json"), it.at("p/hooks.json"));
    await mkdir(it.at("p/.mcp.json"));
    const { plugins } = await it.load({ given: [it.at("p")] });
    expect(plugins).toMatchObject([{ skillFolders: [], hooks: [], mcpServers: [] }]);
  });

  it("a plugin's manifest is never read through a link out of the plugin", async () => {
    await using it = await stage({ "p/skills/keep": "", "secret/plugin.json": manifest({ name: "secret" }) });
    await symlink(it.at("secret/plugin.json"), it.at("p/plugin.json"));
    expect(await it.load({ given: [it.at("p")] })).toMatchObject({ plugins: [], notices: [{ kind: "broken" }] });
  });
});

describe("the environment of a plugin", () => {
  it("the environment of a plugin contains its folder, its data folder and the folder of the project", async () => {
    await using it = await stage({ "p/plugin.json": manifest({ name: "p" }) });
    const { plugins } = await it.load({ given: [it.at("p")] });
    const [plugin] = plugins;
    expect(plugin && pluginEnvironment(plugin, "/work")).toEqual({
      PLUGIN_ROOT: it.at("p"),
      COPILOT_PLUGIN_ROOT: it.at("p"),
      CLAUDE_PLUGIN_ROOT: it.at("p"),
      COPILOT_PLUGIN_DATA: it.at("home/plugin-data/p"),
      CLAUDE_PLUGIN_DATA: it.at("home/plugin-data/p"),
      COPILOT_PROJECT_DIR: "/work",
      CLAUDE_PROJECT_DIR: "/work",
    });
  });

  it("the name of a plugin is safe as a folder name", () => {
    for (const name of ["..", ".", "a/b", "a\\b", "-x", "x ", "", "__proto__", "constructor", "n".repeat(65)])
      expect([name, typeof parseManifest(JSON.stringify({ name }))]).toEqual([name, "string"]);
    for (const name of ["a", "my-plugin", "Tools_2.x"])
      expect(parseManifest(JSON.stringify({ name }))).toEqual({ name });
  });
});

describe("a damaged list of installed plugins", () => {
  const installed = { "home/installed-plugins/own/deep/plugin.json": manifest({ name: "deep" }) };

  it.each([
    ["cut off", '{"plugins": [{"name": "deep", "enab'],
    ["a list", "[]"],
    ["empty", ""],
    ["too large", `{"a": "${"x".repeat(1024 * 1024)}"}`],
    ["of another form", '{"plugins": [{"name": 1}]}'],
  ])("a damaged list of installed plugins is neither used nor overwritten when it is %s", async (_, text) => {
    await using it = await stage({
      ...installed,
      "home/plugins.json": text,
      "new/plugin.json": manifest({ name: "new" }),
    });
    const admin = new PluginsAdmin(it.at("home"));
    const install = admin.install(it.at("new"), it.at("work"));
    await expect(install).rejects.toMatchObject({
      message: expect.stringContaining(it.at("home/plugins.json")),
      hint: expect.stringContaining("Repair the file"),
    });
    expect(await readFile(it.at("home/plugins.json"), "utf8")).toBe(text);
  });

  it("a damaged list of installed plugins omits all of them, because it may have disabled any", async () => {
    await using it = await stage({ ...installed, "home/plugins.json": "{" });
    const { plugins, notices } = await it.load();
    expect(plugins).toEqual([]);
    expect(notices).toMatchObject([{ kind: "broken", path: it.at("home/plugins.json") }]);
    expect(notices[0]?.message).toMatch(/Repair the file, or delete it/);
  });
});
