/**
 * Who is at work, as a tree of lines: a fold over events and its drawing, both without a terminal. Times are those of
 * the caller's clock, in milliseconds.
 */
import { sanitiseLine } from "../lib/text.ts";
import type { EventData, SessionEvent } from "../protocol/event.ts";

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

export class Tree {
  readonly #members = new Map<string, Member>();

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

  /** Everyone who was at work in this process, each before those it started. */
  walk(): readonly { readonly member: Member; readonly depth: number }[] {
    const rows: { member: Member; depth: number }[] = [];
    const below = new Map<string | undefined, Member[]>();
    for (const member of this.#members.values()) {
      const parent = this.#members.has(member.parentId ?? "") ? member.parentId : undefined;
      below.set(parent, [...(below.get(parent) ?? []), member]);
    }
    const visit = (parent: string | undefined, depth: number): void => {
      for (const member of below.get(parent) ?? []) {
        if (!member.isPast) rows.push({ member, depth });
        visit(member.id, member.isPast ? depth : depth + 1);
      }
    };
    visit(undefined, 0);
    return rows;
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
      }
    });
  }

  #with(id: string | undefined, change: (member: Member) => void): void {
    const member = this.get(id);
    if (member) change(member);
  }
}

export const isBusy = ({ status }: Pick<Member, "status">): boolean => status === "queued" || status === "running";

export interface Drawing {
  readonly now: number;
  /** In columns. */
  readonly width: number;
  readonly rows: number;
  readonly colour: boolean;
}

/** The lines of a terminal: the main agent, those at work, and how many are done. Never more or wider than asked. */
export function treeLines(main: string, tree: Tree, drawing: Drawing): string[] {
  const all = tree.walk();
  const shown = chosen(all, drawing.rows - 2);
  const hidden = all.filter((row) => !shown.includes(row)).map(({ member }) => member);
  const lines = shown.map((row, index) => memberLine(row, { tree, drawing, branch: branchOf(shown, index) }));
  const rest = restText(hidden);
  const count = rest === "" ? [] : [[{ text: `  ${rest}`, style: "dim" } as const]];
  return [[{ text: `… ${main}`, style: "plain" } as const], ...lines, ...count]
    .slice(0, Math.max(1, drawing.rows))
    .map((segments) => paint(segments, drawing));
}

type Row = ReturnType<Tree["walk"]>[number];

/** Those at work first; the idle as far as there is room. Whoever ended is only counted. */
function chosen(all: readonly Row[], room: number): readonly Row[] {
  const living = all.filter(({ member }) => isBusy(member) || member.status === "idle");
  if (living.length <= room) return living;
  return living.filter(({ member }) => isBusy(member)).slice(0, Math.max(0, room));
}

function restText(hidden: readonly Member[]): string {
  const count = (what: string, is: (member: Member) => boolean): string[] => {
    const found = hidden.filter(is).length;
    return found === 0 ? [] : [`${found} ${what}`];
  };
  return [
    ...count("more at work", isBusy),
    ...count("idle", ({ status }) => status === "idle"),
    ...count("finished", ({ status }) => status === "completed"),
    ...count("failed", ({ status }) => status === "failed"),
    ...count("stopped", ({ status }) => status === "cancelled"),
  ].join(", ");
}

function branchOf(rows: readonly Row[], index: number): string {
  const { depth = 0 } = rows[index] ?? {};
  const rails = Array.from({ length: depth }, (_, level) => (goesOn(rows, index, level) ? "│ " : "  "));
  return `${rails.join("")}${goesOn(rows, index, depth) ? "├ " : "└ "}`;
}

/** Whether a later row hangs on the same rail. */
function goesOn(rows: readonly Row[], index: number, level: number): boolean {
  for (const { depth } of rows.slice(index + 1)) {
    if (depth < level) return false;
    if (depth === level) return true;
  }
  return false;
}

interface Segment {
  readonly text: string;
  readonly style: "plain" | "name" | "good" | "wait" | "dim";
}

function memberLine({ member }: Row, how: { tree: Tree; drawing: Drawing; branch: string }): Segment[] {
  const { tree, drawing, branch } = how;
  const waits = tree.waitOf(member);
  const elapsed = isBusy(member) ? ` ${seconds(drawing.now - member.startedAt)}` : "";
  const state = waits === undefined ? member.status : `waiting for ${waits}`;
  const { tokens, costUsd } = member.spent;
  const head: Segment[] = [
    { text: branch, style: "dim" },
    { text: member.id, style: "name" },
    { text: ` (${member.agentType}) `, style: "plain" },
    { text: `${state}${elapsed}`, style: waits === undefined && isBusy(member) ? "good" : "wait" },
  ];
  const numbers = [
    tokens > 0 ? ` · ${tokens.toLocaleString("en-US")} tokens` : "",
    costUsd ? ` · $${costUsd.toFixed(4)}` : "",
  ].join("");
  const taken = [...head.map(({ text }) => text), numbers].reduce(
    (sum, text) => sum + columnsOf(sanitiseLine(text)),
    0,
  );
  // A long command must not push what it costs from the screen.
  const room = Math.max(MIN_TOOL_COLUMNS, drawing.width - taken - 3);
  const tool = member.lastTool === "" ? "" : ` · ${clipColumns(sanitiseLine(member.lastTool), room)}`;
  return [...head, { text: `${tool}${numbers}`, style: "dim" }];
}

const MIN_TOOL_COLUMNS = 12;

const codes = { plain: "", name: "1", good: "32", wait: "33", dim: "2" } as const;

/** Foreign words cannot drive the terminal, and no line is wider than the screen, so that it can be drawn over. */
function paint(segments: readonly Segment[], { width, colour }: Drawing): string {
  let left = width;
  let line = "";
  for (const { text, style } of segments) {
    const safe = clipColumns(sanitiseLine(text), left);
    left -= columnsOf(safe);
    line += colour && codes[style] && safe !== "" ? `\u001b[${codes[style]}m${safe}\u001b[0m` : safe;
  }
  return line;
}

/** At least as many columns as a terminal needs for it. */
export function columnsOf(text: string): number {
  let columns = 0;
  for (const character of text) columns += widthOf(character.codePointAt(0) ?? 0);
  return columns;
}

/** From here on characters may be wide; dashes, quotes, arrows and lines of a drawing are not. */
const widthOf = (point: number): number => (point < 0x1100 || (point >= 0x2010 && point < 0x25a0) ? 1 : 2);

function clipColumns(text: string, width: number): string {
  if (columnsOf(text) <= width) return text;
  if (width < 1) return "";
  let kept = "";
  let left = width - 1;
  for (const character of text) {
    left -= widthOf(character.codePointAt(0) ?? 0);
    if (left < 0) break;
    kept += character;
  }
  return `${kept}…`;
}

export const seconds = (milliseconds: number): string => `${Math.max(0, Math.round(milliseconds / 1000))} s`;

/** The one argument that tells most: a path, a pattern, else the first. */
export function toolText(data: EventData<"tool.execution_start">): string {
  return clipColumns(`${data.toolName} ${argumentText(data.arguments)}`.trim(), 100);
}

function argumentText(value: unknown): string {
  if (typeof value !== "object" || value === null) return "";
  const fields = Object.entries(value);
  const main = fields.find(([key]) => ["path", "pattern", "command", "url"].includes(key)) ?? fields[0];
  return main ? (typeof main[1] === "string" ? main[1] : JSON.stringify(main[1])) : "";
}

function act(member: Member, event: SessionEvent): void {
  member.waitingFor = waitBegunBy(event);
  if (event.type === "tool.execution_start") member.lastTool = toolText(event.data);
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
