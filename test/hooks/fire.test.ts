import { describe, expect, it } from "vitest";
import { programHook } from "../../src/hooks/load.ts";
import type { HookPoint } from "../../src/hooks/points.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { bashCall, hookStage, hooksOf, place, projectOrigin } from "./stage.ts";

const start = { ...place, source: "new" } as const;
const request = {
  ...place,
  hookName: "permissionRequest",
  toolName: "bash",
  toolInput: { command: "ls" },
  permissionSuggestions: [],
} as const;
const stop = { ...place, stopReason: "end_turn", stop_hook_active: false } as const;
const failure = { ...bashCall, error: "it broke" };

describe("each run of a hook", () => {
  it("each hook run has one start and one end with the same id, in order, with its input and output", async () => {
    const { hooks, events } = hookStage(
      hooksOf({ sessionStart: [{ bash: `echo '{"additionalContext":"one"}'` }, { bash: "echo oops >&2; exit 7" }] }),
    );
    await hooks.fire("sessionStart", start);
    const [first, firstEnd, second, secondEnd, ...rest] = events;
    const input = { ...start, timestamp: Date.UTC(2026, 0, 1) };
    const id = first?.data.hookInvocationId;
    expect(first).toEqual({ type: "hook.start", data: { hookInvocationId: id, hookType: "sessionStart", input } });
    expect(firstEnd).toEqual({
      type: "hook.end",
      data: { hookInvocationId: id, hookType: "sessionStart", output: { additionalContext: "one" }, success: true },
    });
    expect(secondEnd).toEqual({
      type: "hook.end",
      data: {
        hookInvocationId: second?.data.hookInvocationId,
        hookType: "sessionStart",
        success: false,
        error: { message: "it ended with exit code 7: oops", source: "hooks.json" },
      },
    });
    expect(second?.data.hookInvocationId).not.toBe(id);
    expect(rest).toEqual([]);
  });

  it("each hook run stores no more than 8 KiB of its input and output", async () => {
    const { hooks, events } = hookStage([
      programHook({
        point: "preToolUse",
        run: () => ({ modifiedArgs: { list: Array(5000).fill({ a: "ä".repeat(99) }) } }),
      }),
    ]);
    const toolArgs = {
      content: "ä".repeat(500_000),
      more: Object.fromEntries(Array.from({ length: 999 }, (_, i) => [`k${i}`, i])),
    };
    await hooks.fire("preToolUse", { ...bashCall, toolArgs });
    const [begin, end] = events;
    expect(Buffer.byteLength(JSON.stringify(begin?.data.input))).toBeLessThanOrEqual(8192);
    expect(Buffer.byteLength(JSON.stringify(end?.data.output))).toBeLessThanOrEqual(8192);
    expect(begin?.data.input).toMatchObject({ toolName: "bash", sessionId: "s-1" });
  });

  it("each hook run is reported to the caller's listener if there is one", async () => {
    const told: string[] = [];
    const { hooks, events } = hookStage([programHook({ point: "sessionStart", run: () => undefined })]);
    await hooks.fire("sessionStart", start, { emit: async (type) => void told.push(type) });
    expect([told, events]).toEqual([["hook.start", "hook.end"], []]);
  });
});

describe("the choice of hooks", () => {
  it("ORC-51: the hooks at subagentStart are those whose matcher names the agent", async () => {
    await using folder = await tempFolder();
    const definitions = hooksOf({
      subagentStart: [
        { bash: "cat > explore.json", matcher: "explore" },
        { bash: "cat > review.json", matcher: "code-review|review" },
      ],
    });
    const { hooks } = hookStage(definitions, { projectRoot: folder.path });
    expect([hooks.has("subagentStart", "review"), hooks.has("subagentStart", "task")]).toEqual([true, false]);
    await hooks.fire("subagentStart", { ...place, agentName: "review", agentId: "a-1", agentType: "review" });
    expect(Object.keys(await folder.tree())).toEqual(["review.json"]);
  });

  it("firing a point without hooks costs nothing", async () => {
    const { hooks, events } = hookStage(hooksOf({ sessionStart: [{ type: "prompt", prompt: "Hello" }] }));
    expect([hooks.has("preToolUse"), hooks.has("sessionStart"), hooks.startPrompts]).toEqual([false, false, ["Hello"]]);
    expect(await hooks.fire("preToolUse", bashCall)).toEqual({});
    expect(events).toEqual([]);
  });

  it("hooks of all sources are chosen, policy first and programs last", async () => {
    const order: string[] = [];
    const note = (scope: "policy" | "user" | "project" | "program") => {
      const hook = programHook({ point: "preToolUse", run: () => void order.push(scope) });
      return { ...hook, source: { ...hook.source, scope } };
    };
    const { hooks } = hookStage([note("program"), note("project"), note("policy"), note("user")]);
    await hooks.fire("preToolUse", bashCall);
    expect(order).toEqual(["policy", "user", "project", "program"]);
  });
});

describe("exit codes of a command and their meaning", () => {
  const deny = (text: string) => ({
    permissionDecision: "deny",
    permissionDecisionReason: expect.stringContaining(text),
  });
  const inputs = {
    preToolUse: bashCall,
    permissionRequest: request,
    sessionStart: start,
    agentStop: stop,
    subagentStop: { ...stop, agentName: "a", agentId: "a-1", agentType: "a", response: "done", stopReason: "end_turn" },
    postToolUseFailure: failure,
  };
  const allow = `echo '{"permissionDecision":"allow","behavior":"allow"}'`;

  it.each<[string, keyof typeof inputs, object, unknown, boolean]>([
    ["exit 0 without words", "preToolUse", { bash: "true" }, {}, true],
    ["exit 0 with words", "preToolUse", { bash: allow }, { permissionDecision: "allow" }, true],
    ["exit 2", "preToolUse", { bash: "echo because >&2; exit 2" }, deny("because"), true],
    ["exit 2 that says allow", "preToolUse", { bash: `${allow}; exit 2` }, { permissionDecision: "deny" }, true],
    ["exit 2 though open", "preToolUse", { bash: "exit 2", onFailure: "open" }, { permissionDecision: "deny" }, true],
    ["exit 2", "permissionRequest", { bash: "echo no >&2; exit 2" }, { behavior: "deny", message: "no" }, true],
    ["exit 2", "postToolUseFailure", { bash: "echo try sudo; exit 2" }, { additionalContext: "try sudo" }, false],
    ["exit 2", "agentStop", { bash: "echo tests fail >&2; exit 2" }, { decision: "block", reason: "tests fail" }, true],
    ["exit 2 without words", "agentStop", { bash: "exit 2" }, { decision: "block" }, true],
    ["exit 2", "subagentStop", { bash: "echo more >&2; exit 2" }, { decision: "block", reason: "more" }, true],
    ["exit 2", "sessionStart", { bash: `echo '{"additionalContext":"x"}'; exit 2` }, {}, false],
    ["another exit code", "preToolUse", { bash: "echo why >&2; exit 1" }, deny("exit code 1: why"), false],
    ["another exit code, open", "preToolUse", { bash: "exit 1", onFailure: "open" }, {}, false],
    [
      "another exit code",
      "permissionRequest",
      { bash: "exit 1" },
      { behavior: "deny", message: expect.stringContaining("exit code 1") },
      false,
    ],
    ["another exit code", "sessionStart", { bash: "exit 1" }, {}, false],
    [
      "another exit code, closed",
      "agentStop",
      { bash: "exit 1", onFailure: "closed" },
      { decision: "block", reason: expect.stringContaining("exit code 1") },
      false,
    ],
    ["another exit code", "agentStop", { bash: "exit 1" }, {}, false],
    ["a signal", "preToolUse", { bash: "kill -SEGV $$" }, deny("SIGSEGV"), false],
    ["a signal, open", "preToolUse", { bash: "kill -SEGV $$", onFailure: "open" }, {}, false],
    ["too late", "preToolUse", { bash: "sleep 30", timeoutSec: 0.1 }, deny("did not answer within 0.1 s"), false],
    ["too late, open", "preToolUse", { bash: "sleep 30", timeoutSec: 0.1, onFailure: "open" }, {}, false],
    ["too late", "sessionStart", { bash: "sleep 30", timeoutSec: 0.1 }, {}, false],
    ["no such program", "preToolUse", { exec: "no-such-program" }, deny("could not be started"), false],
    ["no such program, open", "preToolUse", { exec: "no-such-program", onFailure: "open" }, {}, false],
    ["words that are no JSON", "preToolUse", { bash: "echo all fine" }, deny("it is not JSON"), false],
    ["words that are no JSON, open", "preToolUse", { bash: "echo all fine", onFailure: "open" }, {}, false],
    ["words that are no JSON", "sessionStart", { bash: "echo all fine" }, {}, false],
    ["a wrong type", "preToolUse", { bash: `echo '{"permissionDecision":1}'` }, deny("permissionDecision"), false],
    ["a list", "preToolUse", { bash: "echo '[]'" }, deny("not a JSON object"), false],
    ["a prototype", "preToolUse", { bash: `echo '{"__proto__":{}}'` }, deny("__proto__"), false],
    ["64 KiB of depth", "preToolUse", { bash: "head -c 65536 /dev/zero | tr '\\0' '['" }, deny("64 deep"), false],
  ])("%s at %s: %o", async (_, point, fields, expected, success) => {
    const { hooks, events, warnings } = hookStage(hooksOf({ [point]: [fields] }));
    const fire = hooks.fire as (point: HookPoint, input: unknown) => Promise<unknown>;
    expect(await fire(point, inputs[point])).toEqual(expected);
    expect(events.map(({ type }) => type)).toEqual(["hook.start", "hook.end"]);
    expect(events[1]?.data.success).toBe(success);
    expect(warnings).toHaveLength(success ? 0 : 1);
  });

  it("limit the stderr of a denial to 4 KiB, without escape sequences", async () => {
    const { hooks } = hookStage(
      hooksOf({ preToolUse: [{ bash: `printf '\\033[31mred%.0s' $(seq 2000) >&2; exit 2` }] }),
    );
    const { permissionDecisionReason: reason = "" } = await hooks.fire("preToolUse", bashCall);
    expect(reason.length).toBeLessThanOrEqual(4096);
    expect(reason.startsWith("redred")).toBe(true);
  });

  it("a hook's failures have the same effect a thousand times, and are reported once", async () => {
    const { hooks, warnings, events } = hookStage([
      programHook({ point: "preToolUse", run: () => Promise.reject(new Error("broken")) }),
    ]);
    for (let time = 0; time < 1000; time++)
      expect((await hooks.fire("preToolUse", bashCall)).permissionDecision).toBe("deny");
    expect(warnings).toEqual(["preToolUse: a function of the program: it broke: broken"]);
    expect(events).toHaveLength(2000);
  });
});

describe("an answer of a hook for Claude", () => {
  it.each([
    [
      { hookSpecificOutput: { permissionDecision: "deny", permissionDecisionReason: "no" } },
      { permissionDecision: "deny", permissionDecisionReason: "no" },
    ],
    [
      { decision: "block", reason: "no" },
      { permissionDecision: "deny", permissionDecisionReason: "no" },
    ],
    [
      { hookSpecificOutput: { permissionDecision: "allow", updatedInput: { command: "pwd" } } },
      { permissionDecision: "allow", modifiedArgs: { command: "pwd" } },
    ],
    [{ modifiedArguments: { command: "pwd" } }, { modifiedArgs: { command: "pwd" } }],
  ])("an answer in Claude's dialect is understood: %o", async (said, expected) => {
    const { hooks } = hookStage([programHook({ point: "preToolUse", run: () => said })]);
    expect(await hooks.fire("preToolUse", bashCall)).toEqual(expected);
  });

  it("an answer in Claude's dialect is understood at a permission request", async () => {
    const said = { hookSpecificOutput: { decision: { behavior: "deny", message: "no", interrupt: true } } };
    const { hooks } = hookStage([programHook({ point: "permissionRequest", run: () => said })]);
    expect(await hooks.fire("permissionRequest", request)).toEqual({
      behavior: "deny",
      message: "no",
      interrupt: true,
    });
  });
});

describe("changed arguments", () => {
  const seen: unknown[] = [];
  const guard = programHook({
    point: "preToolUse",
    run: ({ toolArgs }) => {
      seen.push(toolArgs);
      return JSON.stringify(toolArgs).includes("rm") ? { permissionDecision: "deny" } : { permissionDecision: "allow" };
    },
  });
  const change = (to: string) =>
    programHook({ point: "preToolUse", run: () => ({ modifiedArgs: { command: to }, permissionDecision: "allow" }) });

  it("arguments that a hook changed are passed to the next hook, and earlier hooks are asked again", async () => {
    seen.length = 0;
    const { hooks } = hookStage([guard, change("rm -rf ."), guard]);
    expect(await hooks.fire("preToolUse", bashCall)).toEqual({
      permissionDecision: "deny",
      modifiedArgs: { command: "rm -rf ." },
    });
    expect(seen).toEqual([{ command: "ls" }, { command: "rm -rf ." }, { command: "rm -rf ." }]);
  });

  it("arguments that a hook changed cannot bypass a guard that ran before", async () => {
    const { hooks } = hookStage([guard, change("rm -rf .")]);
    expect((await hooks.fire("preToolUse", bashCall)).permissionDecision).toBe("deny");
    const fine = hookStage([guard, change("pwd")]);
    expect(await fine.hooks.fire("preToolUse", bashCall)).toEqual({
      permissionDecision: "allow",
      modifiedArgs: { command: "pwd" },
    });
  });
});

describe("precedence of answers", () => {
  const say = (fields: object) => ({ bash: `echo '${JSON.stringify(fields)}'` });

  it("a project hook's approval does not count", async () => {
    const allow = say({ permissionDecision: "allow", behavior: "allow" });
    const { hooks } = hookStage(
      hooksOf({ preToolUse: [allow], permissionRequest: [allow] }, { origin: projectOrigin }),
    );
    expect(await hooks.fire("preToolUse", bashCall)).toEqual({});
    expect(await hooks.fire("permissionRequest", request)).toEqual({});
  });

  it("a project hook's refusal counts", async () => {
    const { hooks } = hookStage(
      hooksOf({ preToolUse: [say({ permissionDecision: "ask" })] }, { origin: projectOrigin }),
    );
    expect(await hooks.fire("preToolUse", bashCall)).toEqual({ permissionDecision: "ask" });
  });

  it("a project's hook can add to a prompt but not change it, and a user's hook can do both", async () => {
    const words = { modifiedPrompt: "other", additionalContext: "more" };
    const both = { userPromptSubmitted: [say(words)] };
    const prompt = { ...place, prompt: "mine" };
    expect(await hookStage(hooksOf(both, { origin: projectOrigin })).hooks.fire("userPromptSubmitted", prompt)).toEqual(
      {
        additionalContext: "more",
      },
    );
    expect(await hookStage(hooksOf(both)).hooks.fire("userPromptSubmitted", prompt)).toEqual(words);
  });

  it("only a program's hook can configure the session", async () => {
    const words = { modifiedConfig: { model: "x" }, additionalContext: "more" };
    const fromFile = hookStage(hooksOf({ sessionStart: [say(words)] }));
    expect(await fromFile.hooks.fire("sessionStart", start)).toEqual({ additionalContext: "more" });
    const fromProgram = hookStage([programHook({ point: "sessionStart", run: () => words })]);
    expect(await fromProgram.hooks.fire("sessionStart", start)).toEqual(words);
  });
});
