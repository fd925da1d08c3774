// Measures the shape of the source: files per folder, import cycles, long functions, comment openers, lines.
//
//   npm run shape              a table with the limits
//   npm run shape -- --list    every place that is over a limit
//   node scripts/shape.mjs --check   fails on comments that open with a banned word or use a banned phrase, on long functions,
//                                    and on titles of tests without a subject
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";
import { parseAst } from "vite";

export const LIMITS = { filesPerFolder: 25, functionLines: 60, cycleFiles: 5, fileLines: 400, promptPath: 7 };

/** The functions from the prompt of the command line to the loop. `test/prompt-path.test.ts` compares them with a run. */
export const PROMPT_PATH = [
  ["promptCommand", "cli/prompt-mode.ts"],
  ["submit", "runtime/submit.ts"],
  ["Session.sendAndWait", "session/session.ts"],
  ["MessageQueue.accept", "session/turn/message-queue.ts"],
  ["MessageQueue.#work", "session/turn/message-queue.ts"],
  ["AnswerRunner.answer", "session/turn/answer-runner.ts"],
  ["runLoop", "loop/loop.ts"],
];
const BANNED_OPENER = /^(What|Who|Whoever|Whom|Whose|Where|That which|Nobody|Whatever)\b/;

/** Reads every production file below `src` of this folder. */
export function readSources(root) {
  return readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
    .filter((path) => /\.tsx?$/.test(path) && !path.endsWith(".d.ts") && !path.endsWith(".test.ts"))
    .sort()
    .map((path) => ({ path, text: readFileSync(join(root, "src", path), "utf8") }));
}

/** Returns how many files each folder has of its own. */
export function filesPerFolder(sources) {
  const counts = new Map();
  for (const { path } of sources) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
  return counts;
}

/** Returns the paths, relative to `src`, that a file imports: statically, dynamically, and types. */
export function importsOf({ path, text }) {
  return [...text.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)].map(([, specifier]) =>
    normalize(join(dirname(path), specifier)),
  );
}

/** Returns groups of files that import each other in a circle (strongly connected components), largest first. */
export function importCycles(sources) {
  const graph = new Map(sources.map((source) => [source.path, importsOf(source)]));
  const state = new Map();
  const stack = [];
  const cycles = [];
  const visit = (path) => {
    const own = { index: state.size, low: state.size, open: true };
    state.set(path, own);
    stack.push(path);
    for (const next of graph.get(path) ?? []) {
      if (!graph.has(next)) continue;
      const seen = state.get(next);
      if (seen === undefined) own.low = Math.min(own.low, visit(next).low);
      else if (seen.open) own.low = Math.min(own.low, seen.index);
    }
    if (own.low === own.index) {
      const group = stack.splice(stack.indexOf(path));
      for (const member of group) state.get(member).open = false;
      if (group.length > 1) cycles.push(group.sort());
    }
    return own;
  };
  for (const path of graph.keys()) if (!state.has(path)) visit(path);
  return cycles.sort((a, b) => b.length - a.length);
}

/** Returns functions and methods with more lines than this. A function that only holds others counts its own lines too. */
export function longFunctions({ path, text }, limit) {
  const starts = lineStarts(text);
  const found = [];
  const walk = (node, name) => {
    if (Array.isArray(node)) for (const child of node) walk(child, name);
    if (node === null || typeof node !== "object" || Array.isArray(node)) return;
    const own = nameOf(node) ?? name;
    if (isFunction(node)) {
      const lines = lineAt(starts, node.end) - lineAt(starts, node.start) + 1;
      if (lines > limit) found.push({ path, name: own ?? "(anonymous)", line: lineAt(starts, node.start), lines });
    }
    for (const [key, child] of Object.entries(node)) if (key !== "parent") walk(child, own);
  };
  walk(parseAst(text, { lang: path.endsWith(".tsx") ? "tsx" : "ts" }, path).body, undefined);
  return found;
}

const isFunction = ({ type }) =>
  type === "FunctionDeclaration" || type === "FunctionExpression" || type === "ArrowFunctionExpression";

function nameOf({ type, id, key }) {
  if (type === "FunctionDeclaration" || type === "VariableDeclarator") return id?.name;
  if (type === "MethodDefinition" || type === "Property" || type === "PropertyDefinition") return key?.name;
  return undefined;
}

function lineStarts(text) {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}

function lineAt(starts, offset) {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (starts[middle] <= offset) low = middle;
    else high = middle - 1;
  }
  return low + 1;
}

/** Returns the doc comments of a file, each with its line and its first words. */
export function docComments({ path, text }) {
  return [...text.matchAll(/\/\*\*\s*(?:\n\s*\*\s*)?([^\n]*)/g)].map((match) => ({
    path,
    line: text.slice(0, match.index).split("\n").length,
    opener: match[1] ?? "",
  }));
}

/** Returns doc comments that open with a relative word instead of a verb or a noun. */
export const bannedOpeners = (comments) => comments.filter(({ opener }) => BANNED_OPENER.test(opener));

/** Phrases of an older style, with the words to use instead. */
const BANNED_PHRASES = [
  [/\bas things stand\b/i, "currently"],
  [/\bgoes on with\b/i, "resumes, continues"],
  [/\b(takes?|taken) up again\b/i, "resume"],
  [/\bwhoever watches\b/i, "clients, listeners"],
  [/\bis told to nobody\b/i, "is not reported"],
  [/\bmend(s|ed|ing)?\b/i, "fix"],
  [/\bnobody has approved\b/i, "is not approved"],
];

/** Returns lines of a file with a banned phrase, in comments and in texts such as errors. */
export function bannedPhrases({ path, text }) {
  return text.split("\n").flatMap((line, index) =>
    BANNED_PHRASES.filter(([phrase]) => phrase.test(line)).map(([phrase, better]) => ({
      path,
      line: index + 1,
      problem: `${phrase.source.replaceAll("\\b", "")} → ${better}`,
    })),
  );
}

/** Ids at the front of a title: of features (docs/features.md) and of attacks (test/adversarial). */
const TITLE_IDS = /^(?:(?:[A-Z]{2,6}-\d+|[A-Z]\d\d)[,:]? (?:(?:and|to) )?)+/;
const TITLE_PRONOUN =
  /^(it|its|they|them|their|he|she|we|you|this|these|those|that|which|who|whom|whose|what|whatever|whoever)\b/i;
const TEST_MEMBERS = new Set([
  "concurrent",
  "each",
  "fails",
  "for",
  "only",
  "runIf",
  "sequential",
  "skip",
  "skipIf",
  "todo",
]);

/** Returns what is wrong with the title of a test, or `undefined`. A title must make sense alone in a list of failures. */
export function titleProblem(title) {
  const words = title.replace(TITLE_IDS, "");
  if (words.split(/\s+/).filter(Boolean).length < 3) return `"${title}": a title has a subject and a verb`;
  if (TITLE_PRONOUN.test(words)) return `"${title}": begin the title with its subject`;
  return undefined;
}

/** Returns the titles of `it` and `test` in a file of tests, each with its line. Placeholders count as words. */
export function testTitles({ path, text }) {
  const starts = lineStarts(text);
  const found = [];
  const walk = (node) => {
    if (Array.isArray(node)) for (const child of node) walk(child);
    if (node === null || typeof node !== "object" || Array.isArray(node)) return;
    const [title, body] = node.type === "CallExpression" ? node.arguments : [];
    if (title && body && isTestFunction(node.callee)) {
      const value = title.type === "TemplateLiteral" ? text.slice(title.start + 1, title.end - 1) : title.value;
      if (typeof value === "string") found.push({ path, line: lineAt(starts, title.start), title: value });
    }
    for (const [key, child] of Object.entries(node)) if (key !== "parent") walk(child);
  };
  walk(parseAst(text, { lang: "ts" }, path).body);
  return found;
}

/** Recognises `it`, `test`, `it.skip`, `it.each(…)`, `it.skipIf(…)` and the like. */
function isTestFunction(callee) {
  if (callee.type === "Identifier") return callee.name === "it" || callee.name === "test";
  if (callee.type === "CallExpression")
    return callee.callee.type === "MemberExpression" && isTestFunction(callee.callee);
  if (callee.type === "TaggedTemplateExpression") return isTestFunction(callee.tag);
  return callee.type === "MemberExpression" && TEST_MEMBERS.has(callee.property.name) && isTestFunction(callee.object);
}

/** Returns titles of tests with a banned phrase or without a subject. Other texts in tests may quote anything. */
function bannedTitles(root) {
  return ["src", "test"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(".test.ts"))
      .flatMap((path) => {
        const text = readFileSync(join(root, folder, path), "utf8");
        return testTitles({ path: join("..", folder, path), text });
      })
      .flatMap(({ path, line, title }) => {
        const phrases = bannedPhrases({ path, text: title }).map(({ problem }) => problem);
        return [...phrases, titleProblem(title)].filter(Boolean).map((problem) => ({ path, line, problem }));
      }),
  );
}

/** Files with functions that are still too long, and how many. The list may only shrink. */
const LONG_FUNCTIONS_LEFT = {};

/** Returns files with more long functions than allowed, and entries of the list that are no longer needed. */
export function longFunctionProblems(sources, allowed = LONG_FUNCTIONS_LEFT) {
  const found = sources.flatMap((source) => longFunctions(source, LIMITS.functionLines));
  const counts = grouped(found);
  const tooMany = [...counts].filter(([path, list]) => list.length > (allowed[path] ?? 0));
  const done = Object.entries(allowed).filter(([path, count]) => (counts.get(path)?.length ?? 0) < count);
  return [
    ...tooMany.flatMap(([, list]) =>
      list.map(({ path, line, name, lines }) => ({
        path,
        line,
        problem: `${name} has ${lines} lines; the limit is ${LIMITS.functionLines}. Divide it by duty.`,
      })),
    ),
    ...done.map(([path]) => ({ path, line: 1, problem: "is shorter now: remove it from LONG_FUNCTIONS_LEFT" })),
  ];
}

function grouped(found) {
  const groups = new Map();
  for (const one of found) groups.set(one.path, [...(groups.get(one.path) ?? []), one]);
  return groups;
}

/** Prints everything that breaks the rules for prose, titles and long functions. Returns how many there are. */
function check(root) {
  const sources = readSources(root);
  const openers = bannedOpeners(sources.flatMap(docComments)).map(({ path, line, opener }) => ({
    path,
    line,
    problem: `"${opener.split(" ")[0]} …": open with a verb or the noun being defined`,
  }));
  const found = [
    ...openers,
    ...sources.flatMap(bannedPhrases),
    ...bannedTitles(root),
    ...longFunctionProblems(sources),
  ];
  for (const { path, line, problem } of found) process.stdout.write(`${join("src", path)}:${line} ${problem}\n`);
  return found.length;
}

/** Returns the public members of the class `Session`. */
export function sessionMembers(sources) {
  const source = sources.find(({ path }) => path === "session/session.ts");
  const declaration = parseAst(source.text, { lang: "ts" }, source.path)
    .body.map((node) => node.declaration ?? node)
    .find((node) => node.type === "ClassDeclaration" && node.id.name === "Session");
  return declaration.body.body
    .filter(
      ({ key, accessibility, static: isStatic }) =>
        key?.type === "Identifier" && accessibility !== "private" && !isStatic,
    )
    .map(({ key }) => key.name)
    .filter((name, index, all) => name !== "constructor" && all.indexOf(name) === index);
}

function report(root, list) {
  const sources = readSources(root);
  const folders = [...filesPerFolder(sources)].sort((a, b) => b[1] - a[1]);
  const cycles = importCycles(sources).filter(({ length }) => length > LIMITS.cycleFiles);
  const functions = sources.flatMap((source) => longFunctions(source, LIMITS.functionLines));
  const comments = sources.flatMap(docComments);
  const openers = bannedOpeners(comments);
  const lines = sources.reduce((sum, { text }) => sum + text.split("\n").length - 1, 0);
  const rows = [
    ["files", sources.length, ""],
    ["lines", lines, ""],
    ["most files in one folder", `${folders[0][1]} (src/${folders[0][0]})`, `≤ ${LIMITS.filesPerFolder}`],
    [`import cycles of more than ${LIMITS.cycleFiles} files`, cycles.length, "0"],
    [`functions of more than ${LIMITS.functionLines} lines`, functions.length, "0"],
    ["doc comments", comments.length, ""],
    ["doc comments with a banned opener", openers.length, "0"],
    ["public members of Session", sessionMembers(sources).length, "about 12"],
    ["functions from the prompt to the loop", PROMPT_PATH.length, `≤ ${LIMITS.promptPath}`],
  ];
  for (const [name, value, limit] of rows)
    process.stdout.write(`${name.padEnd(42)} ${String(value).padEnd(28)} ${limit}\n`);
  if (!list) return;
  for (const [folder, count] of folders)
    if (count > LIMITS.filesPerFolder) process.stdout.write(`folder  src/${folder}: ${count}\n`);
  for (const cycle of cycles) process.stdout.write(`cycle   ${cycle.length}: ${cycle.join(" ")}\n`);
  for (const { path, line, name, lines: length } of functions)
    process.stdout.write(`function src/${path}:${line} ${name}: ${length}\n`);
  for (const { path, line, opener } of openers) process.stdout.write(`comment src/${path}:${line} ${opener}\n`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = fileURLToPath(new URL("..", import.meta.url));
  if (!process.argv.includes("--check")) report(root, process.argv.includes("--list"));
  else if (check(root) > 0) process.exitCode = 1;
}
