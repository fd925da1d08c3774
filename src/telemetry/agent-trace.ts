/** The spans of one agent of a session: its input, its model calls and its result. */
import { defined } from "../lib/defined.ts";
import type { SpanContext } from "../lib/trace-context.ts";
import type { EventData } from "../protocol/event.ts";
import { assistantSaid, type SaidMessage, saidAs } from "./content.ts";
import type { MetricMeter } from "./metrics.ts";
import { type Attributes, type AttributeValue, childOf, type NewId, type Span, type SpanEvent } from "./span.ts";

export interface TracePorts {
  readonly sessionId: string;
  readonly meter: MetricMeter;
  readonly newId: NewId;
  readonly captureContent: boolean;
  emit(span: Span): void;
}

type Usage = EventData<"troupe.usage">;
type Writable = Record<string, AttributeValue>;

/** A run of the agent that has not ended. */
interface Invocation {
  readonly context: SpanContext;
  readonly parentSpanId: string | undefined;
  readonly start: number;
  readonly events: SpanEvent[];
  turns: number;
  inputTokens: number;
  outputTokens: number;
  /** Null if the price of a call is unknown. */
  costUsd: number | null;
  model: string | undefined;
  finishReason: string | undefined;
  error: string | undefined;
}

/** A model call that has ended. Its message follows in a separate event. */
interface EndedCall {
  readonly usage: Usage;
  readonly end: number;
  readonly timing: Partial<EventData<"assistant.usage">>;
  readonly failures: readonly SpanEvent[];
  readonly lastFailure: string | undefined;
  readonly inputs: readonly SaidMessage[];
}

/** Maximum number of events on one span. */
const MAX_EVENTS = 128;
const MAX_INPUTS = 64;

export class AgentTrace {
  readonly #ports: TracePorts;
  readonly #id: string | undefined;
  name: string;
  #invocation: Invocation | undefined;
  /** The context of the last run, for spans that follow from it. */
  #lastContext: SpanContext | undefined;
  #call: EndedCall | undefined;
  #timing: Partial<EventData<"assistant.usage">> = {};
  #failures: SpanEvent[] = [];
  #lastFailure: string | undefined;
  #inputs: SaidMessage[] = [];
  #system: string | undefined;
  /** Events before the run that they belong to began. */
  #early: SpanEvent[] = [];

  constructor(ports: TracePorts, agent: { readonly id: string | undefined; readonly name: string }) {
    this.#ports = ports;
    this.#id = agent.id;
    this.name = agent.name;
  }

  /** The context of the current run. */
  get context(): SpanContext | undefined {
    return this.#invocation?.context;
  }

  get lastContext(): SpanContext | undefined {
    return this.#lastContext;
  }

  begin(time: number, parent: SpanContext | undefined): void {
    this.end(time);
    const context = childOf(parent, this.#ports.newId);
    this.#lastContext = context;
    this.#invocation = {
      context,
      parentSpanId: parent?.spanId,
      start: time,
      events: this.#early.splice(0),
      turns: 0,
      inputTokens: 0,
      outputTokens: 0,
      costUsd: 0,
      model: undefined,
      finishReason: undefined,
      error: undefined,
    };
  }

  fail(error: string): void {
    if (this.#invocation) this.#invocation.error = error;
  }

  note(name: string, time: number, attributes: Attributes): void {
    const events = this.#invocation?.events ?? this.#early;
    if (events.length < MAX_EVENTS) events.push({ name, time, attributes });
  }

  /** Records a message that the next model call will contain. */
  addInput(message: SaidMessage): void {
    if (!this.#ports.captureContent) return;
    this.#inputs.push(message);
    if (this.#inputs.length > MAX_INPUTS) this.#inputs.shift();
  }

  setInstructions(system: string): void {
    if (this.#ports.captureContent) this.#system = system;
  }

  addFailure({ errorType, statusCode }: EventData<"model.call_failure">, time: number): void {
    this.#lastFailure = errorType ?? "error";
    const status = statusCode === undefined ? {} : { "http.response.status_code": statusCode };
    const attributes = { "error.type": this.#lastFailure, ...status };
    if (this.#failures.length < MAX_EVENTS) this.#failures.push({ name: "troupe.call_failure", time, attributes });
  }

  setTiming(timing: EventData<"assistant.usage">): void {
    this.#timing = timing;
  }

  called(usage: Usage, end: number): void {
    this.#finishCall(undefined);
    const [timing, failures, lastFailure] = [this.#timing, this.#failures, this.#lastFailure];
    this.#call = { usage, end, timing, failures, lastFailure, inputs: this.#inputs };
    [this.#timing, this.#failures, this.#lastFailure, this.#inputs] = [{}, [], undefined, []];
    const run = this.#invocation;
    if (!run) return;
    run.turns++;
    run.inputTokens += usage.inputTokens;
    run.outputTokens += usage.outputTokens;
    run.costUsd = run.costUsd === null || usage.costUsd === null ? null : run.costUsd + usage.costUsd;
    run.model = usage.model;
    run.finishReason = finishReason(timing.finishReason);
  }

  answered(message: EventData<"assistant.message">): void {
    this.#finishCall(message);
  }

  /** Ends the current run, if there is one. */
  end(time: number): void {
    this.#finishCall(undefined);
    const run = this.#invocation;
    if (!run) return;
    this.#invocation = undefined;
    const { meter, sessionId } = this.#ports;
    const agent = { "gen_ai.agent.name": this.name };
    if (run.turns > 0) meter.record("turns", run.turns, agent);
    if (this.#id === undefined) meter.record("workflowDuration", seconds(time - run.start), failing(agent, run.error));
    const attributes: Writable = {
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.conversation.id": sessionId,
      ...agent,
      ...defined({ "gen_ai.agent.id": this.#id, "gen_ai.request.model": run.model }),
      "gen_ai.usage.input_tokens": run.inputTokens,
      "gen_ai.usage.output_tokens": run.outputTokens,
      ...(run.finishReason !== undefined && { "gen_ai.response.finish_reasons": [run.finishReason] }),
      "github.copilot.turn_count": run.turns,
      ...(run.costUsd !== null && { "troupe.usage.cost_usd": { double: run.costUsd } }),
      ...(this.#system !== undefined && {
        "gen_ai.system_instructions": saidAs([{ role: "system", parts: [{ type: "text", content: this.#system }] }]),
      }),
    };
    this.#emit({ ...run, name: `invoke_agent ${this.name}`, kind: "internal", end: time, attributes });
  }

  #finishCall(message: EventData<"assistant.message"> | undefined): void {
    const call = this.#call;
    if (!call) return;
    this.#call = undefined;
    const { usage, timing, end } = call;
    const reason = finishReason(timing.finishReason);
    const error = timing.finishReason === "error" ? (call.lastFailure ?? "error") : undefined;
    const parent = this.#invocation?.context;
    this.#emit({
      name: `chat ${usage.model}`,
      kind: "client",
      context: childOf(parent, this.#ports.newId),
      parentSpanId: parent?.spanId,
      start: end - usage.durationMs,
      end,
      events: call.failures,
      error,
      attributes: {
        ...this.#callAttributes(usage, timing),
        ...(reason !== undefined && { "gen_ai.response.finish_reasons": [reason] }),
        ...defined({ "gen_ai.response.id": message?.messageId }),
        ...(call.inputs.length > 0 && { "gen_ai.input.messages": saidAs(call.inputs) }),
        ...(this.#ports.captureContent &&
          message && { "gen_ai.output.messages": saidAs([assistantSaid(message, reason ?? "stop")]) }),
      },
    });
    this.#measure(call, error);
  }

  #callAttributes(usage: Usage, { timeToFirstTokenMs }: Partial<EventData<"assistant.usage">>): Writable {
    const { cacheReadTokens, cacheWriteTokens, reasoningTokens, costUsd, attempts } = usage;
    return {
      "gen_ai.operation.name": "chat",
      "gen_ai.conversation.id": this.#ports.sessionId,
      "gen_ai.agent.name": this.name,
      "gen_ai.provider.name": usage.provider,
      "gen_ai.request.model": usage.model,
      "gen_ai.response.model": usage.model,
      "gen_ai.usage.input_tokens": usage.inputTokens,
      "gen_ai.usage.output_tokens": usage.outputTokens,
      ...(cacheReadTokens > 0 && { "gen_ai.usage.cache_read.input_tokens": cacheReadTokens }),
      ...(cacheWriteTokens > 0 && { "gen_ai.usage.cache_creation.input_tokens": cacheWriteTokens }),
      ...(reasoningTokens > 0 && { "gen_ai.usage.reasoning.output_tokens": reasoningTokens }),
      ...(timeToFirstTokenMs !== undefined && {
        "gen_ai.response.time_to_first_chunk": { double: seconds(timeToFirstTokenMs) },
      }),
      ...(costUsd !== null && { "troupe.usage.cost_usd": { double: costUsd } }),
      ...(usage.estimated && { "troupe.usage.estimated": true }),
      ...(attempts > 1 && { "troupe.call.attempts": attempts }),
    };
  }

  #measure({ usage, timing }: EndedCall, error: string | undefined): void {
    const { meter } = this.#ports;
    const about = {
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": usage.provider,
      "gen_ai.request.model": usage.model,
    };
    meter.record("operationDuration", seconds(usage.durationMs), failing(about, error));
    if (timing.timeToFirstTokenMs !== undefined) {
      meter.record("timeToFirstChunk", seconds(timing.timeToFirstTokenMs), about);
    }
    if (usage.inputTokens + usage.outputTokens === 0) return;
    meter.record("tokenUsage", usage.inputTokens, { ...about, "gen_ai.token.type": "input" });
    meter.record("tokenUsage", usage.outputTokens, { ...about, "gen_ai.token.type": "output" });
  }

  #emit(span: Span): void {
    const { attributes, error } = span;
    this.#ports.emit({ ...span, attributes: failing(attributes, error) });
  }
}

export function failing(attributes: Attributes, error: string | undefined): Attributes {
  return error === undefined ? attributes : { ...attributes, "error.type": error };
}

export const seconds = (milliseconds: number): number => milliseconds / 1000;

/** Maps finish reasons to the names of the conventions. */
function finishReason(reason: string | undefined): string | undefined {
  const words: Readonly<Record<string, string>> = { tool_calls: "tool_call" };
  return reason === undefined ? undefined : (words[reason] ?? reason);
}
