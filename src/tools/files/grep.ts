import * as z from "zod";
import type { OpenedEntry } from "../../lib/node/paths.ts";
import { plural } from "../../lib/text.ts";
import { defineTool, fixed, type InputOf, type Tool, type ToolContext } from "../tool.ts";
import { ToolError } from "../tool-error.ts";
import description from "./grep.md";
import { type LeftOut, leftOutLine } from "./read-guard.ts";
import { namesPackages, type RipgrepEnd, type RipgrepOptions, ripgrep, TOOL_TIMEOUT_MS, timeLimit } from "./ripgrep.ts";
import { readingOf, searchPathFields, searchPathsOf, withOpenPath } from "./search-paths.ts";

const MAX_RESULT_CHARACTERS = 256 * 1024;
const MAX_CONTEXT_LINES = 1000;
/** Multiline matching loads the whole file into memory. */
const MAX_MULTILINE_BYTES = 256 * 1024 * 1024;

const contextLines = () => z.int().min(0).max(MAX_CONTEXT_LINES).optional();

const input = fixed("grep", () =>
  z.object({
    pattern: z.string().min(1).describe("Regular expression"),
    ...searchPathFields(),
    output_mode: z
      .enum(["content", "files_with_matches", "count"])
      .default("files_with_matches")
      .describe("What to return"),
    glob: z.string().min(1).optional().describe('Only such paths: "*.ts", "!*.test.ts"'),
    type: z.string().min(1).optional().describe('Only this language: "ts", "py"'),
    "-i": z.boolean().optional().describe("Ignore case"),
    "-n": z.boolean().optional().describe("Line numbers"),
    "-A": contextLines().describe("Lines after"),
    "-B": contextLines().describe("Lines before"),
    "-C": contextLines().describe("Lines around"),
    head_limit: z.int().min(0).optional().describe("Maximum number of output lines"),
    multiline: z.boolean().optional().describe("Match across lines; a dot matches line breaks too"),
  }),
);
type Input = InputOf<typeof input>;

export const grep = grepTool();

export function grepTool(options: RipgrepOptions = {}): Tool {
  return defineTool({
    name: "grep",
    accessKind: "read",
    description,
    input,
    readOnly: true,
    timeoutMs: TOOL_TIMEOUT_MS,
    access: (call) => readingOf(searchPathsOf(call)),
    async run(call, context) {
      const output = collector(call.head_limit);
      const search = { call, output, context, options, limit: timeLimit(options) };
      let end: RipgrepEnd = "done";
      const hidden: (LeftOut | undefined)[] = [];
      for (const path of searchPathsOf(call)) {
        const left = await context.reading?.forSearch({ folder: path, toolName: "grep" });
        end = await withOpenPath(path, context, (opened) => {
          if (opened.kind === "directory") hidden.push(left);
          return searchPath(opened, search, left);
        });
        if (end !== "done") break;
      }
      return { content: [report(output, end), leftOutLine(hidden) ?? []].flat().join("\n") };
    },
  });
}

interface Search {
  readonly call: Input;
  readonly output: Collector;
  readonly context: ToolContext;
  readonly options: RipgrepOptions;
  readonly limit: AbortSignal;
}

async function searchPath(opened: OpenedEntry, search: Search, left: LeftOut | undefined): Promise<RipgrepEnd> {
  const { call, output, context, options, limit } = search;
  const isFile = opened.kind === "file";
  if (isFile && call.multiline === true && opened.stat.size > MAX_MULTILINE_BYTES) {
    throw new ToolError(`${opened.path} is too large to match across lines; search it without multiline.`);
  }
  const printedAs = isFile ? "<stdin>" : ".";
  if (left !== undefined && !isFile) return searchGuarded(opened, search, left);
  return ripgrep({
    options,
    arguments: ripgrepArguments(call),
    includesPackages: namesPackages(call.glob),
    ...(isFile ? { cwd: "/", stdin: opened.handle.fd } : { cwd: opened.pinnedPath }),
    separator: "\n",
    signal: context.signal,
    timeLimit: limit,
    onLine: (line) => output.add(line.startsWith(printedAs) ? opened.path + line.slice(printedAs.length) : line),
  });
}

/**
 * Searches when some paths are denied. Denied files are not opened, and each result is checked again. So each line has
 * a NUL after the path, which no text can imitate, and a line number, which marks the start of the text.
 */
async function searchGuarded(opened: OpenedEntry, search: Search, left: LeftOut): Promise<RipgrepEnd> {
  const { call, output, context, options, limit } = search;
  const isList = call.output_mode === "files_with_matches";
  return ripgrep({
    options,
    arguments: [...ripgrepArguments({ ...call, "-n": true }), "--null"],
    excluded: left.excluded,
    includesPackages: namesPackages(call.glob),
    cwd: opened.pinnedPath,
    separator: isList ? "\0" : "\n",
    signal: context.signal,
    timeLimit: limit,
    onLine(line) {
      if (line === "--" && !isList) return output.add(line);
      const [name = "", ...rest] = line.split("\0");
      const path = opened.path + name.replace(/^\./, "");
      if ((!isList && rest.length === 0) || left.hides(path)) return true;
      return output.add(isList ? path : shownLine(path, rest.join("\0"), call));
    },
  });
}

/** Returns the line as ripgrep prints it without `--null`. */
function shownLine(path: string, rest: string, call: Input): string {
  if (call.output_mode === "count") return `${path}:${rest}`;
  const [, number = "", mark = ":", text = rest] = /^(\d+)([:-])(.*)$/s.exec(rest) ?? [];
  return [path, ...(call["-n"] === true ? [number] : []), text].join(mark);
}

/** Attaches values to their flags, so that no value can be parsed as a flag. */
function ripgrepArguments(call: Input): string[] {
  const found = { content: "--no-heading", files_with_matches: "--files-with-matches", count: "--count" };
  const flags = ["--with-filename", "--max-columns=500", "--max-columns-preview", found[call.output_mode]];
  if (call["-i"] === true) flags.push("--ignore-case");
  if (call.multiline === true) {
    flags.push("--multiline", "--multiline-dotall", `--max-filesize=${MAX_MULTILINE_BYTES}`);
  }
  if (call.output_mode === "content") {
    flags.push(call["-n"] === true ? "--line-number" : "--no-line-number");
    if (call["-C"] !== undefined) flags.push(`--context=${call["-C"]}`);
    if (call["-A"] !== undefined) flags.push(`--after-context=${call["-A"]}`);
    if (call["-B"] !== undefined) flags.push(`--before-context=${call["-B"]}`);
  }
  if (call.type !== undefined) flags.push(`--type=${call.type}`);
  if (call.glob !== undefined) flags.push(`--glob=${call.glob}`);
  return [...flags, `--regexp=${call.pattern}`];
}

interface Collector {
  readonly lines: string[];
  /** The reason why output was cut although ripgrep had more. */
  cut: "head_limit" | "size" | null;
  add(line: string): boolean;
}

function collector(headLimit = 0): Collector {
  let characters = 0;
  return {
    lines: [],
    cut: null,
    add(line) {
      characters += line.length + 1;
      if (headLimit > 0 && this.lines.length >= headLimit) this.cut = "head_limit";
      else if (characters > MAX_RESULT_CHARACTERS) this.cut = "size";
      else this.lines.push(line);
      return this.cut === null;
    },
  };
}

function report({ lines, cut }: Collector, end: RipgrepEnd): string {
  const shown = plural(lines.length, "line");
  const narrow = "Narrow the pattern, the path or the glob.";
  if (end === "timeout" && lines.length === 0) {
    throw new ToolError(`The search timed out without a match. ${narrow}`, { code: "timeout" });
  }
  if (end === "timeout") return [...lines, `[Stopped by the time limit: partial results. ${narrow}]`].join("\n");
  if (cut === "head_limit") return [...lines, `[Stopped at head_limit after ${shown}; there are more]`].join("\n");
  if (cut === "size") return [...lines, `[Too much output: cut after ${shown}. ${narrow}]`].join("\n");
  return lines.length === 0 ? "No matches found." : lines.join("\n");
}
