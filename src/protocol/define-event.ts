/** Helpers that the event tables are built with. */
import * as z from "zod";
import type { Json } from "../lib/json.ts";

export const JsonValue: z.ZodType<Json> = z.json();
export const text = z.string();
export const count = z.number();

interface EventOptions {
  /** Sent to listeners, never stored: absent from the log and from replay. */
  ephemeral?: boolean;
  /** Synced to disk before listeners receive it. */
  barrier?: boolean;
}

/** Defines an event. Its schema is built on first validation, so that unused schemas cost nothing. */
export function event<const T extends string, D extends z.ZodType>(type: T, data: () => D, options: EventOptions = {}) {
  return { type, data: z.lazy(data), ephemeral: options.ephemeral ?? false, barrier: options.barrier ?? false };
}

export const ephemeral = { ephemeral: true } as const;
export const barrier = { barrier: true } as const;
export const nothing = z.object({});

export const Tokens = z.object({
  inputTokens: count,
  outputTokens: count,
  cacheReadTokens: count,
  cacheWriteTokens: count,
  reasoningTokens: count,
});

const LineRange = z.object({ start: count, end: count });
const Position = z.object({ line: count, character: count });

const File = z.object({
  type: z.literal("file"),
  path: text,
  displayName: text,
  lineRange: LineRange.exactOptional(),
});
const Directory = z.object({ type: z.literal("directory"), path: text, displayName: text });
const Selection = z.object({
  type: z.literal("selection"),
  filePath: text,
  displayName: text,
  text,
  selection: z.object({ start: Position, end: Position }),
});
const Blob = z.object({
  type: z.literal("blob"),
  mimeType: text,
  data: text.exactOptional(),
  displayName: text.exactOptional(),
  assetId: text.exactOptional(),
  byteLength: count.exactOptional(),
});
const GithubReference = z.object({
  type: z.literal("github_reference"),
  number: count,
  referenceType: z.enum(["issue", "pr", "discussion"]),
  state: text,
  title: text,
  url: text,
});

/** A user's attachment to a message. Every field that a client sets is stored. */
export const Attachment = z.discriminatedUnion("type", [File, Directory, Selection, Blob, GithubReference]);
export type Attachment = z.infer<typeof Attachment>;

const unnamed = { displayName: text.exactOptional() };

/** An attachment as a client sends it. A missing name is derived from the path. */
export const GivenAttachment = z.discriminatedUnion("type", [
  File.extend(unnamed),
  Directory.extend(unnamed),
  Selection.extend(unnamed),
  Blob.omit({ assetId: true, byteLength: true }),
  GithubReference,
]);
export type GivenAttachment = z.infer<typeof GivenAttachment>;
