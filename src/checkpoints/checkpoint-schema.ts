/** What stands in the files of checkpoints: see `checkpoints.ts`. */
import * as z from "zod";

export const entrySchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("missing") }),
  z.object({ kind: z.literal("file"), hash: z.string(), mode: z.number() }),
  z.object({ kind: z.literal("link"), target: z.string() }),
  z.object({ kind: z.literal("folder"), mode: z.number() }),
]);
/** What has a name in a folder. Of a file that is yet to be written only the content is known: mode -1. */
export type Entry = z.infer<typeof entrySchema>;

export const lineSchema = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("change"),
    seq: z.number(),
    time: z.string(),
    turn: z.string(),
    toolCallId: z.string(),
    path: z.string(),
    before: entrySchema,
    after: entrySchema,
    /** Folders made for the file, the outermost first. */
    folders: z.array(z.string()),
  }),
  /** Everything below some paths, before a command that may do anything to it. */
  z.object({
    kind: z.literal("tree"),
    seq: z.number(),
    time: z.string(),
    turn: z.string(),
    toolCallId: z.string(),
    entries: z.string(),
  }),
  /** What that command left behind, and the names of what it made. */
  z.object({
    kind: z.literal("settled"),
    seq: z.number(),
    entries: z.string(),
    created: z.array(z.string()).default([]),
  }),
  z.object({ kind: z.literal("undone"), time: z.string(), seqs: z.array(z.number()) }),
  /** All changes of this turn were made: those of a rewind, which may be cut off between two of them. */
  z.object({ kind: z.literal("made"), turn: z.string() }),
]);
export type Line = z.infer<typeof lineSchema>;

/** Without an entry: someone has changed it, and nobody knows who. */
export const entriesSchema = z.array(z.object({ path: z.string(), entry: entrySchema.optional() }));
export type Entries = z.infer<typeof entriesSchema>;

/** Of a pack: hash, offset and length of each content. */
export const indexSchema = z.array(z.tuple([z.string(), z.int().min(0), z.int().min(0)]));
