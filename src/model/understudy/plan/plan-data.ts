/**
 * Plans the answer about text that came with the prompt: its kind, its notable lines, and the project files it names.
 */
import { isObject, parseJson } from "../../../lib/json.ts";
import { plural } from "../../../lib/text.ts";
import { cutLine, cutQuestion, isBinaryText } from "../bounds.ts";
import { actionIn } from "../intent.ts";
import { OPINION } from "../intent-words.ts";
import { describeDiff } from "../project/describe-diff.ts";
import { describeGitLog } from "../project/describe-git-log.ts";
import type { SourceLine } from "../project/evidence.ts";
import { isEnding, type SyntaxFamily } from "../project/languages.ts";
import { declarationsOf } from "../project/read-source.ts";
import { excerpt, heading, inlineCode, inlineText, limitRows, list, writeAnswer } from "../write-answer.ts";
import { ask, hindrances, linesOf, type Scene, type UnderstudyStep, view } from "./plan.ts";

const MAX_PLACES = 3;
const AROUND = 4;
/** Enough to recognise a language, and more than is shown. */
const MAX_CODE_LINES = 5000;

const EMPTY =
  "The piped input was empty, so there is nothing to describe. If text was meant to come, look at the command in front of the pipe: it may have failed, or written to stderr (`2>&1` sends that along).";

export function planData(scene: Scene, given: { question: string; data: string }): UnderstudyStep {
  const { task, origin } = withoutNote(given);
  if (origin !== undefined && task.data === "") return { kind: "answer", text: writeAnswer([origin]) };
  if (task.data.trim() === "") return { kind: "answer", text: writeAnswer([EMPTY]) };
  if (isBinaryText(task.data)) return { kind: "answer", text: writeAnswer([describeBinary(task.data)]) };
  const whole = task.data.split("\n").map((text, index) => ({ number: index + 1, text }));
  const lines = whole.map(({ number, text }) => ({ number, text: cutLine(text) }));
  const paths = pathsNamedIn(lines);
  const look = ask(
    scene,
    paths.map(({ path, line }) => view(path, [Math.max(1, line - AROUND), line + AROUND])),
  );
  if (look !== undefined) return look;
  const seen = paths.flatMap(({ path, line }) => {
    const shown = linesOf(scene, path).filter((one) => Math.abs(one.number - line) <= AROUND);
    return shown.length === 0 ? [] : [excerpt(path, shown)];
  });
  const size = `${plural(lines.length, "line")}, ${plural(task.data.length, "character")}`;
  const notes = paths.length > 0 ? hindrances(scene, ["view"]) : [];
  return {
    kind: "answer",
    text: writeAnswer([
      limitOf(task.question),
      origin,
      ...describeData({ data: task.data, whole, lines, size }),
      ...(seen.length > 0 ? ["Places in this project that it names:"] : []),
      ...seen,
      notes,
    ]),
  };
}

/** Large input is in a file, and the prompt has a note about it. */
const NOTE = /^The piped input \((?<size>[^)]{1,60})\) is in the file (?<path>.{1,4096}?)\. Read the parts you need\./;

function withoutNote(task: { question: string; data: string }) {
  const { 0: note = "", groups } = NOTE.exec(task.data) ?? {};
  if (groups === undefined) return { task, origin: undefined };
  const data = task.data.slice(note.length).replace(/^ It begins:\s*/, "");
  const { size, path } = groups;
  const origin =
    data === ""
      ? `The input is ${size}, stored in ${path}. I read text only, so I quote nothing of it.`
      : `This is the beginning of ${size}; all of it is in ${path}.`;
  return { task: { ...task, data }, origin };
}

/** Returns the opening sentence if the question asks for more than a description. */
function limitOf(asked: string): string | undefined {
  const question = cutQuestion(asked);
  const verb = actionIn(question) ?? OPINION.exec(question)?.groups?.verb?.toLowerCase();
  if (verb !== undefined)
    return `I cannot do this (“${verb}”): it needs a model that reasons. I can say what the text holds:`;
  return /\?|\bwhy\b|\bhow\b/i.test(question)
    ? "I can say what the text holds, not why: drawing conclusions needs a real model."
    : undefined;
}

type Section = string | string[];

interface Sample {
  readonly data: string;
  readonly whole: readonly SourceLine[];
  /** Lines cut to the length that patterns may be applied to. */
  readonly lines: readonly SourceLine[];
  readonly size: string;
}

function describeData({ data, whole, lines, size }: Sample): Section[] {
  const log = describeGitLog(lines, size);
  if (log !== undefined) return log;
  if (lines.some((line) => /^diff --git |^@@ -\d+/.test(line.text))) return describeDiff(lines, size);
  const json = parseJson(data);
  if (json.ok && typeof json.value === "object" && json.value !== null)
    return [`The text is JSON: ${size}.`, describeJson(json.value)];
  if (
    lines.some((line) =>
      /^Traceback \(most recent|^\s+at \S.*:\d|^panic: |^goroutine \d+|^Exception in thread/.test(line.text),
    )
  )
    return describeTrace(lines, size);
  const records = whole.filter((line) => line.text.trimStart().startsWith("{") && parseJson(line.text).ok);
  if (records.length > 1 && records.length * 2 > lines.length) {
    const first = parseJson(records[0]?.text ?? "");
    return [
      `The text is JSON lines, ${plural(records.length, "record")}: ${size}.`,
      first.ok ? describeJson(first.value) : [],
    ];
  }
  const logged = lines.filter((line) => LOG_LINE.test(line.text));
  if (logged.length * 3 > lines.length) return describeLog(lines, size);
  return describeCode(lines, size) ?? describeTable(whole, size) ?? describeText(whole, lines, size);
}

const LOG_LINE =
  /^\W{0,2}(\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|\w{3} +\d+ \d\d:\d\d|\[?(TRACE|DEBUG|INFO|NOTICE|WARN(ING)?|ERROR|FATAL|CRITICAL)\b)|\b(level|severity)[=:]/i;
const ERROR_LINE = /\b(error|fatal|critical|panic|exception|failed|failure)\b|^E\d{4}|✗|✖/i;
const WARNING_LINE = /\bwarn(ing)?\b/i;

function describeLog(lines: readonly SourceLine[], size: string): Section[] {
  const errors = lines.filter((line) => ERROR_LINE.test(line.text));
  const warnings = lines.filter((line) => WARNING_LINE.test(line.text) && !ERROR_LINE.test(line.text));
  const kinds = new Map<string, SourceLine[]>();
  for (const line of errors) {
    const kind = line.text
      .replace(/\d{4}-\d\d-\d\d[T ]?\S*|\d\d:\d\d:\d\d\S*/g, "")
      .replace(/0x[0-9a-f]+|[0-9a-f]{8,}|\d+/gi, "#")
      .replace(/\s+/g, " ")
      .trim();
    const known = kinds.get(kind);
    if (known === undefined) kinds.set(kind, [line]);
    else known.push(line);
  }
  const rows = [...kinds.values()]
    .sort((a, b) => b.length - a.length || (a[0]?.number ?? 0) - (b[0]?.number ?? 0))
    .flatMap((group) =>
      group[0] === undefined ? [] : [`- ${group.length}×  line ${group[0].number}  ${inlineCode(group[0].text)}`],
    );
  const times = lines.flatMap(
    (line) => /\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?|\d\d:\d\d:\d\d/.exec(line.text)?.[0] ?? [],
  );
  const span = times.length > 1 ? ` From ${times[0]} to ${times.at(-1)}.` : "";
  return [
    `The text is a log: ${size}; ${plural(errors.length, "line")} with errors, ${plural(warnings.length, "line")} with warnings.${span}`,
    heading(`Errors by kind (${kinds.size})`, limitRows(rows, 12, "more kinds")),
    heading(
      "First warnings",
      warnings.slice(0, 3).map((line) => `- line ${line.number}  ${inlineCode(line.text)}`),
    ),
  ];
}

function describeTrace(lines: readonly SourceLine[], size: string): Section[] {
  const messages = lines.filter((line) =>
    /^(\w+\.)*\w*(Error|Exception|Warning|Interrupt)\b|^panic: |^Uncaught |^Exception in thread/.test(line.text),
  );
  const frames = lines.filter((line) => /^\s+at |^\s+File "/.test(line.text));
  return [
    `The text holds a stack trace: ${size}, ${plural(frames.length, "frame")}.`,
    heading(
      "Message",
      limitRows(
        messages.map((line) => `- line ${line.number}  ${inlineCode(line.text)}`),
        5,
      ),
    ),
    heading(
      "Innermost frames named",
      limitRows(
        frames.slice(0, 6).map((line) => `- line ${line.number}  ${inlineCode(line.text)}`),
        6,
      ),
    ),
  ];
}

function describeJson(value: unknown): string[] {
  if (Array.isArray(value)) {
    const first: unknown = value[0];
    const keys = isObject(first)
      ? [
          `The first has the keys ${list(
            Object.keys(first).map((key) => `\`${key}\``),
            20,
          )}.`,
        ]
      : [];
    return [`An array of ${plural(value.length, "element")}.`, ...keys];
  }
  if (!isObject(value)) return [];
  return heading(
    "Keys",
    limitRows(
      Object.entries(value).map(([key, inner]) => `- \`${key}\`: ${shapeOf(inner)}`),
      30,
      "more keys",
    ),
  );
}

function shapeOf(value: unknown): string {
  if (Array.isArray(value)) return `array of ${value.length}`;
  if (isObject(value))
    return `object with ${
      list(
        Object.keys(value).map((key) => `\`${key}\``),
        6,
      ) || "no keys"
    }`;
  return typeof value === "string" ? `“${inlineText(value, 80)}”` : String(value);
}

function describeCode(lines: readonly SourceLine[], size: string): Section[] | undefined {
  const families: SyntaxFamily[] = ["script", "python", "go", "rust", "braces", "c", "ruby", "sql"];
  const names: Partial<Record<SyntaxFamily, string>> = {
    script: "TypeScript or JavaScript",
    python: "Python",
    go: "Go",
    rust: "Rust",
    braces: "a language of the Java family",
    c: "C or C++",
    ruby: "Ruby",
    sql: "SQL",
  };
  const best = families
    .map((family) => ({ family, found: declarationsOf(family, lines.slice(0, MAX_CODE_LINES)) }))
    .sort((a, b) => b.found.length - a.found.length)[0];
  if (best === undefined || best.found.length === 0 || !lines.some((line) => /[{};:]\s*$|\)$/.test(line.text)))
    return undefined;
  const rows = best.found.map((one) => `- line ${one.line}  ${inlineCode(one.text)}`);
  return [
    `The text looks like code in ${names[best.family] ?? best.family}: ${size}.`,
    heading("Declares", limitRows(rows, 30)),
  ];
}

function describeTable(lines: readonly SourceLine[], size: string): Section[] | undefined {
  const full = lines.filter((line) => line.text.trim() !== "");
  for (const separator of ["\t", ",", ";", "|"]) {
    const columns = full[0]?.text.split(separator) ?? [];
    if (columns.length < 2 || full.length < 3) continue;
    if (full.every((line) => line.text.split(separator).length === columns.length))
      return [
        `The text is a table: ${size}; ${plural(full.length - 1, "row")} under the columns ${list(
          columns.map((column) => inlineCode(column.slice(0, 200))),
          20,
        )}.`,
      ];
  }
  return undefined;
}

function describeText(whole: readonly SourceLine[], lines: readonly SourceLine[], size: string): Section[] {
  const headings = declarationsOf("prose", lines);
  const errors = lines.filter((line) => ERROR_LINE.test(line.text));
  const words = whole.reduce((sum, line) => sum + (line.text.match(/\S+/g)?.length ?? 0), 0);
  return [
    `The text is prose or plain output: ${size}, ${plural(words, "word")}.`,
    heading(
      "Sections",
      limitRows(
        headings.map((one) => `- line ${one.line}  ${inlineText(one.name, 100)}`),
        20,
      ),
    ),
    heading(
      "Lines that speak of errors",
      limitRows(
        errors.map((line) => `- line ${line.number}  ${inlineCode(line.text)}`),
        8,
      ),
    ),
    heading(
      "Begins with",
      lines
        .filter((line) => line.text.trim() !== "")
        .slice(0, 3)
        .map((line) => `> ${inlineText(line.text, 160)}`),
    ),
  ];
}

/** Describes binary input. Each invalid sequence was replaced by one mark, so the byte count is a lower bound. */
function describeBinary(data: string): string {
  const marks = data.split("\ufffd").length - 1;
  const bytes = Buffer.byteLength(data) - 2 * marks;
  return `The input is binary data, ${marks > 0 ? "at least " : ""}${plural(bytes, "byte")}. I read text only, so I quote nothing of it.`;
}

/** Finds `src/a.ts:12` and `File "a.py", line 3`. Relative paths only, no libraries. */
function pathsNamedIn(lines: readonly SourceLine[]): { path: string; line: number }[] {
  const found = new Map<string, { path: string; line: number }>();
  for (const { text } of lines) {
    if (/node_modules|site-packages/.test(text)) continue;
    for (const named of [...quotedPaths(text), ...plainPaths(text)]) {
      const path = named.path.replace(/^\.\//, "");
      if (path.startsWith("/") || path.startsWith("..") || named.line <= 0) continue;
      found.set(`${path}:${named.line}`, { path, line: named.line });
      if (found.size >= MAX_PLACES) return [...found.values()];
    }
  }
  return [...found.values()];
}

function quotedPaths(text: string): { path: string; line: number }[] {
  return [...text.matchAll(/File "([^"]{1,300})", line (\d{1,9})/g)].map((match) => ({
    path: match[1] ?? "",
    line: Number(match[2]),
  }));
}

/** Searches backwards from each number, so that each character is read once. */
function plainPaths(text: string): { path: string; line: number }[] {
  let from = 0;
  return [...text.matchAll(/[:(](\d{1,9})/g)].flatMap((match) => {
    let start = match.index;
    while (start > from && /[\p{L}\p{M}\p{N}_@./-]/u.test(text.charAt(start - 1))) start -= 1;
    const path = text.slice(start, match.index);
    const before = text.charAt(start - 1);
    from = match.index;
    const ending = /\.(\w{1,5})$/.exec(path)?.[1] ?? "";
    return before !== ":" && isEnding(ending) ? [{ path, line: Number(match[1]) }] : [];
  });
}
