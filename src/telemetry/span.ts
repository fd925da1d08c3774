/** What is traced, before anyone has given it a form. */
import type { SpanContext } from "../lib/trace-context.ts";

/** A number is whole unless it says otherwise: receivers tell the two apart. */
export type AttributeValue = string | number | boolean | readonly string[] | { readonly double: number };
export type Attributes = Readonly<Record<string, AttributeValue>>;

export interface SpanEvent {
  readonly name: string;
  /** Milliseconds since 1970, as all times here. */
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
  /** Set when it failed. */
  readonly error: string | undefined;
}

/** Who says all this: the same for everything a process tells. */
export interface Source {
  readonly resource: Attributes;
  readonly scope: { readonly name: string; readonly version: string };
}

/** Hexadecimal digits nobody else has, two for each byte. */
export type NewId = (bytes: number) => string;

export const randomId: NewId = (bytes) => Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString("hex");

/** A span below another, or the first of its trace. */
export function childOf(parent: SpanContext | undefined, newId: NewId): SpanContext {
  const spanId = newId(8);
  return parent ? { ...parent, spanId } : { traceId: newId(16), spanId, sampled: true };
}

/** Roughly what it takes in memory, which is what its texts take. */
export function sizeOf(span: Span): number {
  let size = 500;
  for (const value of Object.values(span.attributes)) size += typeof value === "string" ? value.length : 16;
  return size + span.events.length * 200;
}
