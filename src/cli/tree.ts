/**
 * Who is at work: a fold over events, without a terminal; `tree-lines` draws it. Times are those of the caller's clock, in
 * milliseconds.
 */
import { clip } from "../lib/text.ts";
import type { EventData, SessionEvent } from "../protocol/event.ts";
import { type Card, withStep } from "./cards.ts";
import { clipColumns } from "./columns.ts";

type Status = EventData<"troupe.task_state">["to"];
type Reason = NonNullable<EventData<"troupe.task_state">["reason"]>;

export interface Member {
  readonly id: string;
  readonly parentId: string | undefined;
  readonly agentType: string;
  readonly description: string;
  status: Status;
  reason: Reason | undefined;
  error: string | undefined;
  /** When its present turn began to wait or to run, and when it came to rest. */
  startedAt: number;
  endedAt: number | undefined;
  lastTool: string;
  /** What it last said it was about to do. */
  intent: string;
  /** Of a coordinated worker. */
  card: Card | undefined;
  /** Set while something it asked for does not come. */
  waitingFor: string | undefined;
  /** A call of its parent waits for its answer. */
  isAwaited: boolean;
  /** Which process began its present turn. */
  began: Era;
  /** What it did was done before this process: nobody asks for it here. */
  isPast: boolean;
  spent: Spent;
  /** What it had spent when its present turn began. */
  spentBefore: Spent;
}

type Era = "past" | "now";

interface Spent {
  readonly tools: number;
  readonly tokens: number;
  /** Null when a price is unknown. */
  readonly costUsd: number | null;
}

const nothing: Spent = { tools: 0, tokens: 0, costUsd: 0 };

/** A line of the tree: someone, or what heads the workers of one message. */
export type Row =
  | { readonly kind: "member"; readonly member: Member; readonly depth: number }
  | { readonly kind: "group"; readonly members: readonly Member[]; readonly depth: number };

export class Tree {
  readonly #members = new Map<string, Member>();
  /** How many messages each coordinator has had. */
  readonly #messages = new Map<string | undefined, number>();

  /** `past`: what an earlier process did, which is known and not shown. */
  apply(event: SessionEvent, at: number, era: Era = "now") {
    switch (event.type) {
      case "troupe.task_created":
        return this.#create(event.data, at, era);
      case "troupe.task_state":
        return this.#change(event.data, at, era);
      case "troupe.task_promoted":
        return this.#with(event.data.taskId, (member) => {
          member.isAwaited = false;
        });
      case "troupe.usage":
        return this.#with(event.agentId, (member) => {
          const { inputTokens, outputTokens, costUsd } = event.data;
          member.spent = added(member.spent, { tools: 0, tokens: inputTokens + outputTokens, costUsd });
        });
      case "troupe.subagent_step":
        return this.#with(event.agentId, (member) => {
          const group = this.#messages.get(member.parentId) ?? 0;
          member.card = withStep(member.card ?? { title: member.description, group, steps: new Map() }, event.data);
        });
      case "user.message":
        this.#messages.set(event.agentId, (this.#messages.get(event.agentId) ?? 0) + 1);
        return this.#with(event.agentId, (member) => act(member, event));
      default:
        return this.#with(event.agentId, (member) => act(member, event));
    }
  }

  get(id: string | undefined): Member | undefined {
    return id === undefined ? undefined : this.#members.get(id);
  }

  /** In the order they were made. */
  get busy(): readonly Member[] {
    return [...this.#members.values()].filter(isBusy);
  }

  /** Whether there is anything to draw. */
  get isEmpty(): boolean {
    for (const member of this.#members.values()) if (!member.isPast) return false;
    return true;
  }

  /** Everyone who was at work in this process, each before those it started; workers below what heads their group. */
  walk(): readonly Row[] {
    const rows: Row[] = [];
    const below = new Map<string | undefined, Member[]>();
    for (const member of this.#members.values()) {
      const parent = this.#members.has(member.parentId ?? "") ? member.parentId : undefined;
      const siblings = below.get(parent);
      if (siblings) siblings.push(member);
      else below.set(parent, [member]);
    }
    const visit = (parent: string | undefined, depth: number): void => {
      const grouped = new Set<number>();
      const one = (member: Member, level: number): void => {
        if (!member.isPast) rows.push({ kind: "member", member, depth: level });
        visit(member.id, member.isPast ? level : level + 1);
      };
      const children = below.get(parent) ?? [];
      for (const member of children) {
        const group = member.isPast ? undefined : member.card?.group;
        if (group === undefined) one(member, depth);
        else if (!grouped.has(group)) {
          grouped.add(group);
          const members = children.filter(({ card, isPast }) => card?.group === group && !isPast);
          rows.push({ kind: "group", members, depth });
          for (const worker of members) one(worker, depth + 1);
        }
      }
    };
    visit(undefined, 0);
    return rows;
  }

  /** Whether its card belongs to what its coordinator is at now. */
  isCurrent({ card, parentId }: Member): boolean {
    return card !== undefined && card.group === (this.#messages.get(parentId) ?? 0);
  }

  /** How many agents a call of the main agent waits for. */
  get awaited(): number {
    return this.busy.filter(({ parentId, isAwaited }) => parentId === undefined && isAwaited).length;
  }

  /** Which agent, or what else, someone waits for. */
  waitOf(member: Member): string | undefined {
    if (member.status === "queued") return "a free place";
    if (member.status !== "running") return undefined;
    const awaited = [...this.#members.values()].filter(
      (other) => other.parentId === member.id && other.isAwaited && isBusy(other),
    );
    return awaited.length > 0 ? awaited.map(({ id }) => id).join(", ") : member.waitingFor;
  }

  #create(data: EventData<"troupe.task_created">, at: number, began: Era): void {
    if (this.#members.has(data.taskId)) return;
    this.#members.set(data.taskId, {
      id: data.taskId,
      parentId: data.parentId,
      agentType: data.agentName,
      description: data.description,
      status: "queued",
      reason: undefined,
      error: undefined,
      startedAt: at,
      endedAt: undefined,
      lastTool: "",
      intent: "",
      card: undefined,
      waitingFor: undefined,
      isAwaited: data.mode === "sync",
      began,
      isPast: false,
      spent: nothing,
      spentBefore: nothing,
    });
  }

  #change({ taskId, from, to, reason, error }: EventData<"troupe.task_state">, at: number, era: Era): void {
    this.#with(taskId, (member) => {
      const wasResting = from !== null && from !== "queued" && from !== "running";
      member.status = to;
      member.reason = reason;
      member.error = error;
      member.waitingFor = undefined;
      member.isPast = !isBusy(member) && (era === "past" || member.began === "past");
      if (isBusy(member)) {
        member.began = era;
        if (wasResting || to === "running") member.startedAt = at;
        if (to === "running") member.spentBefore = member.spent;
        member.endedAt = undefined;
      } else {
        member.endedAt ??= at;
        member.lastTool = "";
        member.intent = "";
      }
    });
  }

  #with(id: string | undefined, change: (member: Member) => void): void {
    const member = this.get(id);
    if (member) change(member);
  }
}

export const isBusy = ({ status }: Pick<Member, "status">): boolean => status === "queued" || status === "running";

/** The one argument that tells most: a path, a pattern, else the first. */
export function toolText(data: EventData<"tool.execution_start">): string {
  return clipColumns(`${data.toolName} ${argumentText(data.arguments)}`.trim(), 100);
}

function argumentText(value: unknown): string {
  if (typeof value !== "object" || value === null) return "";
  const fields = Object.entries(value);
  const main = fields.find(([key]) => ["path", "pattern", "command", "url"].includes(key)) ?? fields[0];
  if (main === undefined) return "";
  if (typeof main[1] !== "string") return JSON.stringify(main[1]);
  return main[0] === "path" ? `${pathText(main[1])}${rangeText(Object.fromEntries(fields).view_range)}` : main[1];
}

const MAX_PATH_CHARACTERS = 70;

/** Long paths differ at their ends, so the beginning is cut. */
function pathText(path: string): string {
  if (path.length <= MAX_PATH_CHARACTERS) return path;
  const end = path.slice(1 - MAX_PATH_CHARACTERS);
  const slash = end.indexOf("/");
  return `…${slash < 0 ? end : end.slice(slash)}`;
}

function rangeText(range: unknown): string {
  if (!Array.isArray(range) || !range.every((line) => typeof line === "number")) return "";
  return `:${range[0]}-${range[1] === -1 ? "end" : range[1]}`;
}

function act(member: Member, event: SessionEvent): void {
  member.waitingFor = waitBegunBy(event);
  if (event.type === "tool.execution_start") member.lastTool = toolText(event.data);
  if (event.type === "assistant.message" && (event.data.toolRequests ?? []).length > 0) {
    const [first = ""] = event.data.content.trim().split("\n");
    if (first !== "") member.intent = clip(first, 200);
  }
  if (event.type === "tool.execution_complete") {
    member.spent = added(member.spent, { tools: 1, tokens: 0, costUsd: 0 });
  }
}

function waitBegunBy(event: SessionEvent): string | undefined {
  if (event.type === "permission.requested") return "an approval";
  if (event.type === "troupe.retry") return `the model: ${event.data.reason}`;
  return undefined;
}

function added(a: Spent, b: Spent): Spent {
  return {
    tools: a.tools + b.tools,
    tokens: a.tokens + b.tokens,
    costUsd: a.costUsd === null || b.costUsd === null ? null : a.costUsd + b.costUsd,
  };
}
