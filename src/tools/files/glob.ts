import { isAbsolute, join, relative, sep } from "node:path";
import * as z from "zod";
import { plural } from "../../lib/text.ts";
import { defineTool, fixed, type InputOf, type Tool, type ToolContext } from "../tool.ts";
import { ToolError } from "../tool-error.ts";
import description from "./glob.md";
import { globMatcher, splitBase } from "./glob-pattern.ts";
import { isMissingPath } from "./path-failure.ts";
import { type LeftOut, leftOutLine } from "./read-guard.ts";
import { namesPackages, type RipgrepEnd, type RipgrepOptions, ripgrep, TOOL_TIMEOUT_MS, timeLimit } from "./ripgrep.ts";
import { readingOf, searchPathFields, searchPathsOf, withOpenPath } from "./search-paths.ts";

const MAX_RESULTS = 1000;

const input = fixed("glob", () =>
  z.object({
    pattern: z.string().min(1).describe('Which files to find, such as "**/*.ts" or "src/**/*.{js,css}"'),
    ...searchPathFields(),
  }),
);
type Input = InputOf<typeof input>;

export const glob = globTool();

export function globTool(options: RipgrepOptions = {}): Tool {
  return defineTool({
    name: "glob",
    accessKind: "read",
    description,
    input,
    readOnly: true,
    timeoutMs: TOOL_TIMEOUT_MS,
    access: (call) => readingOf(foldersOf(call).folders),
    async run(call, context) {
      const { folders, pattern, hasBase } = foldersOf(call);
      const matches = globMatcher(pattern);
      const limit = timeLimit(options);
      const found = new Set<string>();
      const hidden: (LeftOut | undefined)[] = [];
      let more = 0;
      let end: RipgrepEnd = "done";
      for (const folder of folders) {
        const left = await context.reading?.forSearch({ folder, toolName: "glob" });
        hidden.push(left);
        const includesPackages = namesPackages(pattern);
        const listing = listFiles({ folder, context, options, limit, left, includesPackages }, (path, below) => {
          if (!matches(below) || found.has(path)) return;
          if (found.size < MAX_RESULTS) found.add(path);
          else more++;
        });
        end = await (hasBase ? listing.catch(nothingThere) : listing);
        if (end !== "done") break;
      }
      return { content: [report([...found], more, end), leftOutLine(hidden) ?? []].flat().join("\n") };
    },
  });
}

/** A pattern may start with a folder that does not exist; it then matches nothing. */
function nothingThere(error: unknown): RipgrepEnd {
  if (isMissingPath(error)) return "done";
  throw error;
}

/** Starts the search at the fixed prefix of the pattern. Absolute patterns work, and fewer folders are walked. */
function foldersOf(call: Input): { folders: string[]; pattern: string; hasBase: boolean } {
  const { base, pattern } = splitBase(call.pattern);
  const folders = searchPathsOf(call).map((path) => (isAbsolute(base) ? base : base === "" ? path : join(path, base)));
  return { folders: [...new Set(folders)], pattern, hasBase: base !== "" };
}

interface FileListRequest {
  readonly folder: string;
  readonly context: ToolContext;
  readonly options: RipgrepOptions;
  readonly limit: AbortSignal;
  readonly left: LeftOut | undefined;
  readonly includesPackages: boolean;
}

/** Calls `onFile` for every file below the folder, with the path for display and the path relative to the folder. */
async function listFiles(
  { folder, context, options, limit, left, includesPackages }: FileListRequest,
  onFile: (path: string, below: string) => void,
): Promise<RipgrepEnd> {
  return withOpenPath(folder, context, async (opened) => {
    if (opened.kind === "file") throw new ToolError(`${opened.path} is a file; glob searches folders.`);
    return ripgrep({
      options,
      arguments: ["--files", "--null"],
      excluded: left?.excluded,
      includesPackages,
      cwd: opened.pinnedPath,
      separator: "\0",
      signal: context.signal,
      timeLimit: limit,
      onLine(line) {
        const below = line.replace(/^\.[\\/]/, "");
        if (left?.hides(join(opened.path, below))) return true;
        onFile(shownPath(join(opened.path, below), context.cwd), below.replaceAll(sep, "/"));
        return true;
      },
    });
  });
}

function shownPath(path: string, cwd: string): string {
  const fromHere = relative(cwd, path);
  const shown = fromHere.startsWith("..") || isAbsolute(fromHere) ? path : `.${sep}${fromHere}`;
  return /[\u0000-\u001f\u007f]/.test(shown) ? JSON.stringify(shown) : shown;
}

function report(paths: readonly string[], more: number, end: RipgrepEnd): string {
  if (end === "timeout" && paths.length === 0) {
    throw new ToolError("The search timed out without a match. Narrow the path.", { code: "timeout" });
  }
  if (paths.length === 0) return "No files matched the pattern.";
  const lines = [...paths];
  if (more > 0) lines.push(`[${plural(more, "more file")} not shown]`);
  if (end === "timeout") lines.push("[Stopped by the time limit: partial results. Narrow the path.]");
  return lines.join("\n");
}
