import { join } from "node:path";
import * as z from "zod";
import { type OpenedEntry, openForReading, readDirectory } from "../../lib/node/paths.ts";
import { plural } from "../../lib/text.ts";
import { onOneLine } from "../../lib/visible.ts";
import { defineTool, fixed, type InputOf, type ToolContext } from "../tool.ts";
import { ToolError, type ToolResult } from "../tool-error.ts";
import { noteSeen } from "./files.ts";
import { MAX_IMAGE_BYTES, readImage } from "./image-file.ts";
import { pathFailure } from "./path-failure.ts";
import { inMemory, isBinary, readHead, readLines, type TextSource } from "./text-file.ts";
import description from "./view.md";

const LARGE_FILE_BYTES = 10 * 1024 * 1024;
const MAX_RESULT_CHARACTERS = 256 * 1024;
const MAX_LINE_CHARACTERS = 2000;
const MAX_LISTED_ENTRIES = 1000;

const input = fixed("view", () =>
  z.object({
    path: z.string().describe("File or folder to look at; absolute, or relative to the working folder"),
    view_range: z
      .array(z.int().min(-1))
      .length(2)
      .optional()
      .describe("First and last line to show, counted from 1, as [start, end]; an end of -1 means the end of the file"),
    forceReadLargeFiles: z
      .boolean()
      .optional()
      .describe("Show the beginning of a file above 10 MiB although no view_range is given"),
  }),
);
type Input = InputOf<typeof input>;

export const view = defineTool({
  name: "view",
  accessKind: "read",
  description,
  input,
  readOnly: true,
  access: ({ path }) => ({ kind: "read", path }),
  async run(call, context) {
    const opened = await openForReading(call.path, context).catch(pathFailure);
    try {
      const unsaved = await noteSeen(opened, context);
      if (opened.kind === "directory") return await viewDirectory(opened, context);
      return unsaved ? await viewUnsaved(opened, unsaved, { call, context }) : await viewFile(opened, call, context);
    } finally {
      await opened.handle.close();
    }
  },
});

async function viewDirectory(opened: OpenedEntry, context: ToolContext): Promise<ToolResult> {
  const { names: all, complete } = await readDirectory(opened).catch(pathFailure);
  if (all.length === 0) return { content: `Folder ${opened.path} is empty.` };
  const left = await context.reading?.forSearch({ folder: opened.path, toolName: "view" });
  const names = left ? all.filter((name) => !left.hides(join(opened.path, name))) : all;
  const lines = names.slice(0, MAX_LISTED_ENTRIES).map(onOneLine);
  const hidden = names.length - lines.length;
  if (hidden > 0) lines.push(`[${complete ? "" : "at least "}${plural(hidden, "more name")} not shown]`);
  if (all.length > names.length)
    lines.push(`[${plural(all.length - names.length, "name")} left out: rules deny reading]`);
  return { content: lines.join("\n") };
}

async function viewFile(opened: OpenedEntry, call: Input, context: ToolContext): Promise<ToolResult> {
  const { path, handle, stat } = opened;
  const head = await readHead(handle);
  const image = await readImage(opened, head);
  if (image === "too-large") {
    throw new ToolError(`Image ${path} has ${stat.size} bytes; images above ${MAX_IMAGE_BYTES} bytes are not shown.`);
  }
  if (image !== null) return { content: "Viewed image file successfully.", images: [image] };
  if (isBinary(head)) throw new ToolError(`${path} is a binary file (${stat.size} bytes) and has no text to show.`);
  if (stat.size > LARGE_FILE_BYTES && call.view_range === undefined && call.forceReadLargeFiles !== true) {
    const remedy = "Give a view_range, search it with grep, or set forceReadLargeFiles to see its beginning.";
    throw new ToolError(`${path} is large (${stat.size} bytes). ${remedy}`);
  }
  return viewText({ path, source: handle }, call, { head, signal: context.signal });
}

const UNSAVED = "[The user has not saved this text in the editor. Commands and searches see the file on disk.]";

async function viewUnsaved(
  { path }: OpenedEntry,
  text: Buffer,
  { call, context: { signal } }: { call: Input; context: ToolContext },
): Promise<ToolResult> {
  const source = inMemory(text);
  const { content } = await viewText({ path, source }, call, { head: await readHead(source), signal });
  return { content: `${content}\n${UNSAVED}` };
}

async function viewText(
  { path, source }: { path: string; source: TextSource },
  { view_range }: Input,
  { head, signal }: { head: Buffer; signal: AbortSignal },
): Promise<ToolResult> {
  const [start, end] = checkedRange(view_range);
  const shown: string[] = [];
  let characters = 0;
  let lastLine = 0;
  for await (const line of readLines(source, { head, maxLineCharacters: MAX_LINE_CHARACTERS, signal })) {
    lastLine++;
    if (lastLine < start) continue;
    if (lastLine > end) break;
    const numbered = `${lastLine}. ${line}`;
    characters += numbered.length + 1;
    if (characters > MAX_RESULT_CHARACTERS) {
      shown.push(
        `[Cut here; the file has more lines. Continue with view_range [${lastLine}, ${view_range?.[1] ?? -1}].]`,
      );
      break;
    }
    shown.push(numbered);
  }
  if (lastLine < start) {
    throw new ToolError(`view_range starts at line ${start}, but ${path} has only ${plural(lastLine, "line")}.`);
  }
  return { content: shown.join("\n").trimEnd() };
}

function checkedRange(range: Input["view_range"]): [start: number, end: number] {
  if (range === undefined) return [1, Number.POSITIVE_INFINITY];
  const [start = 1, last = -1] = range;
  const end = last === -1 ? Number.POSITIVE_INFINITY : last;
  if (start >= 1 && end >= start) return [start, end];
  const rule = "it needs 1 ≤ start ≤ end, or an end of -1 for the end of the file";
  throw new ToolError(`view_range [${start}, ${last}] is not valid: ${rule}.`);
}
