import type { Json } from "../lib/json.ts";

/** A message that a model receives. Computed from the log, never stored. */
export type Message = UserMessage | AssistantMessage | ToolMessage;

export interface UserMessage {
  readonly role: "user";
  readonly content: string;
  readonly images?: readonly Image[];
  readonly documents?: readonly Document[];
}

export interface AssistantMessage {
  readonly role: "assistant";
  readonly content: string;
  readonly calls: readonly ToolCall[];
  readonly reasoning?: Reasoning;
}

export interface ToolMessage {
  readonly role: "tool";
  readonly toolCallId: string;
  readonly content: string;
  readonly isError: boolean;
  readonly images?: readonly Image[];
}

/** A call as the model requested it. */
export interface ToolCall {
  readonly toolCallId: string;
  readonly name: string;
  readonly arguments: Json;
  /** Set if the arguments were not valid JSON: the call fails with this text and never runs. */
  readonly argumentsError?: string;
}

/** Reasoning of one reply. `opaque` is sent back only over the wire named by `wireField`. */
export interface Reasoning {
  readonly text?: string;
  readonly opaque?: string;
  readonly wireField?: string;
}

/** A file that a model reads itself, such as a PDF. */
export interface Document {
  readonly mimeType: string;
  /** Base64. */
  readonly data: string;
  readonly title: string;
}

export interface Image {
  readonly mimeType: string;
  /** Base64, read from its file only when a request is built. */
  readonly data: string;
  readonly description?: string;
}

/** Begins the source of a message that was submitted to workers. The id of the work follows. */
export const WORK_SOURCE = "work-";

/** True for what a person or program asked for. Messages of hooks, schedules and tools have other sources. */
export const isAsked = (source: unknown): boolean =>
  source === undefined || (typeof source === "string" && source.startsWith(WORK_SOURCE));
