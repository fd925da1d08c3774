import { execFileSync } from "node:child_process";
import { mkdir, symlink } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { type LoadedSettings, loadSettings, type SettingsRequest } from "../../src/catalog/settings/settings.ts";
import { changeSettings } from "../../src/catalog/settings/settings-change.ts";
import { TroupeError } from "../../src/protocol/errors.ts";
import { type FileTree, type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import { leastProcessorTime } from "../support/work.ts";

const PROJECT_FILES = [
  "project/.troupe/settings.json",
  "project/.github/copilot/settings.json",
  "project/.troupe/settings.local.json",
  "project/.github/copilot/settings.local.json",
];

function load(place: TempFolder, request: Partial<SettingsRequest> = {}): LoadedSettings {
  return loadSettings({ stateRoot: place.at("home"), cwd: place.at("project"), isTrusted: () => true, ...request });
}

const stage = (tree: FileTree = {}): Promise<TempFolder> => tempFolder({ "project/README.md": "", ...tree });
const messages = ({ notices }: LoadedSettings, place: TempFolder): string[] =>
  notices.map(({ message }) => message.replaceAll(place.path, ""));

function failure(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (error instanceof TroupeError && error.kind === "configuration") return error.message;
    throw error;
  }
  throw new Error("it did not fail");
}

describe("the user's settings", () => {
  it("the user's settings are empty when there are no files", async () => {
    await using place = await stage();
    expect(load(place)).toEqual({
      effective: {},
      rules: [],
      hooks: [],
      mcpServers: [],
      disabledHooks: "none",
      notices: [],
    });
  });

  it("the user's settings may have comments and trailing commas, and every rule knows its line", async () => {
    await using place = await stage({
      "home/settings.json": `\uFEFF// mine
{
  "model": "openai/gpt-5", /* the
  good one */ "effortLevel": "high",
  "permissions": {
    "allow": [
      "shell(git status)",
      "read",
    ],
    "deny": ["shell(rm:*)"],
  },
  "allowedUrls": [
    "https://docs.example.com"
  ],
  "logLevel": "all",
  "hooks": { "sessionStart": [] },
  "mcpServers": { "files": { "command": "files" } },
}
`,
    });
    const source = (line: number) => ({ name: place.at("home/settings.json"), line });
    const from = { scope: "user", file: place.at("home/settings.json"), folder: place.at("home") };
    expect(load(place)).toEqual({
      effective: {
        model: "openai/gpt-5",
        effortLevel: "high",
        logLevel: "debug",
        permissions: { allow: ["shell(git status)", "read"], deny: ["shell(rm:*)"] },
        allowedUrls: ["https://docs.example.com"],
      },
      rules: [
        { text: "shell(rm:*)", effect: "deny", scope: "user", source: source(10) },
        { text: "shell(git status)", effect: "allow", scope: "user", source: source(7) },
        { text: "read", effect: "allow", scope: "user", source: source(8) },
        { text: "url(https://docs.example.com)", effect: "allow", scope: "user", source: source(13) },
      ],
      hooks: [{ ...from, line: 16, value: { sessionStart: [] } }],
      mcpServers: [{ ...from, line: 17, value: { files: { command: "files" } } }],
      disabledHooks: "none",
      notices: [],
    });
  });

  it.each([
    ['{\n "model": 5\n}', ":2: model: "],
    ['{\n "permissions": {\n  "deny": ["a",\n  7]\n }\n}', ":4: permissions.deny.1: "],
    ['{\n "sandbox": {"mode": "never"}\n}', ":2: sandbox.mode: "],
    ['{\n\n "model": "a",\n "model": "b"\n}', ':4: the file contains "model" twice.'],
    ['{\n "__proto__": {}\n}', ":2: the file contains the name __proto__"],
    ['{\n "mcpServers": {"constructor": {}}\n}', ":2: the file contains the name constructor"],
    ['{\n "model": "a"\n "stream": true\n}', ":3: the file expects , or }"],
    ['{\n "model": "a\n"}', ":2: the file contains a string that is not closed"],
    ['{ "model": 01 }', ":1: the file expects a value"],
    ['{ "model":', ":1: the file expects a value, but has an unexpected end."],
    ['{ "a": 1e999 }', ":1: the file expects a value"],
    ["{ /* ", ":1: the file expects a name"],
    ["[]", ":1: the file must contain an object"],
    ["{}\n{}", ':2: the file has "{" after its end.'],
    [`${"[".repeat(100_000)}`, ":1: the file is nested more than 64 deep."],
  ])("the user's settings are refused with file and line when they are wrong: %j", async (text, expected) => {
    await using place = await stage({ "home/settings.json": text });
    expect(failure(() => load(place))).toContain(`${place.at("home/settings.json")}${expected}`);
  });

  it("unknown names in the user's settings are reported with the nearest name, and the rest is used", async () => {
    await using place = await stage({
      "home/settings.json":
        '{\n "modle": "a",\n "permissions": {\n  "deney": ["read"],\n  "ask": ["write"]\n },\n "zzz": 1\n}',
    });
    const loaded = load(place);
    expect(loaded.effective).toEqual({ permissions: { ask: ["write"] } });
    expect(messages(loaded, place).sort()).toEqual([
      '/home/settings.json:2: there is no setting "modle". Did you mean "model"?',
      '/home/settings.json:4: there is no setting "permissions.deney". Did you mean "deny"?',
      '/home/settings.json:7: there is no setting "zzz".',
    ]);
  });

  it.each(["", " \n", "\ufeff"])("an empty settings file is an error (%j) that says what to do", async (text) => {
    await using place = await stage({ "home/settings.json": text, "project/.troupe/settings.json": text });
    expect(() => load(place)).toThrow("settings.json is empty.");
    await expect(changeSettings(place.at("home/settings.json"), (now) => now)).rejects.toThrow("is empty.");
    expect(await place.read("home/settings.json")).toBe(text);
    expect(messages(load(place, { stateRoot: place.at("elsewhere") }), place)).toEqual([
      "/project/.troupe/settings.json is empty. The whole file is ignored.",
    ]);
  });

  it("the user's settings may be a link; a folder counts as missing", async () => {
    await using place = await stage({ "dotfiles/settings.json": '{"model": "a"}' });
    await mkdir(place.at("home"));
    await symlink(place.at("dotfiles/settings.json"), place.at("home/settings.json"));
    expect(load(place).effective).toEqual({ model: "a" });
    await mkdir(place.at("strange/settings.json"), { recursive: true });
    expect(load(place, { stateRoot: place.at("strange") }).effective).toEqual({});
  });

  it("override defaults key by key", async () => {
    await using place = await stage({ "home/settings.json": '{"subagents": {"maxDepth": 3}}' });
    const defaults = { subagents: { maxDepth: 6, maxConcurrency: 4 }, stream: true };
    expect(load(place, { defaults }).effective).toEqual({
      stream: true,
      subagents: { maxDepth: 3, maxConcurrency: 4 },
    });
  });

  it("the user's settings are not read again as a project's in a working folder with the state folder", async () => {
    await using place = await tempFolder({
      ".troupe/settings.json": '{"model": "a", "permissions": {"deny": ["read"]}}',
    });
    const loaded = load(place, { stateRoot: place.at(".troupe"), cwd: place.path });
    expect(loaded.notices).toEqual([]);
    expect(loaded.rules.map(({ scope }) => scope)).toEqual(["user"]);
  });
});

describe("a project's settings", () => {
  const strict = JSON.stringify({
    permissions: { deny: ["shell(curl:*)"], ask: ["write"] },
    deniedUrls: ["http://evil.example"],
    excludedTools: ["web_fetch"],
    disabledMcpServers: ["files"],
    disabledSkills: ["deploy"],
    disabledExtensions: ["project:deploy"],
    sandbox: { mode: "required", deniedPaths: ["secrets", "/srv/data"] },
    subagents: { maxDepth: 2, maxConcurrency: 9, disabledSubagents: ["research"] },
    hooks: { sessionStart: [] },
    mcpServers: { files: { command: "x" } },
  });

  it("a project's settings are stricter when the folder is trusted", async () => {
    await using place = await stage({ "project/.troupe/settings.json": strict });
    const defaults = { subagents: { maxDepth: 6, maxConcurrency: 4 } };
    const loaded = load(place, { defaults });
    expect(loaded.effective).toEqual({
      permissions: { deny: ["shell(curl:*)"], ask: ["write"] },
      deniedUrls: ["http://evil.example"],
      excludedTools: ["web_fetch"],
      disabledMcpServers: ["files"],
      disabledSkills: ["deploy"],
      disabledExtensions: ["project:deploy"],
      sandbox: { mode: "required", deniedPaths: [place.at("project/secrets"), "/srv/data"] },
      subagents: { maxDepth: 2, maxConcurrency: 4, disabledSubagents: ["research"] },
    });
    expect(loaded.rules.map(({ text, effect, scope }) => [text, effect, scope])).toEqual([
      ["shell(curl:*)", "deny", "project"],
      ["url(http://evil.example)", "deny", "project"],
      ["write", "ask", "project"],
    ]);
    expect(loaded.hooks.map(({ scope, folder }) => [scope, folder])).toEqual([["project", place.at("project")]]);
    expect(loaded.mcpServers.length).toBe(1);
    expect(messages(loaded, place)).toEqual([
      "/project/.troupe/settings.json:1: subagents.maxConcurrency is ignored: a project can make this stricter, not looser.",
    ]);
  });

  it("A01: a project's settings can only deny and ask in an untrusted folder, with one notice", async () => {
    await using place = await stage({
      "project/.troupe/settings.json": strict,
      "project/.github/copilot/settings.local.json": '{"model": "evil", "modle": 1}',
    });
    const loaded = load(place, { isTrusted: () => false });
    expect(loaded.rules.map(({ text, effect }) => [text, effect])).toEqual([
      ["shell(curl:*)", "deny"],
      ["url(http://evil.example)", "deny"],
      ["write", "ask"],
    ]);
    expect([loaded.hooks, loaded.mcpServers]).toEqual([[], []]);
    expect(loaded.effective).toMatchObject({
      excludedTools: [],
      disabledMcpServers: [],
      sandbox: { mode: "auto", deniedPaths: [] },
    });
    expect(messages(loaded, place)).toEqual([
      "The folder is not trusted, so only the deny and ask rules in /project/.troupe/settings.json, /project/.github/copilot/settings.local.json are used. Review and trust it with: troupe trust",
    ]);
  });

  it("cause no notice in a folder that is not trusted when they only deny", async () => {
    await using place = await stage({ "project/.troupe/settings.json": '{"permissions": {"deny": ["read(.env)"]}}' });
    expect(load(place, { isTrusted: () => false }).notices).toEqual([]);
  });

  it("a project's settings without effect are reported key by key, with file and line", async () => {
    await using place = await stage({
      "home/settings.json": '{"sandbox": {"mode": "required"}}',
      "project/.troupe/settings.json":
        '{\n "model": "evil",\n "permissions": {\n  "allow": ["shell"]\n },\n "sandbox": {\n  "mode": "off"\n }\n}',
    });
    const loaded = load(place);
    expect(messages(loaded, place)).toEqual([
      "/project/.troupe/settings.json:2: model is ignored: a project can only deny more; this belongs in your own settings or flags.",
      "/project/.troupe/settings.json:4: permissions.allow is ignored: a project can only deny more; this belongs in your own settings or flags.",
      "/project/.troupe/settings.json:7: sandbox.mode is ignored: a project can make this stricter, not looser.",
    ]);
    expect(loaded.rules).toEqual([]);
    expect(loaded.effective.sandbox?.mode).toBe("required");
  });

  it("a project's settings are in four places of its root and the working folder, each with its own trust", async () => {
    const own = (name: string): string => JSON.stringify({ permissions: { deny: [name] }, disabledSkills: [name] });
    const files = [...PROJECT_FILES, ...PROJECT_FILES.map((path) => path.replace("project/", "project/inner/"))];
    await using place = await stage({
      ...Object.fromEntries(files.map((path, index) => [path, own(`r${index}`)])),
      "project/inner/deeper/.troupe/settings.json": own("never"),
    });
    const asked: string[] = [];
    const { rules, effective } = load(place, {
      gitRoot: place.at("project"),
      cwd: place.at("project/inner"),
      isTrusted: (folder) => {
        asked.push(folder);
        return folder === place.at("project");
      },
    });
    expect(rules.map(({ text }) => text).sort()).toEqual(files.map((_, index) => `r${index}`));
    expect(rules.map(({ scope }) => scope)).toEqual([...Array(4).fill("project"), ...Array(4).fill("local")]);
    expect(effective.disabledSkills?.sort()).toEqual(["r0", "r1", "r2", "r3"]);
    expect(asked).toEqual([place.at("project"), place.at("project/inner")]);
  });

  it("a project's settings switch off only its own hooks, and the user's setting switches off all", async () => {
    const hooks = { sessionStart: [] };
    await using place = await stage({
      "home/settings.json": JSON.stringify({ hooks }),
      "project/.troupe/settings.json": JSON.stringify({ hooks }),
      "project/.troupe/settings.local.json": '{"disableAllHooks": true}',
    });
    const loaded = load(place);
    expect([loaded.disabledHooks, loaded.hooks.map(({ scope }) => scope)]).toEqual(["project", ["user"]]);
    await place.files({ "home/settings.json": JSON.stringify({ hooks, disableAllHooks: true }) });
    expect([load(place).disabledHooks, load(place).hooks]).toEqual(["all", []]);
  });

  it.each([
    ["of a wrong type", '{\n "permissions": {"deny": "read"}\n}', ":2: permissions.deny: "],
    ["not JSON", "{\n oops", ":2: the file expects a name"],
    ["with a prototype key", '{"hooks": {"__proto__": {}}}', ":1: the file contains the name __proto__"],
    ["of too many entries", JSON.stringify({ deniedUrls: Array(1001).fill("a") }), ":1: deniedUrls: "],
    ["too large", `{}${" ".repeat(256 * 1024)}`, "it is larger than 256 KiB"],
    ["not text", Buffer.from([0xff]), "it is not UTF-8 text"],
  ])("a project's settings that are %s are ignored, and nothing else fails", async (_, content, expected) => {
    await using place = await stage({
      "home/settings.json": '{"model": "a"}',
      "project/.troupe/settings.json": content,
      "project/.troupe/settings.local.json": '{"disabledSkills": ["x"]}',
    });
    const loaded = load(place);
    expect(loaded.effective).toMatchObject({ model: "a", disabledSkills: ["x"] });
    expect(messages(loaded, place)).toHaveLength(1);
    expect(messages(loaded, place)[0]).toContain(expected);
    expect(messages(loaded, place)[0]).toContain("/project/.troupe/settings.json");
    expect(messages(loaded, place)[0]).toContain("ignored");
  });

  it.each(PROJECT_FILES)(
    "a project's settings are ignored when a folder, a pipe or an outside link is in the place of %s",
    async (path) => {
      await using place = await stage({ "outside/settings.json": '{"permissions": {"deny": ["read"]}}' });
      await mkdir(place.at(path), { recursive: true });
      expect(load(place)).toMatchObject({ rules: [], notices: [] });

      await using piped = await stage({ [`${path}.md`]: "" });
      execFileSync("mkfifo", [piped.at(path)]);
      expect(messages(load(piped), piped)).toEqual([`/${path} is ignored: it is not a regular file.`]);

      await using linked = await stage({ [`${path}.md`]: "" });
      await symlink(place.at("outside/settings.json"), linked.at(path));
      expect(load(linked).rules).toEqual([]);
      expect(load(linked).notices[0]?.message).toContain("it leads outside");

      await using within = await stage({
        [`${path}.md`]: "",
        "project/shared.json": '{"permissions": {"deny": ["read"]}}',
      });
      await symlink(within.at("project/shared.json"), within.at(path));
      expect(load(within).rules).toHaveLength(1);
    },
  );

  it("a project's settings are not used when their folder is a link out of the workspace", async () => {
    await using place = await stage({ "outside/settings.json": '{"permissions": {"deny": ["read"]}}' });
    await symlink(place.at("outside"), place.at("project/.troupe"));
    expect(load(place).rules).toEqual([]);
    expect(load(place).notices[0]?.message).toContain("it leads outside");
  });

  it("cause at most twenty notices for each file", async () => {
    const many = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`name${index}`, 1]));
    await using place = await stage({ "project/.troupe/settings.json": JSON.stringify(many) });
    expect(load(place).notices.length).toBeLessThanOrEqual(21);
  });
});

it("settings cost less than two milliseconds of processor time at a start without any file", async () => {
  await using place = await stage();
  load(place);
  const starts = (): void => {
    for (let n = 0; n < 10; n++) load(place, { gitRoot: place.path });
  };
  expect((await leastProcessorTime(starts)) / 10).toBeLessThan(2);
});
