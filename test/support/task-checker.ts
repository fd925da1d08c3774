/**
 * Checks the agents of a session, using only its log. It shares no code with the registry, so that a bug there cannot
 * hide here.
 */
import { defined } from "../../src/lib/defined.ts";
import type { EventData, EventOf, EventType, SessionEvent } from "../../src/protocol/event.ts";

export interface Violation {
  readonly rule: TaskRule;
  readonly taskId: string;
  readonly message: string;
  /** The event that shows the violation. Absent if something is missing at the end. */
  readonly eventId?: string;
}

/**
 * - `one-end`: each task has one end, by valid transitions, in one process.
 * - `heard-once`: the parent is notified once of each rest.
 * - `words`: a success has an answer.
 * - `no-remains`: an ended agent does nothing more and leaves no agents behind.
 * - `rights`: an agent has no more rights than its parent.
 * - `accounts`: all usage belongs to an agent and was allowed.
 * - `places`: no more agents work than there are slots, and the longest-waiting starts first.
 * - `messages`: an accepted message is delivered once.
 */
export type TaskRule =
  | "one-end"
  | "heard-once"
  | "words"
  | "no-remains"
  | "rights"
  | "accounts"
  | "places"
  | "messages";

export interface CheckTasksOptions {
  readonly maxConcurrency?: number;
  /** The session is idle: no agent may be working, and no notice may be undelivered. */
  readonly settled?: boolean;
}

/** Returns an empty list if there is no violation. */
export function checkTasks(events: Iterable<SessionEvent>, options: CheckTasksOptions = {}): Violation[] {
  const checker = new TaskChecker(options);
  for (const event of events) checker.check(event);
  checker.finish();
  return checker.violations;
}

type Status = EventData<"troupe.task_state">["to"];
type Created = EventData<"troupe.task_created">;
type Handlers = { readonly [T in EventType]?: (event: EventOf<T>) => void };

interface Seen {
  readonly created: Created;
  readonly parent: Seen | undefined;
  readonly tools: ReadonlySet<string> | null;
  status: Status;
  mode: "sync" | "background";
  /** It was working when its process ended. */
  isCutOff: boolean;
  hasWords: boolean;
  turns: number;
  heard: "nothing to hear" | "due" | "said" | "confirmed";
  heardBy: "notice" | "read" | undefined;
  readBy: string | undefined;
  /** Its position in the queue. */
  order: number;
  overtakenBy: string | undefined;
  readonly unread: Set<string>;
  readonly spent: { turns: number; tokens: number; costUsd: number };
  isRemoved: boolean;
}

const steps: Readonly<Record<Status, readonly Status[]>> = {
  queued: ["running", "idle", "cancelled"],
  running: ["idle", "completed", "failed", "cancelled"],
  idle: ["queued", "completed", "cancelled"],
  completed: [],
  failed: [],
  cancelled: [],
};
const isEnd = (status: Status): boolean => steps[status].length === 0;
const isAtWork = (status: Status): boolean => status === "queued" || status === "running";
const CUT_OFF_CODES = ["interrupted", "rejected", "denied", "timeout"];

class TaskChecker {
  readonly violations: Violation[] = [];
  readonly #options: CheckTasksOptions;
  readonly #tasks = new Map<string, Seen>();
  /** Agents that start by themselves: they are no tasks, but have their own usage. */
  readonly #sidekicks = new Set<string>();
  #event: SessionEvent | undefined;
  #nextOrder = 0;

  constructor(options: CheckTasksOptions) {
    this.#options = options;
  }

  check(event: SessionEvent): void {
    this.#event = event;
    const handler = this.#handlers[event.type] as ((event: SessionEvent) => void) | undefined;
    handler?.(event);
  }

  finish(): void {
    this.#event = undefined;
    if (!this.#options.settled) return;
    for (const [id, task] of this.#tasks) {
      if (isAtWork(task.status)) this.#say("one-end", id, `is still ${task.status} at the end`);
      const isParentThere = !task.parent || !isEnd(task.parent.status);
      if (task.mode === "background" && task.heard === "due" && isParentThere) {
        this.#say("heard-once", id, `is ${task.status}, and its parent never heard of it`);
      }
    }
  }

  readonly #handlers: Handlers = {
    "session.resume": () => {
      for (const task of this.#tasks.values()) if (isAtWork(task.status)) task.isCutOff = true;
    },
    "troupe.sidekick_triggered": ({ agentId }) => {
      if (agentId !== undefined) this.#sidekicks.add(agentId);
    },
    "troupe.task_created": ({ data }) => this.#created(data),
    "troupe.task_state": ({ data }) => this.#state(data),
    "troupe.task_promoted": ({ data }) => {
      const task = this.#find(data.taskId, "was promoted");
      if (task) task.mode = "background";
    },
    "troupe.task_message": ({ data }) => {
      const task = this.#find(data.taskId, "was written to");
      if (task && isEnd(task.status)) this.#say("messages", data.taskId, "was written to after its end");
      task?.unread.add(data.messageId);
    },
    "troupe.task_message_delivered": ({ data }) => {
      const task = this.#find(data.taskId, "was told something");
      for (const id of data.messageIds) task?.unread.delete(id);
    },
    "troupe.task_removed": ({ data }) => {
      const task = this.#find(data.taskId, "was removed");
      if (task && !isEnd(task.status)) this.#say("one-end", data.taskId, `was removed while ${task.status}`);
      if (task?.isRemoved) this.#say("one-end", data.taskId, "was removed twice");
      if (task) task.isRemoved = true;
    },
    "user.message": (event) => {
      this.#acts(event);
      const task = event.agentId === undefined ? undefined : this.#tasks.get(event.agentId);
      const id = event.data.interactionId;
      if (!task || id === undefined || id === event.agentId) return;
      if (!task.unread.delete(id)) this.#say("messages", event.agentId ?? "", `heard message ${id} twice or unsent`);
    },
    "assistant.turn_start": (event) => this.#acts(event),
    "assistant.message": (event) => this.#acts(event),
    "tool.execution_start": (event) => this.#acts(event),
    "tool.execution_complete": (event) => this.#callEnded(event),
    "system.notification": (event) => this.#notified(event),
    "troupe.task_notice_delivered": ({ data }) => this.#confirmed(data),
    "troupe.usage": (event) => this.#used(event),
  };

  #created(data: Created): void {
    const { taskId: id, parentId } = data;
    if (this.#tasks.has(id)) {
      this.#say("one-end", id, "was made twice");
      return;
    }
    const parent = parentId === undefined ? undefined : this.#tasks.get(parentId);
    if (parentId !== undefined && !parent) this.#say("one-end", id, `has a parent nobody knows: ${parentId}`);
    if (parent && isEnd(parent.status)) this.#say("no-remains", id, `was made by ${parentId} after its end`);
    if (data.depth !== (parent?.created.depth ?? 0) + 1) this.#say("rights", id, `is not ${data.depth} deep`);
    const allowed = parent?.tools ?? null;
    const excess = allowed === null ? [] : (data.tools ?? []).filter((tool) => !allowed.has(tool));
    if (excess.length > 0) this.#say("rights", id, `may use what its parent may not: ${excess.join(", ")}`);
    for (const key of ["turns", "tokens", "costUsd"] as const) {
      const [own, parents] = [data.limits?.[key], parent?.created.limits?.[key]];
      if (parents !== undefined && (own ?? 0) > parents) this.#say("accounts", id, `has more ${key} than its parent`);
    }
    this.#tasks.set(id, {
      created: data,
      parent,
      tools: data.tools === null ? allowed : new Set(data.tools),
      status: "queued",
      mode: data.mode,
      isCutOff: false,
      hasWords: false,
      turns: 0,
      heard: "nothing to hear",
      heardBy: undefined,
      readBy: undefined,
      order: this.#nextOrder++,
      overtakenBy: undefined,
      unread: new Set(),
      spent: { turns: 0, tokens: 0, costUsd: 0 },
      isRemoved: false,
    });
  }

  #state(data: EventData<"troupe.task_state">): void {
    const { taskId: id, from, to } = data;
    const task = this.#find(id, `became ${to}`);
    if (!task) return;
    if (isEnd(task.status)) {
      this.#say("one-end", id, `became ${to} after it had ended as ${task.status}`);
      return;
    }
    if (from !== task.status) this.#say("one-end", id, `became ${to} from ${from}, but was ${task.status}`);
    else if (!steps[from].includes(to)) this.#say("one-end", id, `cannot become ${to} from ${from}`);
    this.#checkCutOff(task, data);
    this.#checkWords(task, data);
    task.status = to;
    if (to === "queued") task.order = this.#nextOrder++;
    if (to === "running") this.#checkSlots(task);
    if (to === "cancelled") this.#checkRemains(id);
    task.heard = isAtWork(to) ? "nothing to hear" : "due";
    task.heardBy = undefined;
    task.readBy = undefined;
  }

  #checkCutOff(task: Seen, { taskId, from, to, reason }: EventData<"troupe.task_state">): void {
    const isInterruption = to === "idle" && reason === "interrupted";
    if (task.isCutOff && !isInterruption && to !== "cancelled") {
      this.#say("one-end", taskId, `became ${to} in another process than the one it worked in`);
    }
    if (from === "queued" && to === "idle" && !isInterruption) {
      this.#say("one-end", taskId, "became idle without having worked");
    }
    task.isCutOff = false;
  }

  #checkWords(task: Seen, data: EventData<"troupe.task_state">): void {
    const { taskId, to, reason, turn, response = "", responseFile } = data;
    if (turn !== undefined) {
      task.turns++;
      if (turn !== task.turns) this.#say("one-end", taskId, `ended turn ${turn} as its ${task.turns}.`);
      task.hasWords = response.trim() !== "" || responseFile !== undefined;
    }
    if (!isAtWork(to) && reason === undefined) this.#say("words", taskId, `became ${to} without a reason`);
    const isSuccess = to === "completed" || reason === "finished";
    if (isSuccess && !task.hasWords) this.#say("words", taskId, `became ${to} without an answer`);
    if (to === "completed" && reason !== "finished") this.#say("words", taskId, `was completed as ${reason}`);
  }

  #checkRemains(id: string): void {
    for (const [other, task] of this.#tasks) {
      if (!isEnd(task.status) && ancestors(task).some(({ created }) => created.taskId === id)) {
        this.#say("no-remains", other, `lives on after ${id}, for which it worked, was stopped`);
      }
    }
  }

  /** An agent that waits for a working child has lent it its slot. */
  #checkSlots(starting: Seen): void {
    const { maxConcurrency = Number.POSITIVE_INFINITY } = this.#options;
    const id = starting.created.taskId;
    const running = [...this.#tasks.values()].filter(({ status }) => status === "running");
    const lenders = new Set(running.flatMap(({ parent }) => (parent?.status === "running" ? [parent] : [])));
    const used = running.length - lenders.size;
    if (used > maxConcurrency) this.#say("places", id, `is at work as number ${used} of ${maxConcurrency}`);
    if (starting.overtakenBy) this.#say("places", id, `waited longer than ${starting.overtakenBy}, which began first`);
    starting.overtakenBy = undefined;
    if (starting.parent?.status === "running") return;
    for (const task of this.#tasks.values()) {
      if (task.status === "queued" && !task.isCutOff && task.order < starting.order) task.overtakenBy = id;
    }
  }

  /** An agent sent a message or did something. */
  #acts({ agentId, type }: SessionEvent): void {
    const task = agentId === undefined ? undefined : this.#tasks.get(agentId);
    if (!task || agentId === undefined) return;
    if (isEnd(task.status)) this.#say("no-remains", agentId, `goes on after its end: ${type}`);
    else if (task.status !== "running") this.#say("one-end", agentId, `works while ${task.status}: ${type}`);
    else if (task.isCutOff) this.#say("one-end", agentId, `works on in another process: ${type}`);
  }

  #notified({ agentId, data: { kind } }: EventOf<"system.notification">): void {
    if (kind.type !== "agent_completed" && kind.type !== "agent_idle") return;
    const id = kind.agentId;
    const task = this.#find(id, "was told of");
    if (!task) return;
    if (agentId !== task.created.parentId) {
      this.#say("heard-once", id, "was told of to another than its parent");
      return;
    }
    if (task.heard !== "due") this.#say("heard-once", id, `was told of once more (${task.heard})`);
    const told = kind.type === "agent_idle" ? "idle" : kind.status;
    const actual = task.status === "cancelled" ? "failed" : task.status;
    if (told !== actual) this.#say("heard-once", id, `was told of as ${told}, but is ${task.status}`);
    task.heard = "said";
    task.heardBy = "notice";
  }

  #confirmed({ taskId: id, to, by, toolCallId }: EventData<"troupe.task_notice_delivered">): void {
    const task = this.#find(id, "was heard of");
    if (!task) return;
    if (to !== task.status) this.#say("heard-once", id, `was heard of as ${to}, but is ${task.status}`);
    if (task.heard === "confirmed") this.#say("heard-once", id, `was heard of twice as ${to}`);
    if (task.heard === "due" && by === "notice") this.#say("heard-once", id, "was heard of by a notice never given");
    if (task.heard === "said" && task.heardBy !== by) this.#say("heard-once", id, `was read after its notice`);
    task.heard = "confirmed";
    task.heardBy = by;
    task.readBy = toolCallId;
  }

  /** The result of a call that started or read an agent notifies its parent, unless the call was cut off. */
  #callEnded({ agentId, data }: EventOf<"tool.execution_complete">): void {
    const wasCutOff = CUT_OFF_CODES.includes(data.error?.code ?? "");
    for (const task of this.#tasks.values()) {
      if (task.created.parentId !== agentId) continue;
      if (task.readBy === data.toolCallId && wasCutOff) {
        task.heard = "due";
        task.readBy = undefined;
      }
      if (task.created.toolCallId !== data.toolCallId) continue;
      if (task.mode === "sync" && task.heard === "due" && !wasCutOff) {
        task.heard = "said";
        task.heardBy = "read";
      }
      task.mode = "background";
    }
  }

  #used({ agentId, data }: EventOf<"troupe.usage">): void {
    if (agentId === undefined || this.#sidekicks.has(agentId)) return;
    const task = this.#tasks.get(agentId);
    if (!task) {
      this.#say("accounts", agentId, "used something, but nobody knows it");
      return;
    }
    const used = { turns: 1, tokens: data.inputTokens + data.outputTokens, costUsd: data.costUsd ?? 0 };
    if (used.tokens < 0 || used.costUsd < 0) this.#say("accounts", agentId, "gave something back");
    for (const { created, spent } of [task, ...ancestors(task)]) {
      for (const key of ["turns", "tokens", "costUsd"] as const) {
        const limit = created.limits?.[key];
        if (limit !== undefined && spent[key] >= limit) {
          this.#say("accounts", created.taskId, `called a model with no ${key} left of ${limit}`);
        }
        spent[key] += used[key];
      }
    }
  }

  #find(id: string, what: string): Seen | undefined {
    const task = this.#tasks.get(id);
    if (!task) this.#say("one-end", id, `${what}, but was never made`);
    return task;
  }

  #say(rule: TaskRule, taskId: string, message: string): void {
    const eventId = this.#event?.id;
    this.violations.push({ rule, taskId, message, ...defined({ eventId }) });
  }
}

function ancestors({ parent }: Seen): readonly Seen[] {
  return parent ? [parent, ...ancestors(parent)] : [];
}
