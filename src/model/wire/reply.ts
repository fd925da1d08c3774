import { defined } from "../../lib/defined.ts";
import { isObject } from "../../lib/json.ts";
import type { Citations } from "../../protocol/citations.ts";
import type { Reasoning, ToolCall } from "../../protocol/message.ts";
import type { ModelError } from "../model-error.ts";
import type { ModelEvent, ModelRequest, Usage } from "../provider.ts";
import { parseBounded } from "./bounded-json.ts";
import { limits } from "./limits.ts";
import { protocolError } from "./wire-error.ts";

/** A call whose parts are still arriving. */
export interface PartialCall {
  /** The wire's id; may be missing. */
  wireId: string;
  name: string;
  argumentText: string;
  /** Unique in the conversation. Set when the call is first reported. */
  toolCallId: string | undefined;
  /** Argument text that is not yet reported. Separate, because slicing a growing text copies it each time. */
  unsaid: string;
}

interface Finish {
  readonly stop: "done" | "length";
  readonly usage?: Usage | undefined;
  readonly reasoning?: Reasoning | undefined;
  readonly citations?: Citations | undefined;
  readonly phase?: string | undefined;
}

/**
 * Assembles one reply, the same for all wires. The data of one network read becomes one delta, which saves work for all
 * consumers.
 */
export class ReplyDecoder {
  readonly #provider: string;
  readonly #request: ModelRequest;
  readonly #calls: PartialCall[] = [];
  #usedIds: Set<string> | undefined;
  #events: ModelEvent[] = [];
  #pending: { readonly type: "text" | "reasoning"; delta: string } | undefined;
  #touched: PartialCall | undefined;
  #reasoningText = "";

  constructor(provider: string, request: ModelRequest) {
    this.#provider = provider;
    this.#request = request;
  }

  get reasoningText(): string {
    return this.#reasoningText;
  }

  get hasCalls(): boolean {
    return this.#calls.length > 0;
  }

  text(delta: string): void {
    this.#add("text", delta);
  }

  reasoning(delta: string): void {
    this.#reasoningText = this.keep(this.#reasoningText, delta);
    this.#add("reasoning", delta);
  }

  /** Appends to text that is stored until the end. Throws when it is too long. */
  keep(kept: string, more: string): string {
    if (kept.length + more.length > limits.reasoningCharacters) {
      throw protocolError(this.#provider, "the reasoning of the reply is too long");
    }
    return kept + more;
  }

  openCall(wireId: unknown, name: unknown): PartialCall {
    if (this.#calls.length >= limits.calls) {
      throw protocolError(this.#provider, `the reply asks for more than ${limits.calls} tool calls`);
    }
    const call = { wireId: textOf(wireId), name: textOf(name), argumentText: "", toolCallId: undefined, unsaid: "" };
    this.#calls.push(call);
    return call;
  }

  /** Returns the call's id in the conversation. */
  idOf(call: PartialCall): string {
    call.toolCallId ??= this.#uniqueId(call);
    return call.toolCallId;
  }

  argument(call: PartialCall, delta: string): void {
    if (call.argumentText.length + delta.length > limits.argumentCharacters) {
      throw protocolError(this.#provider, `the arguments of the call "${call.name}" are too long`);
    }
    if (this.#touched !== call) this.#flush();
    call.argumentText += delta;
    call.unsaid += delta;
    this.#touched = call;
  }

  /**
   * Sets the complete argument text if the wire repeats it at the end. It takes precedence over the streamed pieces.
   */
  wholeArgument(call: PartialCall, whole: string): void {
    if (call.argumentText === whole) return;
    const isFirst = call.argumentText === "";
    if (!isFirst) this.#flush();
    call.argumentText = "";
    this.argument(call, whole);
    if (!isFirst) call.unsaid = "";
  }

  /** Returns the pending events. */
  drain(): readonly ModelEvent[] {
    this.#flush();
    const events = this.#events;
    if (events.length > 0) this.#events = [];
    return events;
  }

  /** Returns the last events: pending ones, the complete calls, and the end. */
  finish({ stop, usage, reasoning, citations, phase }: Finish): readonly ModelEvent[] {
    this.#flush();
    const calls = this.#calls.flatMap((call) => this.#wholeCall(call, stop));
    for (const call of calls) this.#events.push({ type: "call", call });
    this.#events.push({
      type: "end",
      stop: stop === "done" && calls.length > 0 ? "tools" : stop,
      ...defined({ usage, reasoning, citations }),
      ...(phase && { phase }),
    });
    return this.drain();
  }

  /** Returns the last events of a complete but unusable reply, with the tokens it cost. */
  fail(error: ModelError, usage: Usage | undefined): readonly ModelEvent[] {
    this.#flush();
    this.#events.push({ type: "end", stop: "error", error, ...defined({ usage }) });
    return this.drain();
  }

  #add(type: "text" | "reasoning", delta: string): void {
    if (delta === "") return;
    if (this.#pending?.type === type && this.#pending.delta.length < DELTA_CHARACTERS) {
      this.#pending.delta += delta;
      return;
    }
    this.#flush();
    this.#pending = { type, delta };
  }

  #flush(): void {
    if (this.#pending) this.#events.push(this.#pending);
    this.#pending = undefined;
    const call = this.#touched;
    this.#touched = undefined;
    if (!call?.name || call.unsaid === "") return;
    const delta = call.unsaid;
    call.unsaid = "";
    this.#events.push({ type: "call_delta", toolCallId: this.idOf(call), name: call.name, delta });
  }

  /** A reply that was cut off must not lead to a call with incomplete arguments. */
  #wholeCall(call: PartialCall, stop: Finish["stop"]): ToolCall[] {
    const parsed = parseArguments(call.argumentText);
    if (stop === "length" && (!parsed.ok || call.argumentText.trim() === "")) return [];
    if (call.name === "") throw protocolError(this.#provider, "the reply asks for a tool without naming it");
    const toolCallId = this.idOf(call);
    if (parsed.ok) return [{ toolCallId, name: call.name, arguments: parsed.value }];
    return [{ toolCallId, name: call.name, arguments: {}, argumentsError: parsed.error }];
  }

  /** Some servers send no ids, and some restart at zero in each reply. The same reply always gets the same ids. */
  #uniqueId(call: PartialCall): string {
    this.#usedIds ??= new Set(this.#request.messages.flatMap(callIds));
    const turn = this.#request.messages.length;
    const base = call.wireId || `call_${turn}_${this.#calls.indexOf(call)}`;
    let id = base;
    for (let copy = 1; this.#usedIds.has(id); copy++) id = `${base}_${turn}_${copy}`;
    this.#usedIds.add(id);
    return id;
  }
}

const DELTA_CHARACTERS = 1024;

function callIds(message: ModelRequest["messages"][number]): string[] {
  return message.role === "assistant" ? message.calls.map((call) => call.toolCallId) : [];
}

function parseArguments(text: string): ReturnType<typeof parseBounded> {
  if (text.trim() === "") return { ok: true, value: {} };
  const parsed = parseBounded(text);
  if (!parsed.ok) return { ok: false, error: `The arguments are not valid JSON: ${parsed.error}` };
  if (parsed.value === null) return { ok: true, value: {} };
  return isObject(parsed.value) ? parsed : { ok: false, error: "The arguments must be a JSON object." };
}

/** Returns the value if it is text, otherwise "". */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Returns the value if it is a plausible count, otherwise 0. */
export function countOf(value: unknown): number {
  return typeof value === "number" && value >= 0 && Number.isFinite(value) ? value : 0;
}
