/**
 * The state of all tasks, derived only from the session's log. Reading a log again gives the same records.
 * Conversations take precedence over confirmations: a message or notice is not repeated if a crash prevented its
 * confirmation.
 */
import { defined } from "../lib/defined.ts";
import { clip } from "../lib/text.ts";
import type { EventData, EventOf, EventType, SessionEvent } from "../protocol/event.ts";
import { isAsked } from "../protocol/message.ts";
import { type Activity, addUsage, noUsage, type TaskMessage, type TaskRecord } from "./task-record.ts";
import { isFinal, isIdleOrEnded } from "./task-state.ts";

const MAX_ACTIVITIES = 5;
const MAX_ACTIVITY_CHARACTERS = 200;

/** Error codes of calls whose result says nothing about the task. */
const CUT_OFF: ReadonlySet<string> = new Set(["interrupted", "rejected", "denied", "timeout"]);

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type TaskDraft = Mutable<TaskRecord> & { readonly answers: TaskRecord["answers"][number][] };
type Handlers = { readonly [T in EventType]?: (event: EventOf<T>) => readonly TaskRecord[] };

export class TaskFold {
  readonly #records = new Map<string, TaskDraft>();
  readonly #children = new Map<string | undefined, string[]>();
  /** Tasks to check when a call ends, by the calling agent and call id. */
  readonly #byCall = new Map<string, Set<string>>();
  #agentsOfMessage = 0;

  constructor(events: Iterable<SessionEvent> = []) {
    for (const event of events) this.apply(event);
  }

  /** Rebuilds the records after a rewind. */
  refill(events: Iterable<SessionEvent>): void {
    this.#records.clear();
    this.#children.clear();
    this.#byCall.clear();
    this.#agentsOfMessage = 0;
    for (const event of events) this.apply(event);
  }

  /** Also returns removed tasks: an id is never reused and its results stay readable. */
  get(id: string): TaskRecord | undefined {
    return this.#records.get(id);
  }

  /** Returns all tasks in order of creation. */
  all(): readonly TaskRecord[] {
    return [...this.#records.values()];
  }

  /** The number of agents started at any depth since the last message to the main agent, without those of factories. Includes those that agents elsewhere may start. */
  get agentsOfMessage(): number {
    return this.#agentsOfMessage;
  }

  /** True for agents of a factory run and their descendants. */
  isOfFactory(id: string | undefined): boolean {
    for (let one = this.get(id ?? ""); one; one = this.get(one.parentId ?? "")) {
      if (one.spec.factoryRunId !== undefined) return true;
    }
    return false;
  }

  childrenOf(id: string | undefined): readonly TaskRecord[] {
    return (this.#children.get(id) ?? []).flatMap((child) => this.#records.get(child) ?? []);
  }

  /** Applies an event. Returns the tasks for which more than a counter changed. */
  apply(event: SessionEvent): readonly TaskRecord[] {
    // The table ties each handler to its event type, which the compiler cannot infer through an index.
    const handler = this.#handlers[event.type] as ((event: SessionEvent) => readonly TaskRecord[]) | undefined;
    return handler?.(event) ?? [];
  }

  readonly #handlers: Handlers = {
    "troupe.task_created": (event) => this.#create(event),
    "troupe.task_state": (event) => this.#change(event),
    "troupe.task_promoted": ({ data }) =>
      this.#with(data.taskId, (record) => {
        record.mode = "background";
      }),
    "troupe.task_message": ({ data }) =>
      this.#with(data.taskId, (record) => {
        const { messageId: id, content, from } = data;
        if (record.messages.some((known) => known.id === id)) return;
        record.messages = [...record.messages, { id, content, ...defined({ from }) }];
        record.isCalled = record.status === "idle";
      }),
    "troupe.task_message_delivered": ({ data }) =>
      this.#with(data.taskId, (record) => {
        for (const id of data.messageIds) markNotified(record, id);
      }),
    "user.message": ({ agentId, data }) => {
      if (agentId === undefined && isAsked(data.source)) this.#agentsOfMessage = 0;
      return this.#with(agentId, (record) => {
        if (data.interactionId !== undefined) markNotified(record, data.interactionId);
      });
    },
    "system.notification": ({ agentId, data }) => {
      const { kind } = data;
      if (kind.type !== "agent_completed" && kind.type !== "agent_idle") return [];
      return this.#with(kind.agentId, (record) => {
        if (record.parentId === agentId && record.notice?.state === "due") {
          record.notice = { ...record.notice, state: "emitted", by: "notice" };
        }
      });
    },
    "troupe.task_notice_delivered": ({ data }) => this.#confirm(data),
    "troupe.task_sent": ({ data: { taskId, ...work } }) => {
      this.#agentsOfMessage += work.agents;
      return this.#with(taskId, (record) => {
        const { seq = 0, changes } = record.sent ?? {};
        record.sent = { ...work, seq, ...defined({ changes }) };
      });
    },
    "troupe.task_returned": ({ data: { taskId, workId, outcome, message, changes, seq, usage } }) =>
      this.#with(taskId, (record) => {
        if (record.sent?.workId !== workId || record.sent.returned) return;
        const returned = { outcome, ...defined({ message }) };
        record.sent = { ...record.sent, seq, returned, ...defined({ changes }) };
        record.usage = addUsage(record.usage, { ...usage, toolCalls: 0 });
      }),
    "troupe.task_removed": ({ data }) =>
      this.#with(data.taskId, (record) => {
        record.isRemoved = true;
      }),
    "tool.execution_start": (event) => {
      const { agentId, data } = event;
      if (agentId !== undefined) this.#act(event, data.toolName);
      return this.#with(agentId, (record) => {
        const intent = data.toolName === "report_intent" ? intentOf(data.arguments) : undefined;
        if (intent !== undefined) record.latestIntent = intentIn(intent);
      });
    },
    "tool.execution_complete": (event) => {
      this.#with(event.agentId, (record) => {
        record.usage = { ...record.usage, toolCalls: record.usage.toolCalls + 1 };
      });
      return this.#callEnded(event);
    },
    "assistant.message": (event) => {
      const { content, toolRequests = [] } = event.data;
      if (content.trim() !== "") this.#act(event, content);
      this.#with(event.agentId, (record) => {
        // Text that accompanies tool calls describes their purpose.
        if (content.trim() !== "" && toolRequests.length > 0) record.latestIntent = intentIn(content);
        if (event.data.model !== undefined) record.model = event.data.model;
      });
      return [];
    },
    "troupe.usage": ({ agentId, data }) => {
      this.#with(agentId, (record) => {
        record.usage = addUsage(record.usage, { ...data, calls: data.calls ?? 1, toolCalls: 0 });
        record.model = data.model;
      });
      return [];
    },
    "troupe.agent_state": ({ agentId, data: { task } }) => {
      if (task) {
        this.#with(agentId, (record) => {
          record.usage = { ...record.usage, toolCalls: task.toolCalls };
          record.model = task.model;
          record.latestIntent = task.latestIntent;
          record.recentActivity = task.recentActivity;
        });
      }
      return [];
    },
  };

  #with(id: string | undefined, change: (record: TaskDraft) => void): readonly TaskRecord[] {
    const record = id === undefined ? undefined : this.#records.get(id);
    if (!record) return [];
    change(record);
    return [record];
  }

  #create({ data, timestamp }: EventOf<"troupe.task_created">): readonly TaskRecord[] {
    if (this.#records.has(data.taskId)) return [];
    const at = Date.parse(timestamp);
    const parent = data.parentId === undefined ? undefined : this.#records.get(data.parentId);
    const record: TaskDraft = {
      id: data.taskId,
      parentId: data.parentId,
      spec: data,
      tools: within(data.tools, parent?.tools ?? null),
      status: "queued",
      reason: undefined,
      mode: data.mode,
      error: undefined,
      limit: undefined,
      answers: [],
      inbound: [],
      isBriefed: false,
      messages: [],
      isCalled: false,
      notice: undefined,
      sent: undefined,
      usage: noUsage,
      model: data.model,
      latestIntent: undefined,
      recentActivity: [],
      createdAt: at,
      changedAt: at,
      startedAt: undefined,
      endedAt: undefined,
      activeMs: 0,
      isRemoved: false,
    };
    this.#records.set(record.id, record);
    const siblings = this.#children.get(record.parentId);
    if (siblings) siblings.push(record.id);
    else this.#children.set(record.parentId, [record.id]);
    this.#watchCall(record, data.toolCallId);
    if (data.kind === "agent" && !this.isOfFactory(record.id)) this.#agentsOfMessage++;
    return [record];
  }

  #change({ data, timestamp }: EventOf<"troupe.task_state">): readonly TaskRecord[] {
    return this.#with(data.taskId, (record) => {
      if (isFinal(record.status)) return;
      const at = Date.parse(timestamp);
      if (record.status === "running") record.activeMs += Math.max(0, at - record.changedAt);
      if (data.to === "running") record.startedAt ??= at;
      if (isFinal(data.to)) record.endedAt = at;
      record.status = data.to;
      record.reason = data.reason;
      record.error = data.error;
      record.limit = data.limit;
      record.changedAt = at;
      record.isCalled = false;
      if (isIdleOrEnded(data.to) && record.sent) record.sent = { ...record.sent, isPast: true };
      if (data.turn !== undefined) addAnswer(record, data, data.turn);
      record.notice = isIdleOrEnded(data.to)
        ? { to: data.to, answerNumber: record.answers.length, state: "due", by: "notice" }
        : undefined;
    });
  }

  #confirm(data: EventData<"troupe.task_notice_delivered">): readonly TaskRecord[] {
    return this.#with(data.taskId, (record) => {
      const { notice } = record;
      if (!notice || notice.to !== data.to || notice.state === "confirmed") return;
      const readBy = data.toolCallId;
      record.notice = { ...notice, state: "confirmed", by: data.by, ...defined({ readBy }) };
      if (readBy !== undefined) this.#watchCall(record, readBy);
    });
  }

  /** Handles the end of a parent's call that started a task or read one. */
  #callEnded({ agentId, data }: EventOf<"tool.execution_complete">): readonly TaskRecord[] {
    const key = callKey(agentId, data.toolCallId);
    const touched = [...(this.#byCall.get(key) ?? [])].flatMap((id) => this.#records.get(id) ?? []);
    this.#byCall.delete(key);
    const wasCutOff = CUT_OFF.has(data.error?.code ?? "");
    for (const record of touched) {
      if (record.notice?.readBy === data.toolCallId) {
        if (wasCutOff)
          record.notice = {
            to: record.notice.to,
            answerNumber: record.notice.answerNumber,
            state: "due",
            by: "notice",
          };
      } else if (record.mode === "sync" && record.notice?.state === "due" && !wasCutOff) {
        record.notice = { ...record.notice, state: "emitted", by: "read", readBy: data.toolCallId };
      }
      // No call waits for the task any more: its parent is notified from now on.
      if (record.spec.toolCallId === data.toolCallId) record.mode = "background";
    }
    return touched;
  }

  #watchCall(record: TaskRecord, toolCallId: string): void {
    const key = callKey(record.parentId, toolCallId);
    const watching = this.#byCall.get(key);
    if (watching) watching.add(record.id);
    else this.#byCall.set(key, new Set([record.id]));
  }

  #act({ agentId, timestamp }: SessionEvent, message: string): void {
    this.#with(agentId, (record) => {
      const activity: Activity = {
        message: clip(message.trim(), MAX_ACTIVITY_CHARACTERS),
        timestamp: Date.parse(timestamp),
      };
      record.recentActivity = [...record.recentActivity.slice(1 - MAX_ACTIVITIES), activity];
    });
  }
}

/** Returns the messages for the agent's next answer: its prompt, if that was not delivered, and later messages. */
export function undelivered({ id, spec, isBriefed, messages }: TaskRecord): readonly TaskMessage[] {
  return isBriefed ? messages : [{ id, content: spec.prompt }, ...messages];
}

/** Whether the parent must be notified. */
export function hasDueNotice({ mode, notice, spec }: TaskRecord): boolean {
  return mode === "background" && spec.factoryRunId === undefined && notice?.state === "due";
}

/** Restricts tools to those of the parent. Null: no restriction. */
export function within(tools: readonly string[] | null, allowed: readonly string[] | null): readonly string[] | null {
  if (tools === null || allowed === null) return tools ?? allowed;
  return tools.filter((tool) => allowed.includes(tool));
}

function markNotified(record: TaskDraft, messageId: string): void {
  if (messageId === record.id) {
    if (!record.isBriefed) record.inbound = [...record.inbound, record.spec.prompt];
    record.isBriefed = true;
    return;
  }
  const message = record.messages.find(({ id }) => id === messageId);
  if (!message) return;
  record.messages = record.messages.filter((other) => other !== message);
  record.inbound = [...record.inbound, message.content];
}

function addAnswer(record: TaskDraft, data: EventData<"troupe.task_state">, number: number): void {
  markNotified(record, record.id);
  const { response = "", responseFile } = data;
  const message = record.inbound.join("\n\n");
  const reason = data.reason ?? "finished";
  record.answers.push({ number, message, reason, response, ...defined({ responseFile }) });
  record.inbound = [];
}

const callKey = (agentId: string | undefined, toolCallId: string): string => JSON.stringify([agentId, toolCallId]);

function intentIn(words: string): string {
  const [first = ""] = words.trim().split("\n");
  return clip(first.trim(), MAX_ACTIVITY_CHARACTERS);
}

function intentOf(args: unknown): string | undefined {
  const intent = typeof args === "object" && args !== null && "intent" in args ? args.intent : undefined;
  return typeof intent === "string" ? intent : undefined;
}
