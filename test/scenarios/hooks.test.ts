import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createHooks } from "../../src/hooks/fire.ts";
import { programHook } from "../../src/hooks/load.ts";
import type { HookPoint } from "../../src/hooks/points.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import { calls, fails, says } from "../../src/model/faux/faux-step.ts";
import { policyOf } from "../../src/runtime/permissions/policy.ts";
import { story } from "../../src/testing/story.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { create } from "../../src/tools/files/create.ts";
import { rememberedFiles } from "../../src/tools/files/files.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { ToolError } from "../../src/tools/tool-error.ts";
import { dataOf, echo, refuse, type Stage, stage, tool } from "../support/stage.ts";

type Said = Record<string, unknown>;
type Hear = (point: HookPoint, input: Said) => Said | undefined;

/** A session whose hooks of these points are one function, which is told everything they are. */
async function hooked(
  steps: Parameters<typeof stage>[0],
  points: readonly HookPoint[],
  hear: Hear = () => undefined,
  more: Parameters<typeof stage>[1] = {},
): Promise<Stage & { told: (Said & { point: string })[] }> {
  const told: (Said & { point: string })[] = [];
  const definitions = points.map((point) =>
    programHook({
      point,
      run: (input) => {
        told.push({ point, ...input });
        return hear(point, input);
      },
    }),
  );
  const staged = await stage(steps, {
    hooks: (emit) =>
      createHooks({
        definitions,
        emit,
        stamp: systemStamp,
        environment: {},
        projectRoot: "/stage",
        prepare: () => Promise.reject(new Error("no programs here")),
      }),
    ...more,
  });
  return { ...staged, told };
}

const echoCall = calls(["echo", { text: "hi" }]);
const shown = ({ model }: Stage, request: number, message: number): string | undefined =>
  model.requests[request]?.messages[message]?.content;

describe("LOOP-21: hooks around a call", () => {
  it("a preToolUse hook can deny a call: the model reads the denial, and the call never runs", async () => {
    const staged = await hooked([echoCall, says("ok")], ["preToolUse"], () => ({
      permissionDecision: "deny",
      permissionDecisionReason: "not on Mondays",
    }));
    await staged.session.sendAndWait({ prompt: "go" });
    expect(shown(staged, 1, 2)).toBe("Denied by preToolUse hook: not on Mondays");
    expect(story(staged.session.events).filter((line) => /hook|execution/.test(line))).toEqual([
      "root tool.execution_start",
      "root hook.start",
      "root hook.end",
      "root tool.execution_complete",
    ]);
    expect(dataOf(staged.session.events, "tool.execution_complete")[0]?.error).toMatchObject({ code: "denied" });
  });

  it("fire for a tool that does not exist, with the model's own arguments", async () => {
    const { session, told } = await hooked([calls(["nothing", { a: 1 }]), says("ok")], ["preToolUse"]);
    await session.sendAndWait({ prompt: "go" });
    expect(told).toMatchObject([{ point: "preToolUse", toolName: "nothing", toolArgs: { a: 1 } }]);
  });

  it("a hook neither runs for a call that the limits of a message refuse, nor answers it", async () => {
    const bind = (): never => {
      throw new ToolError("Only the research agent is started.", { code: "denied" });
    };
    const staged = await hooked(
      [echoCall, says("ok")],
      ["preToolUse"],
      () => ({ handled: true, responseContent: "done" }),
      { tools: [{ ...echo, bind }] },
    );
    await staged.session.sendAndWait({ prompt: "go" });
    expect(shown(staged, 1, 2)).toBe("Only the research agent is started.");
    expect(staged.told).toEqual([]);
  });

  it("a preToolUse hook can change arguments, which are checked and used, and add context to the result", async () => {
    const staged = await hooked([echoCall, says("ok")], ["preToolUse"], () => ({
      modifiedArgs: { text: "changed" },
      additionalContext: "by the way",
    }));
    await staged.session.sendAndWait({ prompt: "go" });
    expect(shown(staged, 1, 2)).toBe("changed\n\nby the way");
    // The answer is one to the call as it was run, and so is the call that the model sees.
    expect(staged.model.requests[1]?.messages[1]).toMatchObject({ calls: [{ arguments: { text: "changed" } }] });
    expect(dataOf(staged.session.events, "assistant.message")[0]?.toolRequests).toMatchObject([
      { arguments: { text: "hi" } },
    ]);
  });

  it("cause an error of the call when the changed arguments do not fit", async () => {
    const staged = await hooked([echoCall, says("ok")], ["preToolUse"], () => ({ modifiedArgs: { text: 5 } }));
    await staged.session.sendAndWait({ prompt: "go" });
    expect(shown(staged, 1, 2)).toContain("Bad arguments for echo");
  });

  it("postToolUse can change and add to a result, and a failure fires only postToolUseFailure", async () => {
    const failing = tool("failing", async () => refuse("no"));
    const staged = await hooked(
      [calls(["echo", { text: "hi" }], ["failing", {}]), says("ok")],
      ["postToolUse", "postToolUseFailure"],
      (point, input) =>
        point === "postToolUse"
          ? { modifiedResult: { resultType: "success", textResultForLlm: "HI" }, additionalContext: "loud" }
          : { additionalContext: `why: ${String(input.error)}` },
      { tools: [echo, failing] },
    );
    await staged.session.sendAndWait({ prompt: "go" });
    expect(staged.told.map(({ point, toolName }) => [point, toolName]).sort()).toEqual([
      ["postToolUse", "echo"],
      ["postToolUseFailure", "failing"],
    ]);
    expect([shown(staged, 1, 2), shown(staged, 1, 3)].sort()).toEqual(["HI\n\nloud", "no\n\nwhy: no"]);
  });

  it("hooks have a hook.end for every hook.start, even when the session is aborted during a hook", async () => {
    const { session } = await hooked([echoCall, says("ok")], ["preToolUse"], () => {
      session.abort();
      return undefined;
    });
    expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "aborted" });
    const ids = (type: "hook.start" | "hook.end") => dataOf(session.events, type).map((one) => one.hookInvocationId);
    expect(ids("hook.start")).toHaveLength(1);
    expect(ids("hook.end")).toEqual(ids("hook.start"));
  });
});

describe("hooks and permissions", () => {
  const guarded = async (folder: string, deny: string[], points: HookPoint[], hear: Hear) =>
    hooked([calls(["create", { path: "a.txt", file_text: "x" }]), says("done")], points, hear, {
      tools: [create],
      stamp: systemStamp,
      cwd: folder,
      roots: [folder],
      policy: policyOf({ denyTools: deny }, { roots: [folder], stateRoot: "/nowhere", writable: [] }),
      ports: { files: rememberedFiles({ keep: async () => undefined }) },
    });

  it("replace the user's answer by an allow when no rule applies, and the log has request and answer", async () => {
    await using folder = await tempFolder();
    const { session } = await guarded(folder.path, [], ["permissionRequest"], () => ({ behavior: "allow" }));
    await session.sendAndWait({ prompt: "go" });
    expect(readFileSync(join(folder.path, "a.txt"), "utf8")).toBe("x");
    expect(dataOf(session.events, "permission.requested")).toMatchObject([{ resolvedByHook: true }]);
    expect(dataOf(session.events, "permission.completed")).toMatchObject([{ result: { kind: "approved" } }]);
  });

  it.each(["preToolUse", "permissionRequest"] as const)("a hook cannot allow %s against a deny rule", async (point) => {
    await using folder = await tempFolder();
    const { session } = await guarded(folder.path, ["write"], [point], () => ({
      behavior: "allow",
      permissionDecision: "allow",
    }));
    await session.sendAndWait({ prompt: "go" });
    expect(existsSync(join(folder.path, "a.txt"))).toBe(false);
    expect(dataOf(session.events, "troupe.permission")).toMatchObject([{ decision: "denied", by: "rule" }]);
  });

  it.each(["preToolUse", "permissionRequest"] as const)(
    "a hook's approval does not replace the user's answer at %s for a path outside the allowed folders",
    async (point) => {
      const base = tool("bash", async () => "ran");
      const access = { kind: "shell", command: "cat /etc/hostname", cwd: "/stage", intention: "" } as const;
      const bash: Tool = { ...base, bind: (given) => ({ ...base.bind(given), access: async () => [access] }) };
      const answer = { behavior: "allow", permissionDecision: "allow" };
      const { session } = await hooked([calls(["bash", {}]), says("done")], [point], () => answer, {
        tools: [bash],
        cwd: "/stage",
        roots: ["/stage"],
        policy: policyOf({}, { roots: ["/stage"], stateRoot: "/nowhere", writable: [] }),
      });
      await session.sendAndWait({ prompt: "go" });
      expect(dataOf(session.events, "troupe.permission")).toMatchObject([{ decision: "denied", by: "nobody_to_ask" }]);
    },
  );

  it("a permissionRequest hook that denies with interrupt ends the answer", async () => {
    await using folder = await tempFolder();
    const { session, model } = await guarded(folder.path, [], ["permissionRequest"], () => ({
      behavior: "deny",
      message: "stop here",
      interrupt: true,
    }));
    expect(await session.sendAndWait({ prompt: "go" })).toMatchObject({ kind: "done" });
    expect(model.requests).toHaveLength(1);
    expect(dataOf(session.events, "tool.execution_complete")).toMatchObject([
      { error: { code: "rejected", message: "Denied by permissionRequest hook: stop here" } },
    ]);
  });

  it("a hook can deny against an allow rule, and the model reads the hook's reason", async () => {
    await using folder = await tempFolder();
    const { session, model } = await guarded(folder.path, [], ["permissionRequest"], () => ({
      behavior: "deny",
      message: "frozen",
    }));
    await session.sendAndWait({ prompt: "go" });
    expect(model.requests[1]?.messages[2]?.content).toBe("Denied by permissionRequest hook: frozen");
    expect(existsSync(join(folder.path, "a.txt"))).toBe(false);
  });

  it("cause a denial without a user when they require the user's decision, whatever is allowed", async () => {
    await using folder = await tempFolder();
    const { session } = await hooked(
      [calls(["create", { path: "a.txt", file_text: "x" }]), says("done")],
      ["preToolUse"],
      () => ({ permissionDecision: "ask", permissionDecisionReason: "look at this" }),
      {
        tools: [create],
        cwd: folder.path,
        roots: [folder.path],
        policy: policyOf({ allTools: true }, { roots: [folder.path], stateRoot: "/nowhere", writable: [] }),
        ports: { files: rememberedFiles({ keep: async () => undefined }) },
      },
    );
    await session.sendAndWait({ prompt: "go" });
    expect(existsSync(join(folder.path, "a.txt"))).toBe(false);
    expect(dataOf(session.events, "troupe.permission")).toMatchObject([{ kind: "hook", decision: "denied" }]);
  });
});

describe("hooks around a session", () => {
  it("fire for prompt, start, stop and end in order, each once", async () => {
    const points = ["sessionStart", "userPromptSubmitted", "userPromptTransformed", "agentStop", "sessionEnd"] as const;
    const { session, told } = await hooked([says("one"), says("two")], points);
    await session.sendAndWait({ prompt: "first" });
    await session.sendAndWait({ prompt: "second" });
    await session.close();
    expect(told.map(({ point }) => point)).toEqual([
      "userPromptSubmitted",
      "userPromptTransformed",
      "sessionStart",
      "agentStop",
      "userPromptSubmitted",
      "userPromptTransformed",
      "agentStop",
      "sessionEnd",
    ]);
    expect(told[2]).toMatchObject({ source: "new", initialPrompt: "first", sessionId: "session-1", cwd: "/stage" });
    expect(told[7]).toMatchObject({ reason: "complete", finalMessage: "two" });
  });

  it("hooks add text around the prompt for the model, and the typed text is stored", async () => {
    const staged = await hooked([says("ok")], ["sessionStart", "userPromptSubmitted"], (point) =>
      point === "sessionStart"
        ? { additionalContext: "house rules" }
        : { modifiedPrompt: "GO", additionalContext: "a hint" },
    );
    await staged.session.sendAndWait({ prompt: "go" });
    expect(staged.model.requests[0]?.messages.map(({ content }) => content)).toEqual(["house rules", "GO", "a hint"]);
    expect(dataOf(staged.session.events, "user.message")[1]).toMatchObject({ content: "go", transformedContent: "GO" });
    expect(staged.session.record.title).toBe("go");
  });

  it("a userPromptSubmitted hook may answer in place of the model", async () => {
    const { session, model } = await hooked([], ["userPromptSubmitted"], () => ({
      handled: true,
      responseContent: "42",
    }));
    expect(await session.sendAndWait({ prompt: "what?" })).toEqual({ kind: "done", answer: "42" });
    expect(model.requests).toHaveLength(0);
  });

  it("ORC-53: the reason of an agentStop block is the next message", async () => {
    const staged = await hooked([says("done?"), says("done!")], ["agentStop"], (_, input) =>
      input.stop_hook_active ? undefined : { decision: "block", reason: "run the tests" },
    );
    expect(await staged.session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "done!" });
    expect(shown(staged, 1, 2)).toBe("run the tests");
    expect(staged.told.map((one) => one.stop_hook_active)).toEqual([false, true]);
  });

  it("ORC-55: agentStop hooks run 8 times when they always block", async () => {
    const steps = Array.from({ length: 9 }, () => says("done"));
    const { session, model } = await hooked(steps, ["agentStop"], () => ({ decision: "block", reason: "more" }));
    expect(await session.sendAndWait({ prompt: "go" })).toMatchObject({ kind: "done" });
    expect(model.requests).toHaveLength(9);
    expect(dataOf(session.events, "session.warning")).toMatchObject([{ warningType: "hook" }]);
  });

  it("fire errorOccurred when a model call finally fails, and may request a retry", async () => {
    const { session, told } = await hooked([fails(400), says("ok")], ["errorOccurred"], () => ({
      errorHandling: "retry",
    }));
    expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "ok" });
    expect(told).toMatchObject([{ point: "errorOccurred", errorContext: "model_call" }]);
  });

  it("hooks run after a message is stored and accepted", async () => {
    let release = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { session } = await stage([says("ok")], {
      hooks: (emit) =>
        createHooks({
          definitions: [programHook({ point: "userPromptSubmitted", run: () => gate })],
          emit,
          stamp: systemStamp,
          environment: {},
          projectRoot: "/stage",
          prepare: () => Promise.reject(new Error("no programs here")),
        }),
    });
    const messageId = await session.send({ prompt: "go" });
    expect(dataOf(session.events, "troupe.message_queued")).toMatchObject([{ messageId, content: "go" }]);
    expect(dataOf(session.events, "user.message")).toEqual([]);
    release();
    await session.queue.whenIdle();
    expect(dataOf(session.events, "user.message")).toMatchObject([{ content: "go", interactionId: messageId }]);
  });
});
