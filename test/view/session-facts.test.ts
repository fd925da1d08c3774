import { describe, expect, it } from "vitest";
import type { EventData, EventType, SessionEvent } from "../../src/protocol/event.ts";
import { agentRows, groupText } from "../../src/view/agent-rows.ts";
import { SessionView } from "../../src/view/session-view.ts";
import { blockedBy, openAttention } from "../../src/view/waits.ts";
import { became, created, running, said, step } from "../cli/stage.ts";

const told = <T extends EventType>(type: T, data: EventData<T>, agentId?: string): SessionEvent => ({
  ...said(type, data, agentId),
  ephemeral: true,
});

function folded(...events: readonly (SessionEvent | readonly SessionEvent[])[]): SessionView {
  const made = new SessionView();
  for (const event of events.flat()) made.apply(event as SessionEvent);
  return made;
}

describe("facts of the session", () => {
  it("facts of the session follow mode, model, name, folder and limits", () => {
    const { view } = folded(
      said("session.start", {
        ...{ sessionId: "s", version: 1, producer: "troupe", copilotVersion: "1", startTime: "now" },
        ...{ selectedModel: "small", sessionLimits: { maxAiCredits: 5 }, context: { cwd: "/work", branch: "main" } },
      }),
      said("user.message", { content: "Fix the parser\nplease" }),
      said("session.mode_changed", { previousMode: "interactive", newMode: "plan" }),
      said("session.model_change", { previousModel: "small", newModel: "large", reasoningEffort: "high" }),
      said("session.usage_checkpoint", { totalNanoAiu: 2_000_000_000 }),
      said("troupe.limit_reached", {
        limit: "turns",
        allowed: 3,
        used: 3,
        message: "The limit of 3 turns is reached.",
      }),
    );
    expect(view.session).toMatchObject({
      ...{ id: "s", name: "Fix the parser", cwd: "/work", branch: "main", mode: "plan" },
      ...{ model: "large", reasoningEffort: "high" },
    });
    expect(view.budget).toMatchObject({ maxAiCredits: 5, usedNanoAiu: 2_000_000_000, reached: { limit: "turns" } });
    expect(view.main.status).toBe("idle");
    expect(view.main.blocks.map(({ kind }) => kind)).toEqual(["user", "mode", "model", "error"]);
  });

  it("facts of the session give advice with errors", () => {
    const adviceOf = (data: Partial<EventData<"session.error">>) => {
      const [block] = folded(said("session.error", { errorType: "request", message: "no", ...data })).drain();
      return block?.kind === "error" ? block.advice : undefined;
    };
    expect(adviceOf({ remediation: "sign_in" })).toBe("Sign in again.");
    expect(adviceOf({ statusCode: 401 })).toContain("key of the provider");
    expect(adviceOf({ statusCode: 429 })).toContain("Wait a little");
    expect(adviceOf({ errorType: "context_length" })).toContain("/compact");
    expect(adviceOf({})).toBe("Send the message again to retry.");
  });

  it("facts of the session list scheduled prompts with their interval and their time", () => {
    const { view } = folded(
      said("session.schedule_created", { id: 1, prompt: "look", intervalMs: 60_000, recurring: true }),
      said("session.schedule_created", { id: 2, prompt: "once", intervalMs: 1_000, at: 5_000 }),
      said("session.schedule_created", { id: 3, prompt: "gone", intervalMs: 1_000 }),
      said("session.schedule_cancelled", { id: 3 }),
    );
    expect(
      [...view.schedules.values()].map(({ intervalMs, at, isRecurring }) => [intervalMs, at, isRecurring]),
    ).toEqual([
      [60_000, undefined, true],
      [1_000, 5_000, false],
    ]);
  });

  it("facts of the session follow runs of factories through their phases to the end", () => {
    const { view } = folded(
      said("troupe.factory_run", {
        ...{ runId: "r", factoryName: "build", description: "d", args: null, declaredLimits: {} },
        phases: [{ title: "Plan" }, { title: "Make" }],
      }),
      said("troupe.factory_attempt", { runId: "r", attempt: 1, limits: {} }),
      said("troupe.factory_agent", { runId: "r", agentId: "a", toolCallId: "c", label: "maker" }),
      said("troupe.factory_progress", { runId: "r", lines: [{ kind: "phase", text: "Make" }] }),
      said("troupe.factory_progress", { runId: "r", lines: [{ kind: "log", text: "half way" }] }),
      said("troupe.factory_step", { runId: "r", stepId: "1", result: null }),
    );
    expect(view.runs.get("r")).toMatchObject({
      ...{ status: "running", phase: "Make", lastLine: "half way", phases: ["Plan", "Make"], steps: 1, agents: ["a"] },
    });
    const ended = folded(
      said("troupe.factory_run", {
        ...{ runId: "r", factoryName: "build", description: "d", args: null, declaredLimits: {}, phases: [] },
      }),
      said("troupe.factory_end", { runId: "r", status: "error", activeMs: 1, error: "broke" }),
    );
    expect(ended.view.runs.get("r")).toMatchObject({ status: "error", error: "broke" });
  });

  it("facts of the session count how often autopilot sent the agent on since the last message of a person", () => {
    const sentOn = said("user.message", { content: "", source: "autopilot" });
    const made = folded(said("user.message", { content: "go" }), sentOn, sentOn);
    expect(made.view.autopilot.continues).toBe(2);
    made.apply(said("session.task_complete", { summary: "all done", success: true }));
    expect(made.view.autopilot.completed?.summary).toBe("all done");
    made.apply(said("user.message", { content: "and now" }));
    expect(made.view.autopilot).toMatchObject({ continues: 0, completed: undefined });
  });
});

describe("the attention list", () => {
  it("the attention list has requests of any agent, oldest first, until they are answered", () => {
    const made = folded(
      created("scout"),
      running("scout"),
      told("elicitation.requested", { requestId: "form", message: "Your \u200bname?" }, "scout"),
      told("mcp.oauth_required", { requestId: "sign", serverName: "srv", serverUrl: "https://a", reason: "initial" }),
      told("session_limits_exhausted.requested", { requestId: "limit", maxAiCredits: 5, usedAiCredits: 6 }),
      told("auto_mode_switch.requested", { requestId: "switch", errorCode: "quota" }),
      said("permission.requested", {
        requestId: "memory",
        permissionRequest: { kind: "memory", fact: "uses tabs", action: "store" },
      }),
    );
    const kinds = () => openAttention(made.view).map(({ kind }) => kind);
    expect(kinds()).toEqual(["elicitation", "sign_in", "limit", "model_switch", "memory"]);
    const [form] = openAttention(made.view);
    expect(form).toMatchObject({ path: ["scout"], title: "Your <U+200B>name?" });
    expect(form && blockedBy(made.view, form)).toEqual(["scout"]);
    made.apply(told("elicitation.completed", { requestId: "form", action: "accept" }, "scout"));
    made.apply(told("mcp.oauth_completed", { requestId: "sign", outcome: "token" }));
    made.apply(told("session_limits_exhausted.completed", { requestId: "limit", response: { action: "cancel" } }));
    made.apply(told("auto_mode_switch.completed", { requestId: "switch", response: "no" }));
    made.apply(said("permission.completed", { requestId: "memory", result: { kind: "approved" } }));
    expect(kinds()).toEqual([]);
  });

  it("the attention list names the workers of a call instead of its arguments", () => {
    const agents = [
      { id: "one", role: "scout", task: "look" },
      { id: "two", role: "review", task: "read" },
    ];
    const { view } = folded(
      said("tool.execution_start", { toolCallId: "c", toolName: "subagents_run", arguments: { agents } }),
    );
    expect(view.main.lastTool?.title).toBe("subagents_run one (scout), two (review)");
  });

  it("the attention list finds the text of a question in the log, where only its id is stored", () => {
    const question = { question: "Which one?", choices: ["red", "blue"], allow_freeform: false };
    const { view } = folded(
      said("tool.execution_start", { toolCallId: "c", toolName: "ask_user", arguments: question }),
      said("troupe.question", { requestId: "q", kind: "user_input", toolCallId: "c" }),
    );
    expect(openAttention(view)).toMatchObject([
      { id: "q", kind: "question", title: "Which one?", choices: ["red", "blue"], allowFreeform: false, isLive: false },
    ]);
  });

  it("the attention list removes an agent's requests when the agent ends", () => {
    const made = folded(
      created("scout"),
      running("scout"),
      told("elicitation.requested", { requestId: "form", message: "name?" }, "scout"),
      became("scout", "running", "cancelled", { reason: "stopped" }),
    );
    expect(openAttention(made.view)).toEqual([]);
  });
});

describe("agents", () => {
  it("agents are rows of a tree, with workers of one message below the head of their group", () => {
    const worker = (id: string): SessionEvent[] => [
      created(id, { description: id }),
      step(id, { stepId: "result", title: id, status: "completed", note: "found it" }),
    ];
    const { view } = folded(created("a"), created("b", { parentId: "a" }), worker("w1"), worker("w2"));
    expect(
      agentRows(view).map((row) =>
        row.kind === "agent" ? `${" ".repeat(row.depth)}${row.agent.id}` : groupText(row.agents),
      ),
    ).toEqual(["a", " b", "2 workers: 2 completed", " w1", " w2"]);
  });

  it("agents name their own worktree, or that of their parent", () => {
    const folder = "/state/session/worktrees";
    const { view } = folded(
      created("a", { worktree: folder }),
      created("b", { parentId: "a", worktree: `${folder}/a` }),
      created("c"),
    );
    const trees = [...view.agents.values()].map(({ worktree }) => worktree);
    expect(trees).toEqual([`${folder}/a`, `${folder}/a`, undefined]);
  });

  it("agents are dropped beyond a limit, first ended first, and their cost stays with their parents", () => {
    const made = new SessionView();
    for (let index = 0; index < 1_200; index++) {
      made.apply(created(`a${index}`));
      for (const event of running(`a${index}`)) made.apply(event);
      made.apply(said("tool.execution_complete", { toolCallId: "c", success: true }, `a${index}`));
      if (index > 0) made.apply(became(`a${index}`, "running", "completed"));
    }
    expect(made.view.agents.size).toBeLessThanOrEqual(1_000);
    expect(made.view.agents.has("a0")).toBe(true);
    expect(made.view.agents.has("a1")).toBe(false);
    expect(made.view.droppedAgents + made.view.agents.size).toBe(1_200);
    expect(made.view.main.subtree.tools).toBe(1_200);
  });
});
