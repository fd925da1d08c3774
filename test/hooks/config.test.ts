import { describe, expect, it } from "vitest";
import { parseHookFile, parseInlineHooks } from "../../src/hooks/config.ts";
import { DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS } from "../../src/hooks/hooks.ts";
import { hookPoints, pascalName } from "../../src/hooks/points.ts";
import { codeBlocks, read } from "../docs/documents.ts";
import { hookStage, hooksOf, place, projectOrigin, userOrigin } from "./stage.ts";

const file = (value: unknown, origin = userOrigin, environment = {}) =>
  parseHookFile(typeof value === "string" ? value : JSON.stringify(value), { origin, environment, platform: "linux" });
const notices = (value: unknown, origin = userOrigin) => file(value, origin).notices.map(({ message }) => message);
const entry = (fields: object, point = "preToolUse") => ({ hooks: { [point]: [fields] } });

describe("a file of hooks", () => {
  it("a hooks file becomes definitions with every field set", () => {
    const { definitions } = file({
      version: 1,
      hooks: {
        preToolUse: [{ bash: "guard.sh", cwd: "tools", env: { A: "1" }, timeoutSec: 5, matcher: "bash" }],
        PostToolUse: [{ type: "command", exec: "./note", args: ["a b"], timeout: 2 }],
        notification: [{ type: "http", url: "https://example.com/h", headers: { A: "$T" }, allowedEnvVars: ["T"] }],
        sessionStart: [{ type: "prompt", prompt: "Say hello" }],
      },
    });
    const source = (index: number) => ({ ...userOrigin, index });
    expect(definitions.map(({ matcher, pinned: _, ...rest }) => ({ ...rest, matcher: matcher?.text }))).toEqual([
      {
        point: "preToolUse",
        dialect: "camel",
        source: source(0),
        onFailure: "closed",
        timeoutMs: 5_000,
        matcher: "bash",
        run: {
          type: "command",
          start: { type: "shell", shell: "bash", text: "guard.sh" },
          cwd: "tools",
          env: { A: "1" },
        },
      },
      {
        point: "postToolUse",
        dialect: "pascal",
        source: source(1),
        onFailure: "open",
        timeoutMs: 2_000,
        matcher: undefined,
        run: { type: "command", start: { type: "program", program: "./note", arguments: ["a b"] }, env: {} },
      },
      {
        point: "notification",
        dialect: "camel",
        source: source(2),
        onFailure: "open",
        timeoutMs: DEFAULT_TIMEOUT_MS,
        matcher: undefined,
        run: { type: "http", url: "https://example.com/h", headers: { A: "$T" }, allowedEnvVars: ["T"] },
      },
      {
        point: "sessionStart",
        dialect: "camel",
        source: source(3),
        onFailure: "open",
        timeoutMs: DEFAULT_TIMEOUT_MS,
        matcher: undefined,
        run: { type: "prompt", prompt: "Say hello" },
      },
    ]);
  });

  it("a hooks file can name every event in both spellings", () => {
    const names = [...hookPoints, ...hookPoints.map(pascalName)];
    const { definitions, notices: said } = file({
      hooks: Object.fromEntries(names.map((name) => [name, [{ bash: "x" }]])),
    });
    expect(said).toEqual([]);
    expect(definitions.map(({ point, dialect }) => `${point} ${dialect}`)).toEqual([
      ...hookPoints.map((point) => `${point} camel`),
      ...hookPoints.map((point) => `${point} pascal`),
    ]);
    expect(names).toContain("Stop");
    expect(names).toContain("UserPromptSubmit");
  });

  it("a hooks file reads groups that share a matcher", () => {
    const { definitions } = file({
      hooks: { PreToolUse: [{ matcher: "Bash|Edit", hooks: [{ type: "command", command: "a" }, { command: "b" }] }] },
    });
    expect(definitions.map(({ matcher }) => [matcher?.matches("bash"), matcher?.matches("view")])).toEqual([
      [true, false],
      [true, false],
    ]);
  });

  it("a hooks file uses bash or powershell by the system, and command for both", () => {
    const text = (platform: NodeJS.Platform, fields: object): unknown =>
      parseHookFile(JSON.stringify(entry(fields)), { origin: userOrigin, environment: {}, platform }).definitions[0]
        ?.run;
    expect(text("linux", { bash: "b", powershell: "p" })).toMatchObject({ start: { shell: "bash", text: "b" } });
    expect(text("win32", { bash: "b", powershell: "p" })).toMatchObject({ start: { shell: "powershell", text: "p" } });
    expect(text("win32", { command: "c" })).toMatchObject({ start: { shell: "powershell", text: "c" } });
  });

  it.each([
    ["no object", "nothing", "preToolUse[0]: must be an object"],
    ["nothing to run", {}, "preToolUse[0]: it has no bash, powershell, command or exec"],
    [
      "only another system's command",
      { powershell: "x" },
      "preToolUse[0]: it has no command for this system; give bash or command",
    ],
    ["exec with bash", { exec: "a", bash: "b" }, "exec cannot be combined"],
    ["args without exec", { bash: "a", args: [] }, "args needs exec"],
    ["an unknown type", { type: "shout", bash: "a" }, "preToolUse[0]: type"],
    ["a bad matcher", { bash: "a", matcher: "(" }, "preToolUse[0]: the matcher has an unmatched ("],
    ["a long matcher", { bash: "a", matcher: "a".repeat(257) }, "longer than 256"],
    ["a bad time", { bash: "a", timeoutSec: -1 }, "preToolUse[0]: timeoutSec"],
    ["a bad variable", { bash: "a", env: { "A=B": "1" } }, "preToolUse[0]: env"],
    ["a NUL", { bash: "a\0b" }, "must not hold a NUL"],
    ["a prompt elsewhere", { type: "prompt", prompt: "hello" }, "only possible at sessionStart"],
    ["an address that is none", { type: "http", url: "example" }, "url: is not an address"],
    ["a group in a group", { hooks: [{ hooks: [] }] }, "preToolUse[0].hooks[0]: must be an object"],
  ])("a hooks file drops an entry with %s, reports that, and keeps its siblings", (_, bad, message) => {
    const { definitions, notices: said } = file({ hooks: { preToolUse: [bad, { bash: "good" }] } });
    expect(said.map((notice) => notice.message).join()).toContain(message);
    expect(definitions.map(({ pinned }) => pinned.shown)).toEqual(["preToolUse: good"]);
  });

  it.each([
    ["no JSON", "{", "not JSON"],
    ["a list", "[]", "must be a JSON object"],
    ["another version", { version: 2, hooks: {} }, "version 2 is not supported"],
    ["hooks that are not an object", { hooks: [] }, "hooks must be an object"],
    [
      "an event that is not a list",
      { hooks: { preToolUse: { bash: "x" }, sessionEnd: [{ bash: "x" }] } },
      "hooks.preToolUse must be a list",
    ],
    ["a switch that is none", { disableAllHooks: "yes" }, "disableAllHooks must be true or false"],
    ["a prototype", '{"hooks":{"preToolUse":[{"bash":"x","env":{"__proto__":"x"}}]}}', "__proto__ is not allowed"],
    ["64 KiB of depth", `${"[".repeat(65_536)}${"]".repeat(65_536)}`, "nested more than 64 deep"],
  ])("a hooks file is rejected whole with %s", (_, value, message) => {
    const { definitions, notices: said } = file(value);
    expect(definitions).toEqual([]);
    expect(said).toHaveLength(1);
    expect(said[0]?.message).toContain(message);
  });

  it("a hooks file with an unknown event gets the nearest event suggested", () => {
    expect(notices(entry({ bash: "x" }, "preToolUsed"))).toEqual([
      "hooks.preToolUsed: there is no such event; did you mean preToolUse?",
    ]);
  });

  it("a hooks file is empty when it disables itself", () => {
    expect(file({ disableAllHooks: true, ...entry({ bash: "x" }) })).toEqual({
      definitions: [],
      notices: [],
      disableAllHooks: true,
    });
  });

  it("a hooks file is limited to a hundred hooks", () => {
    const { definitions, notices: said } = file({ hooks: { sessionEnd: Array(150).fill({ bash: "x" }) } });
    expect(definitions).toHaveLength(100);
    expect(said[0]?.message).toContain("more than 100 hooks");
  });

  it("a hooks file cannot set a timeout above the maximum", () => {
    expect(file(entry({ bash: "x", timeoutSec: 1e9 })).definitions[0]?.timeoutMs).toBe(MAX_TIMEOUT_MS);
  });

  it("hooks fail closed by default at points that decide, and only where they can refuse", () => {
    const mode = (point: string, onFailure?: string) =>
      file(entry({ bash: "x", ...(onFailure && { onFailure }) }, point)).definitions[0]?.onFailure;
    expect([mode("preToolUse"), mode("permissionRequest"), mode("postToolUse"), mode("agentStop")]).toEqual([
      "closed",
      "closed",
      "open",
      "open",
    ]);
    expect([mode("preToolUse", "open"), mode("agentStop", "closed"), mode("notification", "closed")]).toEqual([
      "open",
      "closed",
      undefined,
    ]);
  });

  it("a project's hooks file cannot set LD_PRELOAD", () => {
    const preload = entry({ bash: "x", env: { LD_PRELOAD: "evil.so" } });
    expect(notices(preload, projectOrigin).join()).toContain("env.LD_PRELOAD");
    expect(notices(preload, userOrigin)).toEqual([]);
  });
});

describe("the pinned definition", () => {
  const pinned = (fields: object) => file(entry(fields)).definitions[0]?.pinned;

  it("the pinned definition of a hook shows the command on one line and contains everything that decides", () => {
    expect(pinned({ bash: "a\n  b\u001b[2J", matcher: "bash" })).toEqual({
      id: "hook:hooks.json#0",
      shown: "preToolUse (bash): a b",
      whole: [
        "runs at: preToolUse (bash)",
        "command for bash: a",
        "    ⏎   b<U+001B>[2J",
        "hosts: none (no network)",
        "variables: none of its own",
        "limits: 30 s; when it fails: refuse",
      ].join("\n"),
      value: {
        point: "preToolUse",
        dialect: "camel",
        matcher: "bash",
        onFailure: "closed",
        timeoutMs: 30_000,
        run: { type: "command", start: { type: "shell", shell: "bash", text: "a\n  b\u001b[2J" }, env: {} },
      },
    });
  });

  it.each([
    { bash: "other" },
    { bash: "x", cwd: "y" },
    { bash: "x", env: { A: "1" } },
    { bash: "x", hosts: ["a.example"] },
    { bash: "x", matcher: "bash" },
    { bash: "x", onFailure: "open" },
    { bash: "x", timeoutSec: 1 },
    { exec: "x" },
  ])("the pinned definition of a hook changes with %o", (fields) => {
    expect(pinned(fields)?.value).not.toEqual(pinned({ bash: "x" })?.value);
  });

  it("the pinned definition of a hook names the variables that would leave the machine", () => {
    const http = { type: "http", url: "https://example.com/", allowedEnvVars: ["TOKEN_A", "TOKEN_B"] };
    expect(pinned(http)?.shown).toBe("preToolUse: POST https://example.com/ with 2 variables: TOKEN_A, TOKEN_B");
  });
});

describe("the guide to hooks", () => {
  it("the guide to hooks has an example that uses everything", () => {
    const [example = ""] = codeBlocks(read("docs/how-to/hooks.md"), "json");
    const { definitions, notices: said } = file(example);
    expect(said).toEqual([]);
    expect(definitions).toHaveLength(5);
  });
});

describe("hooks in settings", () => {
  const inline = (value: unknown) => parseInlineHooks(value, { origin: userOrigin, environment: {} });

  it.each([
    [{ preToolUse: [{}] }, "hooks.json: hooks.preToolUse[0]: it has no bash"],
    [{ preToolUsed: [] }, "hooks.json: hooks.preToolUsed: there is no such event; did you mean preToolUse?"],
    [{ preToolUse: {} }, "hooks.json: hooks.preToolUse must be a list"],
    ["all", "hooks.json: hooks must be an object"],
    [{ version: 3, hooks: {} }, "hooks.json: version 3"],
  ])("invalid hooks in settings are refused: %o", (value, message) => {
    expect(() => inline(value)).toThrow(message);
  });

  it("ORC-83: the same hook works from a file and from settings", async () => {
    const hooks = { sessionStart: [{ bash: `echo '{"additionalContext":"from a hook"}'` }] };
    const fromFile = hooksOf(hooks);
    const fromSettings = inline(hooks).definitions;
    expect(fromSettings).toEqual(fromFile);
    for (const definitions of [fromFile, fromSettings, inline({ version: 1, hooks }).definitions]) {
      const { hooks: run } = hookStage(definitions);
      expect(await run.fire("sessionStart", { ...place, source: "new" })).toEqual({ additionalContext: "from a hook" });
    }
  });
});

describe("the address of a hook", () => {
  const problem = (point: string, fields: object, environment = {}, origin = userOrigin) =>
    file(entry({ type: "http", ...fields }, point), origin, environment).notices[0]?.message ?? "fine";
  const local = { COPILOT_HOOK_ALLOW_LOCALHOST: "1" };
  const plain = { COPILOT_HOOK_ALLOW_HTTP_AUTH_HOOKS: "1" };

  it.each([
    ["sessionEnd", { url: "http://example.com" }, {}, "fine"],
    ["sessionEnd", { url: "http://127.0.0.1:1/x" }, {}, "fine"],
    ["sessionEnd", { url: "http://example.com", allowedEnvVars: ["T"] }, {}, "must begin with https://"],
    ["sessionEnd", { url: "http://localhost", allowedEnvVars: ["T"] }, local, "fine"],
    ["sessionEnd", { url: "ftp://example.com" }, {}, "must begin with https://"],
    ["sessionEnd", { url: "https://me:secret@example.com" }, {}, "must not contain a user name"],
    ["preToolUse", { url: "https://example.com" }, {}, "fine"],
    ["preToolUse", { url: "http://example.com" }, {}, "must begin with https:// for preToolUse"],
    ["permissionRequest", { url: "http://example.com" }, plain, "fine"],
    ["preToolUse", { url: "https://localhost" }, {}, "a name of this machine"],
    ["preToolUse", { url: "http://localhost:8080" }, local, "fine"],
    ["preToolUse", { url: "http://127.9.9.9" }, local, "fine"],
    ["preToolUse", { url: "http://[::1]:80" }, local, "fine"],
    ["preToolUse", { url: "https://2130706433" }, {}, "127.0.0.1 is an address of this machine"],
    ["preToolUse", { url: "https://10.0.0.1" }, local, "10.0.0.1 is an address"],
    ["preToolUse", { url: "https://169.254.169.254" }, plain, "169.254.169.254 is an address"],
    ["preToolUse", { url: "https://[::ffff:10.0.0.1]" }, {}, "is an address"],
    ["preToolUse", { url: "https://[fe80::1]" }, {}, "is an address"],
    ["preToolUse", { url: "https://[fd00::1]" }, {}, "is an address"],
  ])("a hook's address is checked at %s: %o with %o: %s", (point, fields, environment, expected) => {
    expect(problem(point, fields, environment)).toContain(expected);
  });

  it("a project's hook cannot have an address in the local network", () => {
    expect(problem("sessionEnd", { url: "http://169.254.169.254/x" }, {}, projectOrigin)).toContain("is an address");
    expect(problem("sessionEnd", { url: "http://localhost/x" }, {}, projectOrigin)).toContain("a name of this machine");
  });
});

describe("a matcher", () => {
  const matches = (point: string, matcher: string, subject: string) => {
    const { definitions } = file(entry({ bash: "x", matcher }, point));
    return hookStage(definitions).hooks.has(definitions[0]?.point ?? "preToolUse", subject);
  };

  it.each([
    ["preToolUse", "bash", "bash", true],
    ["preToolUse", "bas", "bash", false],
    ["preToolUse", "Bash", "bash", false],
    ["preToolUse", "*", "anything", true],
    ["preToolUse", "", "anything", true],
    ["PreToolUse", "*", "anything", true],
    ["PreToolUse", "Bash|Edit", "apply_patch", true],
    ["PreToolUse", "bash", "bash", false],
    ["PreToolUse", "Web.*", "web_fetch", true],
    ["PermissionRequest", "Agent", "task", true],
    ["PostToolUse", "Write", "create", true],
    ["notification", "agent_.*", "agent_idle", true],
    ["notification", "agent_.*", "shell_completed", false],
    ["preCompact", "manual", "auto", false],
    ["Stop", "ignored", "anything", true],
  ])("a hook's matcher is tested at %s: %s on %s: %s", (point, matcher, subject, expected) => {
    expect(matches(point, matcher, subject)).toBe(expected);
  });

  it("a long tool name does not bypass a hook's matcher", () => {
    expect(matches("preToolUse", "bash", "x".repeat(257))).toBe(true);
  });
});
