import { defined } from "./defined.ts";

/** W3C trace context: the span and the trace that something belongs to, as programs exchange it. */
export interface TraceContext {
  readonly traceparent: string;
  readonly tracestate?: string;
}

export interface SpanContext {
  /** 32 and 16 hexadecimal digits. */
  readonly traceId: string;
  readonly spanId: string;
  /** False: the trace must not be recorded. */
  readonly sampled: boolean;
  readonly state?: string;
}

const FORM = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:$|-)/;
const MAX_CHARACTERS = 512;

/** Returns undefined for an invalid trace context, which counts as absent. */
export function readTraceContext({ traceparent, tracestate }: Partial<TraceContext>): SpanContext | undefined {
  if (traceparent === undefined || traceparent.length > MAX_CHARACTERS) return undefined;
  const [, traceId, spanId, flags] = FORM.exec(traceparent) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  const isUsable = tracestate !== undefined && tracestate !== "" && tracestate.length <= MAX_CHARACTERS;
  const sampled = (Number.parseInt(flags, 16) & 1) === 1;
  return { traceId, spanId, sampled, ...(isUsable && { state: tracestate }) };
}

export function writeTraceContext({ traceId, spanId, sampled, state }: SpanContext): TraceContext {
  const traceparent = `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;
  return { traceparent, ...defined({ tracestate: state }) };
}
