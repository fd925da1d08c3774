/** Spans and attributes, independent of an export format. */
import type { SpanContext } from "../lib/trace-context.ts";

/** A plain number is an integer; use `double` for others. Receivers distinguish the two. */
export type AttributeValue = string | number | boolean | readonly string[] | { readonly double: number };
export type Attributes = Readonly<Record<string, AttributeValue>>;

export interface SpanEvent {
  readonly name: string;
  /** Milliseconds since 1970, like all times here. */
  readonly time: number;
  readonly attributes: Attributes;
}

export interface Span {
  readonly name: string;
  readonly kind: "internal" | "client";
  readonly context: SpanContext;
  readonly parentSpanId: string | undefined;
  readonly start: number;
  readonly end: number;
  readonly attributes: Attributes;
  readonly events: readonly SpanEvent[];
  /** Set if the operation failed. */
  readonly error: string | undefined;
}

/** The source of the data: the same for everything that a process exports. */
export interface Source {
  readonly resource: Attributes;
  readonly scope: { readonly name: string; readonly version: string };
}

/** Returns random hexadecimal digits, two for each byte. */
export type NewId = (bytes: number) => string;

export const randomId: NewId = (bytes) => Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString("hex");

/** Creates a span below another, or the first of its trace. */
export function childOf(parent: SpanContext | undefined, newId: NewId): SpanContext {
  const spanId = newId(8);
  return parent ? { ...parent, spanId } : { traceId: newId(16), spanId, sampled: true };
}

/** Returns the approximate memory size, which is dominated by texts. */
export function sizeOf(span: Span): number {
  let size = 500;
  for (const value of Object.values(span.attributes)) size += typeof value === "string" ? value.length : 16;
  return size + span.events.length * 200;
}
