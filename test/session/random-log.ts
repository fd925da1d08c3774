/** Random logs of sessions with everything that folds look at, and the result of all folds over a list of events. */
import type { EventData, EventType, SessionEvent } from "../../src/protocol/event.ts";
import { lastModelOf } from "../../src/runtime/models/last-model.ts";
import { InboxEntries } from "../../src/session/agents/inbox-entries.ts";
import { isSidekickId } from "../../src/session/agents/sidekick-id.ts";
import { AgentUsage } from "../../src/session/budget/agent-usage.ts";
import { Budget } from "../../src/session/budget/budget.ts";
import { tallyOf } from "../../src/session/compaction/condense.ts";
import { workSnapshot } from "../../src/session/compaction/work-snapshot.ts";
import { Conversation } from "../../src/session/conversation.ts";
import { cutOff } from "../../src/session/cut-off.ts";
import { modeOf } from "../../src/session/modes/modes.ts";
import { foldSchedules } from "../../src/session/modes/schedules.ts";
import { pendingWork } from "../../src/session/requests/pending-work.ts";
import { PendingMessages } from "../../src/session/turn/pending-messages.ts";
import { SessionPreamble } from "../../src/session/turn/session-preamble.ts";
import { TaskFold } from "../../src/tasks/task-fold.ts";
import { isFinal } from "../../src/tasks/task-state.ts";

type Random = () => number;

/** A log of about this many events. Ids are unique; what an agent does follows what it did before. */
export function randomLog(random: Random, length: number, options: { rewinds?: boolean } = {}): SessionEvent[] {
  const events: SessionEvent[] = [];
  const pick = <T>(...choices: readonly T[]): T => choices[Math.floor(random() * choices.length)] as T;
  const chance = (probability: number): boolean => random() < probability;
  const number = (most: number): number => Math.floor(random() * most);
  let serial = 0;
  const put = <T extends EventType>(type: T, data: EventData<T>, agentId?: string): void => {
    const id = `e${++serial}`;
    const timestamp = new Date(Date.UTC(2026, 0, 1) + serial * 1000).toISOString();
    const parentId = events.at(-1)?.id ?? null;
    events.push({ id, timestamp, parentId, ...(agentId !== undefined && { agentId }), type, data } as SessionEvent);
  };
  const usage = (agentId?: string): void =>
    put(
      "troupe.usage",
      {
        ...{ turnId: "0", provider: pick("p", "q"), model: pick("m", "n"), attempts: 1, durationMs: number(50) },
        ...{ inputTokens: number(900), outputTokens: number(90), cacheReadTokens: number(9), cacheWriteTokens: 0 },
        ...{ reasoningTokens: number(5), costUsd: chance(0.02) ? null : number(1000) / 1e6 },
      },
      agentId,
    );
  const open: { agentId: string | undefined; toolCallId: string; toolName: string }[] = [];
  const agents: { id: string; status: string }[] = [];
  const queued: string[] = [];
  const steps: Record<string, () => void> = {
    start: () =>
      put("session.start", {
        sessionId: "one",
        version: 1,
        producer: "troupe",
        copilotVersion: "1",
        startTime: "2026-01-01T00:00:00.000Z",
        selectedModel: pick("m", "n"),
        context: { cwd: "/here" },
      }),
    resume: () =>
      put("session.resume", {
        resumeTime: "2026-01-01T00:00:00.000Z",
        eventCount: events.length,
        selectedModel: pick("m", "n"),
        context: { cwd: pick("/here", "/there") },
      }),
    shutdown: () =>
      put("session.shutdown", {
        shutdownType: "routine",
        sessionStartTime: 0,
        totalApiDurationMs: 0,
        currentModel: "m",
        codeChanges: { filesModified: [], linesAdded: 0, linesRemoved: 0 },
        modelMetrics: {},
      }),
    model: () => put("session.model_change", { newModel: pick("m", "n") }),
    chosen: () => put("troupe.model_chosen", { reference: pick("p/m", "q/n") }),
    mode: () =>
      put("session.mode_changed", { previousMode: "interactive", newMode: pick("plan", "interactive", "autopilot") }),
    system: () =>
      put("system.message", { role: "system", content: `system ${serial}` }, pick(undefined, agents.at(-1)?.id)),
    named: () => put("troupe.session_named", { name: `name ${serial}`, ...(chance(0.5) && { auto: true }) }),
    schedule: () =>
      put("session.schedule_created", {
        id: number(6),
        prompt: "later",
        intervalMs: 1000,
        recurring: true,
      } as EventData<"session.schedule_created">),
    cancelled: () => put("session.schedule_cancelled", { id: number(6) }),
    skill: () =>
      put(
        "skill.invoked",
        { name: pick("a", "b", "c"), path: "/skill", content: `skill ${serial}` } as EventData<"skill.invoked">,
        pick(undefined, agents.at(-1)?.id),
      ),
    checkpoint: () => put("session.usage_checkpoint", { totalNanoAiu: serial }),
    damage: () =>
      put("troupe.log_damage", {
        damage: [{ kind: "checksum", line: serial, offset: serial, bytes: 1, message: "x" }],
      }),
    cleared: () => put("session.context_cleared", {} as EventData<"session.context_cleared">),
    entry: () =>
      put(
        "troupe.inbox_entry",
        {
          entryId: `entry-${number(8)}`,
          senderName: "s",
          senderType: "sidekick",
          summary: "found",
          content: "it",
        } as EventData<"troupe.inbox_entry">,
        "side#1",
      ),
    told: () =>
      put("system.notification", {
        content: "look",
        kind: {
          type: "new_inbox_message",
          entryId: `entry-${number(8)}`,
          senderName: "s",
          senderType: "sidekick",
          summary: "found",
        },
      } as EventData<"system.notification">),
    note: () =>
      put(
        "system.notification",
        { content: `note ${serial}`, kind: { type: "other" } } as unknown as EventData<"system.notification">,
        pick(undefined, agents.at(-1)?.id),
      ),
    sidekick: () => put("assistant.message", { messageId: `m${serial}`, content: "hm", toolRequests: [] }, "side#1"),
    queue: () => {
      queued.push(`q${serial}`);
      put("troupe.message_queued", { messageId: `q${serial}`, content: `queued ${serial}`, mode: "enqueue" });
    },
    withdraw: () => {
      const messageId = queued.shift();
      if (messageId !== undefined) put("troupe.message_withdrawn", { messageId });
    },
    user: () => {
      const interactionId = chance(0.5) ? queued.shift() : undefined;
      const source = chance(0.2) ? pick("hook-x", "schedule", "autopilot") : undefined;
      put("user.message", {
        content: `words ${serial} ${"long ".repeat(number(200))}`,
        ...(interactionId !== undefined && { interactionId }),
        ...(source !== undefined && { source }),
      });
    },
    turn: () => turn(undefined),
    agentTurn: () => {
      const agent = agents[number(agents.length)];
      if (agent && !isFinal(agent.status as "idle")) turn(agent.id);
    },
    finish: () => finish(open.shift()),
    compact: () => compact(pick(undefined, undefined, agents[number(agents.length)]?.id)),
    task: () => {
      const id = `agent-${agents.length}`;
      const call = { toolCallId: `call-${serial}`, name: "task", arguments: {} };
      const mode = pick("sync", "background");
      put("assistant.message", { messageId: `m${serial}`, content: "", toolRequests: [call] });
      put("tool.execution_start", { toolCallId: call.toolCallId, toolName: "task", arguments: {} });
      put("troupe.task_created", {
        taskId: id,
        toolCallId: call.toolCallId,
        kind: "agent",
        agentName: "a",
        agentDisplayName: "A",
        description: "d",
        prompt: `do ${serial}`,
        mode,
        depth: 1,
        multiTurn: true,
        tools: null,
      });
      put("troupe.task_state", { taskId: id, from: "queued", to: "running" } as EventData<"troupe.task_state">);
      agents.push({ id, status: "running" });
      open.push({ agentId: undefined, toolCallId: call.toolCallId, toolName: "task" });
      put("user.message", { content: `do ${serial}`, interactionId: id }, id);
    },
    state: () => {
      const agent = agents[number(agents.length)];
      if (!agent) return;
      const to = pick("running", "idle", "idle", "completed", "failed", "cancelled");
      put("troupe.task_state", {
        taskId: agent.id,
        from: agent.status,
        to,
        reason: "finished",
        turn: 1,
        response: "done",
      } as EventData<"troupe.task_state">);
      if (!isFinal(agent.status as "idle")) agent.status = to;
    },
    heard: () => {
      const agent = agents[number(agents.length)];
      if (!agent) return;
      if (chance(0.5))
        put("system.notification", {
          content: "done",
          kind: { type: pick("agent_idle", "agent_completed"), agentId: agent.id },
        } as EventData<"system.notification">);
      const read = open.find(({ agentId }) => agentId === undefined);
      put("troupe.task_notice_delivered", {
        taskId: agent.id,
        to: pick("idle", "completed"),
        turn: 1,
        ...(read ? { by: "read", toolCallId: read.toolCallId } : { by: "notice" }),
      } as EventData<"troupe.task_notice_delivered">);
    },
    write: () => {
      const agent = agents[number(agents.length)];
      if (!agent) return;
      put("troupe.task_message", {
        taskId: agent.id,
        messageId: `tm${serial}`,
        content: "more",
      } as EventData<"troupe.task_message">);
      if (chance(0.7)) put("user.message", { content: "more", interactionId: `tm${serial - 1}` }, agent.id);
    },
    rewind: () => {
      if (!options.rewinds) return;
      const marks = events.filter(({ type }) => type === "troupe.rewound");
      const mark = marks[number(marks.length)];
      if (mark && chance(0.3)) put("troupe.rewound", { upToEventId: mark.id, eventsRemoved: 1, restores: mark.id });
      else put("troupe.rewound", { upToEventId: events[1 + number(events.length - 1)]?.id ?? "", eventsRemoved: 1 });
      open.length = 0;
    },
  };

  function turn(agentId: string | undefined): void {
    const turnId = String(serial);
    put("assistant.turn_start", { turnId }, agentId);
    usage(agentId);
    const calls = Array.from({ length: number(3) }, (_, index) => ({
      ...{ toolCallId: `call-${serial}-${index}`, name: pick("view", "read_inbox", "report_intent") },
      arguments: { entry_id: `entry-${number(8)}`, intent: `intent ${serial}` },
    }));
    put(
      "assistant.message",
      {
        messageId: `m${serial}`,
        content: pick("", `answer ${serial}`),
        toolRequests: calls,
        turnId,
        ...(chance(0.5) && { model: pick("m", "n") }),
      },
      agentId,
    );
    for (const { toolCallId, name, arguments: given } of calls) {
      if (chance(0.9)) put("tool.execution_start", { toolCallId, toolName: name, arguments: given }, agentId);
      if (chance(0.2)) put("troupe.call_changed", { toolCallId, arguments: { other: serial } }, agentId);
      if (chance(0.3))
        put(
          "permission.requested",
          {
            requestId: `r${serial}`,
            permissionRequest: { kind: "custom-tool", toolCallId, toolName: name, toolDescription: "" },
          } as EventData<"permission.requested">,
          agentId,
        );
      open.push({ agentId, toolCallId, toolName: name });
    }
    const leaves = chance(0.15);
    while (!leaves && open.some((call) => call.agentId === agentId)) {
      const place = open.findIndex((call) => call.agentId === agentId);
      finish(open.splice(place, 1)[0]);
    }
    if (!leaves || chance(0.5)) put("assistant.turn_end", { turnId }, agentId);
  }

  function finish(call: (typeof open)[number] | undefined): void {
    if (!call) return;
    const { agentId, toolCallId } = call;
    const success = chance(0.8);
    put(
      "tool.execution_complete",
      success
        ? { toolCallId, success, result: { content: `result ${serial}` } }
        : { toolCallId, success, error: { message: "no", code: pick("interrupted", "failed") } },
      agentId,
    );
  }

  function compact(agentId: string | undefined): void {
    put("session.compaction_start", {} as EventData<"session.compaction_start">, agentId);
    const success = chance(0.85);
    put(
      "session.compaction_complete",
      {
        ...{ success, trigger: "threshold", checkpointNumber: serial },
        ...(success && { summaryContent: `summary ${serial}`, tokenLimit: pick(4_000, 128_000) }),
        ...(chance(0.8) && { messagesRemoved: number(12) }),
      } as EventData<"session.compaction_complete">,
      agentId,
    );
  }

  const frequent = [
    "turn",
    "turn",
    "turn",
    "user",
    "agentTurn",
    "agentTurn",
    "finish",
    "task",
    "state",
    "heard",
    "compact",
  ];
  const rare = Object.keys(steps).filter((name) => !frequent.includes(name) && name !== "start" && name !== "rewind");
  steps.start?.();
  while (events.length < length) {
    if (options.rewinds && chance(0.03)) steps.rewind?.();
    else steps[chance(0.7) ? pick(...frequent) : pick(...rare)]?.();
  }
  return events;
}

/** The results of every fold that a session is made of. */
export async function foldAll(events: readonly SessionEvent[], removed: readonly SessionEvent[] = []) {
  const conversations = new Map<string | undefined, Conversation>([[undefined, new Conversation()]]);
  const introduction = new SessionPreamble();
  const ledger = new AgentUsage();
  for (const event of events) {
    introduction.apply(event);
    const { agentId } = event;
    if (isSidekickId(agentId)) continue;
    const conversation = conversations.get(agentId) ?? new Conversation();
    conversations.set(agentId, conversation);
    conversation.apply(event);
    if (event.type === "troupe.usage" && agentId !== undefined) ledger.apply(agentId, event.data);
  }
  const tasks = new TaskFold(events);
  const budget = new Budget([...removed, ...events]);
  const said: unknown[] = [];
  introduction.before((async (type: string, data: unknown) => void said.push([type, data])) as never, {
    model: "never",
    promptAndTools: { system: "never" } as never,
  });
  const isLive = (id: string | undefined): boolean => {
    const status = id === undefined ? undefined : tasks.get(id)?.status;
    const { openCalls = [], openTurn } = conversations.get(id) ?? {};
    return status === undefined || !isFinal(status) || openCalls.length > 0 || openTurn !== undefined;
  };
  const main = conversations.get(undefined) as Conversation;
  const compactions = events.filter((event) => event.type === "session.compaction_complete");
  const both = [...removed, ...events];
  return plain({
    conversations: [...conversations].filter(([id]) => isLive(id)).map(([id, { state }]) => [id, state]),
    tasks: tasks.all(),
    agentsOfMessage: tasks.agentsOfMessage,
    budget: [budget.session, [...budget.perModel]],
    ledger: tasks.all().map(({ id }) => [id, ledger.own(id)]),
    title: introduction.title,
    said,
    waiting: PendingMessages.restored(events).waiting,
    mode: modeOf(events),
    schedules: foldSchedules(events),
    inbox: new InboxEntries(events).all,
    model: await lastModelOf(events, { cwd: "/" } as never, async () => true),
    left: pendingWork(events, main, { cwd: "/here" }),
    cut: cutOff(events),
    standing: await Promise.all(["s", "s/agent-0"].map((key) => workSnapshot(key, { events }))),
    tally: tallyOf(events),
    names: events.filter(({ type }) => type === "troupe.session_named").map(({ data }) => data),
    damage: both.filter(({ type }) => type === "troupe.log_damage").map(({ data }) => data),
    checkpoints: both.flatMap((event) =>
      event.type === "session.compaction_complete" ? [event.data.checkpointNumber] : [],
    ),
    lastSummary: compactions.findLast(({ agentId, data }) => agentId === undefined && data.success)?.data,
    lastUsage: events.findLast(({ type, agentId }) => type === "troupe.usage" && agentId === undefined)?.data,
    lastCheckpoint: events.findLast(({ type }) => type === "session.usage_checkpoint")?.data,
    ran: events.some(({ type }) => type === "tool.execution_start"),
    hadTurn: events.some(({ type }) => type === "assistant.turn_start"),
    first: events[0]?.id,
    last: events.at(-1)?.id,
  });
}

const plain = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;
