/** Schemas of the checkpoint files; `checkpoints.ts` describes the layout. */
import * as z from "zod";

export const entrySchema = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("missing") }),
  z.object({ kind: z.literal("file"), hash: z.string(), mode: z.number() }),
  z.object({ kind: z.literal("link"), target: z.string() }),
  z.object({ kind: z.literal("folder"), mode: z.number() }),
]);
/** The state of a path. Mode -1: a file that is not written yet, of which only the content is known. */
export type PathState = z.infer<typeof entrySchema>;

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
    /** Folders created for the file, outermost first. */
    folders: z.array(z.string()),
  }),
  /** The state of everything below some paths, recorded before a command that may change any of it. */
  z.object({
    kind: z.literal("tree"),
    seq: z.number(),
    time: z.string(),
    turn: z.string(),
    toolCallId: z.string(),
    entries: z.string(),
  }),
  /** The entries changed by that command, and the paths it created. */
  z.object({
    kind: z.literal("settled"),
    seq: z.number(),
    entries: z.string(),
    created: z.array(z.string()).default([]),
  }),
  z.object({ kind: z.literal("undone"), time: z.string(), seqs: z.array(z.number()) }),
  /** All changes planned under this name were made. Without this line a rewind was interrupted between changes. */
  z.object({ kind: z.literal("made"), turn: z.string() }),
]);
export type CheckpointLine = z.infer<typeof lineSchema>;

/** Changed paths. No entry: the path changed, but not necessarily because of the command. */
export const entriesSchema = z.array(z.object({ path: z.string(), entry: entrySchema.optional() }));
export type Entries = z.infer<typeof entriesSchema>;

/** Index of a pack: hash, offset and length of each content. */
export const indexSchema = z.array(z.tuple([z.string(), z.int().min(0), z.int().min(0)]));
