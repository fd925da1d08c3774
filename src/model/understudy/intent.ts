/** Classifies the last prompt. Pure; the table of prompts in the test beside it is the specification. */
import { cutLine, cutQuestion, findBlock, isBinaryText } from "./bounds.ts";
import { type CommandName, commandOf } from "./commands.ts";
import { partAskedFor } from "./delegate.ts";
import { foreignIn } from "./foreign.ts";
import {
  ACTION,
  ACTION_AT_END,
  BARE,
  BUILDS,
  CHANGES,
  COMMANDS,
  DEFINITION,
  ENTRIES,
  EXPLAIN,
  FIND,
  GREETING,
  HELP,
  JUDGEMENT,
  OPINION,
  OVERVIEW,
  RECAP,
  RUNS_TESTS,
  THANKS,
  USES,
  WHETHER,
  WHOLE,
  WORK,
} from "./intent-words.ts";
import { subjectOf } from "./subject.ts";
import { pathIn, type Term, termsIn } from "./terms.ts";

export type Task =
  | { readonly kind: "overview"; readonly focus?: "entries" | "commands" | "tests" }
  | {
      readonly kind: "find";
      readonly terms: readonly Term[];
      readonly want: "definition" | "uses" | "any";
      /** The question expects yes or no. */
      readonly whether?: true;
    }
  | { readonly kind: "explain"; readonly path: string; readonly line?: number; readonly terms: readonly Term[] }
  | { readonly kind: "changes"; readonly opinion?: string }
  | { readonly kind: "part"; readonly folder: string }
  | { readonly kind: "data"; readonly question: string; readonly data: string }
  | { readonly kind: "beyond"; readonly verb: string; readonly path?: string; readonly terms: readonly Term[] }
  | { readonly kind: "greeting" | "thanks" | "help" }
  | { readonly kind: "command"; readonly name: CommandName }
  | { readonly kind: "recap" };

/**
 * Returns the task of the last prompt. `prompts` are the user's messages, oldest first. Earlier ones only resolve "it"
 * and "that file".
 */
export function readTask(prompts: readonly string[]): Task {
  const prompt = prompts.at(-1) ?? "";
  const task = readPrompt(prompt);
  if (!lacksSubject(task, prompt)) return task;
  for (const earlier of prompts.slice(0, -1).reverse()) {
    const subject = readPrompt(earlier);
    if (subject.kind === "explain") {
      if (task.kind !== "find") return subject;
      return { kind: "find", terms: [{ text: fileStem(subject.path), kind: "name" }], want: task.want };
    }
    if (subject.kind === "find" && subject.terms.length > 0)
      return { ...subject, want: task.kind === "find" ? task.want : subject.want };
  }
  return task.kind === "find" && BARE.test(prompt) ? { kind: "overview" } : task;
}

/** True if the answer depends on words that rules may have misread, and not on a name. */
export function isUncertain(task: Task): boolean {
  if (task.kind === "find") return task.terms.every((term) => term.kind === "word");
  return task.kind === "greeting" || task.kind === "help" || task.kind === "beyond";
}

/** True if the prompt is a question or a request on its own, even one that rules cannot fulfil. */
export function asksSomething(prompt: string): boolean {
  const task = readPrompt(prompt);
  if (task.kind === "data") return findBlock(prompt, PIPED) !== undefined;
  return task.kind !== "beyond" || task.verb !== "chat";
}

/** True if an answer is all that the prompt wants. A prompt that wants code changed wants more. */
export function isWithinReach(task: Task, prompt: string): boolean {
  if (task.kind === "beyond" || task.kind === "command") return false;
  if (task.kind === "data") return task.data.trim() !== "";
  if (task.kind !== "find" && task.kind !== "explain") return true;
  const question = cutQuestion(prompt);
  return (FIND.test(question) || EXPLAIN.test(question) || question.includes("?")) && !WORK.test(question);
}

function readPrompt(whole: string): Task {
  const name = commandOf(whole);
  if (name !== undefined) return { kind: "command", name };
  const folder = partAskedFor(whole);
  if (folder !== undefined) return { kind: "part", folder };
  const prompt = cutQuestion(whole);
  if (RECAP.test(prompt)) return { kind: "recap" };
  const piped = splitData(whole);
  if (piped !== undefined) return { kind: "data", ...piped };

  const words = prompt
    .toLowerCase()
    .replace(/[\s.!?,;:。！？，]+/g, " ")
    .trim();
  if (words === "") return { kind: "help" };
  if (GREETING.test(words)) return { kind: "greeting" };
  if (THANKS.test(words)) return { kind: "thanks" };
  if (HELP.test(words) || prompt.trim() === "?") return { kind: "help" };

  const namedPath = pathIn(prompt);
  const terms = termsIn(namedPath?.sure ? prompt.replace(namedPath.path, " ") : prompt);
  const verb = actionIn(words);
  if (verb !== undefined) {
    const rest = terms.filter((term) => !verb.split(" ").includes(term.text));
    return { kind: "beyond", verb, ...(namedPath?.sure ? { path: namedPath.path } : {}), terms: rest };
  }

  const judged = JUDGEMENT.exec(words)?.groups?.what;
  if (judged !== undefined)
    return { kind: "beyond", verb: `find ${judged}`, ...(namedPath?.sure ? { path: namedPath.path } : {}), terms: [] };
  const finds = FIND.test(prompt);
  const whether = WHETHER.test(words) ? { whether: true as const } : {};
  const want = USES.test(prompt) ? "uses" : DEFINITION.test(prompt) ? "definition" : "any";
  const named = terms.some((term) => term.kind !== "word");
  const overview = OVERVIEW.exec(prompt)?.[0];
  const subject = namedPath?.sure ? undefined : subjectOf(prompt);
  if (subject !== undefined) return { kind: "find", terms: [subject], want };
  if (foreignIn(prompt) !== undefined && !named && !namedPath?.sure) {
    if (RUNS_TESTS.test(words)) return { kind: "overview", focus: "tests" };
    if (BUILDS.test(words)) return { kind: "overview", focus: "commands" };
    if (WHOLE.test(prompt) && !(finds && terms.length > 0)) return { kind: "overview" };
  }
  if (CHANGES.test(prompt) && !(finds && named) && !namedPath?.sure) {
    const opinion = OPINION.exec(words)?.groups?.verb;
    return opinion === undefined ? { kind: "changes" } : { kind: "changes", opinion };
  }
  if (CHANGES.test(prompt) && /change ?log/i.test(namedPath?.path ?? "")) return { kind: "changes" };
  if (namedPath?.sure && !(finds && want !== "any")) return explain(namedPath, terms);
  if (overview !== undefined && !namesOther(terms, overview) && !(finds && want !== "any"))
    return { kind: "overview", ...focusOf(words) };
  if (finds)
    return { kind: "find", terms: namedPath === undefined ? terms : withPath(terms, namedPath.path), want, ...whether };
  if (namedPath !== undefined && EXPLAIN.test(prompt)) return explain(namedPath, terms);
  if (terms.length > 0 && (EXPLAIN.test(prompt) || named || words.split(" ").length <= 3 || prompt.includes("?")))
    return { kind: "find", terms, want: "any", ...whether };
  if (EXPLAIN.test(prompt)) return { kind: "find", terms, want };
  return { kind: "beyond", verb: "chat", terms };
}

function focusOf(words: string): { focus?: "entries" | "commands" | "tests" } {
  if (ENTRIES.test(words)) return { focus: "entries" };
  if (!COMMANDS.test(words)) return {};
  return { focus: /\btests?\b/.test(words) && !/\b(build|compile|install)\b/.test(words) ? "tests" : "commands" };
}

function explain(namedPath: { path: string; line?: number }, terms: readonly Term[]): Task {
  return {
    kind: "explain",
    path: namedPath.path,
    ...(namedPath.line === undefined ? {} : { line: namedPath.line }),
    terms,
  };
}

/** Some languages capitalise nouns: a name that is part of the question phrase itself does not count. */
function namesOther(terms: readonly Term[], question: string): boolean {
  return terms.some((term) => term.kind !== "word" && !question.includes(term.text));
}

/** Returns the work that a prompt starts with. "Write a summary of x" asks for reading, not for writing. */
export function actionIn(words: string): string | undefined {
  const match = ACTION.exec(words.toLowerCase());
  const verb = match?.groups?.verb;
  if (verb === undefined || match === null) {
    const { german, verb: last } = ACTION_AT_END.exec(words)?.groups ?? {};
    return german ?? last;
  }
  const rest = words.slice(match[0].length, match[0].length + 40);
  if (
    /^ (me |us |up )?(an? |the |some )?(short |brief |quick |detailed )?(summary|overview|explanation|description|map|outline|list|tour|sense|sure|search)\b/.test(
      rest,
    )
  )
    return undefined;
  return verb;
}

function lacksSubject(task: Task, prompt: string): boolean {
  if (task.kind === "find") return task.terms.length === 0;
  if (task.kind !== "beyond" || task.verb !== "chat" || task.terms.length > 0) return false;
  return /\b(it|its|that|this|those|them|more|again|go on|continue)\b/i.test(prompt);
}

function withPath(terms: readonly Term[], path: string): Term[] {
  const stem = fileStem(path);
  const others = terms.filter((term) => !path.toLowerCase().includes(term.text.toLowerCase()));
  return [{ text: stem, kind: "name" }, ...others];
}

function fileStem(path: string): string {
  return (path.replace(/\/$/, "").split("/").at(-1) ?? path).replace(/\.\w+$/, "");
}

const DATA_LINES = 4;

const MAX_SAMPLED_LINES = 400;
const PIPED = ["piped_input", "stdin"];
const DATA_TAGS = [...PIPED, "input", "data", "piped", "file", "log", "diff"];

/** Splits a prompt that includes text to examine: tagged, fenced, or appended. */
function splitData(prompt: string): { question: string; data: string } | undefined {
  const tag = findBlock(prompt, DATA_TAGS);
  if (tag !== undefined && (tag.body.trim() !== "" || PIPED.includes(tag.name))) {
    const question = `${prompt.slice(0, tag.start)}${prompt.slice(tag.end)}`.trim();
    return { question, data: tag.body.replace(/^\n/, "").replace(/\n$/, "") };
  }
  if (isBinaryText(prompt)) return { question: "", data: prompt };
  const lines = prompt.trimEnd().split("\n");
  const fenced = splitFence(lines);
  if (fenced !== undefined) return fenced;
  if (lines.length > DATA_LINES) {
    const blank = lines.slice(0, DATA_LINES).findIndex((line) => line.trim() === "");
    if (blank > 0 && blank <= 3 && lines.length - blank > DATA_LINES && looksLikeData(lines.slice(blank + 1)))
      return { question: lines.slice(0, blank).join("\n"), data: lines.slice(blank + 1).join("\n") };
    if (isMarked(lines[0] ?? "") && looksLikeData(lines)) return { question: "", data: lines.join("\n") };
    if (looksLikeData(lines.slice(1))) return { question: lines[0] ?? "", data: lines.slice(1).join("\n") };
  }
  return undefined;
}

function splitFence(lines: readonly string[]): { question: string; data: string } | undefined {
  const start = lines.findIndex((line) => /^(?:```|~~~)/.test(line));
  const fence = /^(?:`{3,20}|~{3,20})/.exec(lines[start] ?? "")?.[0];
  if (fence === undefined) return undefined;
  const length = lines.slice(start + 1).findIndex((line) => line.startsWith(fence));
  if (length < 1) return undefined;
  const end = start + 1 + length;
  const question = [...lines.slice(0, start), ...lines.slice(end + 1)].join("\n").trim();
  return { question, data: lines.slice(start + 1, end).join("\n") };
}

/** Prose wraps into sentences. Data has marks at the start or the end of most lines. */
function looksLikeData(lines: readonly string[]): boolean {
  const full = lines.slice(0, MAX_SAMPLED_LINES).filter((line) => line.trim() !== "");
  return full.length >= DATA_LINES && full.filter(isMarked).length * 2 >= full.length;
}

function isMarked(line: string): boolean {
  return /^\s*([[{}\])@<#$>|]|[-+]{1,3}\S|\d{2,4}[-/:]|at |File "|import |from |def |class |function |const |export |diff |index |commit [0-9a-f]{7}|Author: |Date: |ERROR|WARN|INFO|DEBUG|Traceback)|[;{}(,|>:]\s*$|^\s{2,}\S/.test(
    cutLine(line),
  );
}
