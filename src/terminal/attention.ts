/**
 * Cards of requests that wait for a person. A card never takes the keyboard: its single keys count only after the focus
 * key, or on an empty prompt once nothing was typed for a moment. A new card starts that moment anew.
 */
import { plural } from "../lib/text.ts";
import type { AttentionItem, View } from "../view/view.ts";
import { blockedBy, openAttention } from "../view/waits.ts";
import type { CardState } from "./panels/live-region.ts";
import { agentName } from "./panels/strip.ts";

const QUIET_MS = 400;
const LONGEST_MS = 1_500;

export interface AttentionPorts {
  now(): number;
  isDraftEmpty(): boolean;
  onChange(): void;
}

/** A key of a card, by what it means. */
export type CardAnswer =
  | { readonly kind: "approve"; readonly how: "once" | "session" | "always" }
  | { readonly kind: "deny" }
  /** Deny and say why, or answer in words. */
  | { readonly kind: "words" }
  | { readonly kind: "choice"; readonly index: number }
  | { readonly kind: "fill" }
  | { readonly kind: "view" }
  | { readonly kind: "open-agent" };

export class Attention {
  readonly #ports: AttentionPorts;
  #items: readonly AttentionItem[] = [];
  readonly #local = new Map<AttentionItem, (index: number) => void>();
  #appearedAt = 0;
  #lastKeyAt = Number.NEGATIVE_INFINITY;
  #focused: string | undefined;
  /** The item that the user asked for. */
  #first: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(ports: AttentionPorts) {
    this.#ports = ports;
  }

  get current(): AttentionItem | undefined {
    return this.#items[0];
  }

  get items(): readonly AttentionItem[] {
    return this.#items;
  }

  get isFocused(): boolean {
    return this.current !== undefined && this.#focused === this.current.id;
  }

  /** Takes over the requests that are open now. Returns those that are new. */
  update(view: View): readonly AttentionItem[] {
    const before = this.#items;
    const open = openAttention(view);
    // Items that only another client can answer come last.
    const answerable = open.filter((item) => keysOf(item) !== VIEW_ONLY);
    const all = [...this.#local.keys(), ...answerable, ...open.filter((item) => !answerable.includes(item))];
    this.#items = [...all.filter(({ id }) => id === this.#first), ...all.filter(({ id }) => id !== this.#first)];
    if (this.#items[0]?.id !== before[0]?.id) {
      this.#appearedAt = this.#ports.now();
      this.#focused = undefined;
      this.#wake();
    }
    const known = new Set(before.map(({ id }) => id));
    return this.#items.filter(({ id }) => !known.has(id));
  }

  /** Shows this item before all others. */
  bring(itemId: string, view: View): void {
    this.#first = itemId;
    this.update(view);
  }

  /** Asks a question of the terminal itself, as a card like all others. Resolves with the index of the choice. */
  ask(about: Pick<AttentionItem, "title" | "text" | "choices">, view: View): Promise<number> {
    return new Promise((resolve) => {
      const item: AttentionItem = {
        ...about,
        id: `terminal-${this.#local.size}-${this.#ports.now()}`,
        kind: "question",
        agentId: undefined,
        path: [],
        toolCallId: undefined,
        at: 0,
        canAllowForSession: false,
        allowFreeform: false,
        request: undefined,
        isAnswered: false,
        isLive: true,
      };
      this.#local.set(item, resolve);
      this.update(view);
      this.#ports.onChange();
    });
  }

  /** Answers a question of the terminal itself. False when the item is a request of the session. */
  answerLocal(item: AttentionItem, index: number, view: View): boolean {
    const resolve = this.#local.get(item);
    if (!resolve) return false;
    this.#local.delete(item);
    this.update(view);
    resolve(index);
    return true;
  }

  /** Every key that a person presses counts as typing. */
  typed(): void {
    this.#lastKeyAt = this.#ports.now();
    if (this.current) this.#wake();
  }

  /** False when there is no card. */
  focus(): boolean {
    this.#focused = this.current?.id;
    return this.#focused !== undefined;
  }

  leave(): void {
    this.#focused = undefined;
    // DetachableTasks is a decision not to answer now: the keys stay off until the focus key or a new card.
    this.#appearedAt = Number.POSITIVE_INFINITY;
  }

  get isArmed(): boolean {
    if (!this.current) return false;
    return this.isFocused || (this.#ports.isDraftEmpty() && this.#ports.now() >= this.#armedAt);
  }

  get #armedAt(): number {
    const quiet = Math.max(this.#appearedAt, this.#lastKeyAt) + QUIET_MS;
    return Math.min(quiet, this.#appearedAt + LONGEST_MS);
  }

  /** `typedFor`: the request for which words are being typed. Its card stays, without keys. */
  card(view: View, typedFor?: AttentionItem): CardState | undefined {
    const item = typedFor ?? this.current;
    if (!item) return undefined;
    const agent = item.agentId === undefined ? undefined : view.agents.get(item.agentId);
    const blocked = blockedBy(view, item).length - 1;
    return {
      item,
      total: this.#items.length,
      isArmed: this.isArmed && !typedFor,
      isFocused: this.isFocused && !typedFor,
      keys: typedFor ? "" : keysOf(item),
      agentName: agent && agentName(agent),
      blocked: blocked > 0 ? `${plural(blocked, "agent")} ${blocked === 1 ? "waits" : "wait"} for it` : undefined,
    };
  }

  /** The meaning of a key for the card, when its keys count; undefined lets the key through. */
  answer(key: string | undefined): CardAnswer | undefined {
    const item = this.current;
    if (!item || key === undefined || !this.isArmed) return undefined;
    return answerOf(item, key);
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  /** Draws again when the card becomes armed. */
  #wake(): void {
    clearTimeout(this.#timer);
    const wait = this.#armedAt - this.#ports.now();
    if (!this.current || !(wait > 0) || !Number.isFinite(wait)) return;
    this.#timer = setTimeout(this.#ports.onChange, wait + 1);
  }
}

function answerOf(item: AttentionItem, key: string): CardAnswer | undefined {
  if (key === "v") return { kind: "view" };
  if (key === "o" && item.agentId !== undefined) return { kind: "open-agent" };
  const index = /^[1-9]$/.test(key) ? Number(key) - 1 : -1;
  if (index >= 0 && index < item.choices.length) return { kind: "choice", index };
  switch (item.kind) {
    case "permission":
    case "memory":
      if (key === "y") return { kind: "approve", how: "once" };
      if (key === "a" && item.canAllowForSession) return { kind: "approve", how: "session" };
      if (key === "p" && item.canAllowForSession) return { kind: "approve", how: "always" };
      if (key === "d") return { kind: "deny" };
      return key === "n" ? { kind: "words" } : undefined;
    case "question":
      return key === "t" && item.allowFreeform ? { kind: "words" } : undefined;
    case "plan":
      if (key === "d") return { kind: "deny" };
      return key === "n" ? { kind: "words" } : undefined;
    case "elicitation":
      if (key === "y") return { kind: "fill" };
      return key === "d" ? { kind: "deny" } : undefined;
    default:
      return undefined;
  }
}

const VIEW_ONLY = "v view all";

function keysOf(item: AttentionItem): string {
  const parts: string[] = [];
  switch (item.kind) {
    case "permission":
    case "memory":
      parts.push(item.kind === "memory" ? "y accept" : "y once");
      if (item.canAllowForSession) parts.push("a session", `p always here${prefixOf(item)}`);
      parts.push("d deny", "n deny and say why");
      break;
    case "question":
      if (item.choices.length > 0) parts.push(`1–${item.choices.length} choose`);
      if (item.allowFreeform) parts.push("t type an answer");
      break;
    case "plan":
      parts.push(`1–${item.choices.length} choose`, "d reject", "n reject and say why");
      break;
    case "limit":
      parts.push(`1–${item.choices.length} choose`);
      break;
    case "elicitation":
      parts.push(addressOf(item) !== undefined ? "y it is done" : "y fill in", "d decline");
      break;
    default:
  }
  if (item.agentId !== undefined) parts.push("o open agent");
  parts.push(VIEW_ONLY);
  return parts.join(" · ");
}

/** The address of a form that the user opens instead of filling in fields. */
export const addressOf = ({ request }: AttentionItem): string | undefined =>
  request?.type === "elicitation.requested" && request.data.mode === "url" ? (request.data.url ?? "") : undefined;

/** The commands that "always" covers. */
export function prefixOf({ request }: AttentionItem): string {
  if (request?.type !== "permission.requested" || request.data.permissionRequest.kind !== "shell") return "";
  const names = request.data.permissionRequest.commands.map(({ identifier }) => identifier);
  return names.length === 0 ? "" : ` (${[...new Set(names)].join(", ").slice(0, 60)})`;
}
