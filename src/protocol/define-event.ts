/** What the tables of events are made with. */
import * as z from "zod";
import type { Json } from "../lib/json.ts";

export const JsonValue: z.ZodType<Json> = z.json();
export const text = z.string();
export const count = z.number();

interface EventOptions {
  /** Shown, never stored: absent from the log and from replay. */
  ephemeral?: boolean;
  /** Synced to disk before anyone is told. */
  barrier?: boolean;
}

/** The schema is built when something is checked against it; a run that checks nothing pays nothing. */
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

/** What a user attached to a message. Every field given by a client is kept. */
export const Attachment = z.discriminatedUnion("type", [File, Directory, Selection, Blob, GithubReference]);
export type Attachment = z.infer<typeof Attachment>;

const unnamed = { displayName: text.exactOptional() };

/** As a client gives it: a name is made from the path where there is none. */
export const GivenAttachment = z.discriminatedUnion("type", [
  File.extend(unnamed),
  Directory.extend(unnamed),
  Selection.extend(unnamed),
  Blob.omit({ assetId: true, byteLength: true }),
  GithubReference,
]);
export type GivenAttachment = z.infer<typeof GivenAttachment>;
