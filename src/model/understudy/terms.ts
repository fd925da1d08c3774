/** Extracts search terms from the words of a prompt. */

import { cutLine } from "./bounds.ts";
import { apartFromScripts, foreignIn } from "./foreign.ts";
import { CONCEPTS, NOT_PATHS, STOP_WORDS } from "./intent-words.ts";
import { escapePattern, isEnding } from "./project/languages.ts";

export interface Term {
  readonly text: string;
  /** `quoted` is searched verbatim, `name` as an identifier, `word` as part of names. */
  readonly kind: "quoted" | "name" | "word";
}

const MAX_TERMS = 6;
const MAX_TERM_CHARACTERS = 100;

export function termsIn(prompt: string): Term[] {
  const terms = new Map<string, Term>();
  const add = (text: string, kind: Term["kind"]) => {
    const key = text.toLowerCase();
    if (text !== "" && !terms.has(key)) terms.set(key, { text, kind });
  };
  let rest = prompt.replace(
    /`([^`\n]{1,80})`|"([^"\n]{1,80})"|“([^”\n]{1,80})”|«([^»\n]{1,80})»|(?<![\p{L}])'([^'\n]{2,80})'(?![\p{L}])/gu,
    (...match) => {
      const text = String(match.slice(1, 6).find((group) => group !== undefined) ?? "").trim();
      add(text.replace(/\(\)$/, ""), isName(text.replace(/\(\)$/, "")) ? "name" : "quoted");
      return " ";
    },
  );
  rest = apartFromScripts(rest.replace(/https?:\/\/\S+/g, " "));
  const language = foreignIn(prompt);
  const words = (rest.match(/(?:[@$]|(?<=^|\s)\.)?[\p{L}_][\p{L}\p{M}\p{N}_$.-]*(?:\(\))?/gu) ?? []).filter(
    (word) => word.length <= MAX_TERM_CHARACTERS,
  );
  // A word in another script than the question is a name. In a question of that script it is just a word.
  const foreign = words.some((word) => /^[a-z]+$/i.test(word) && STOP_WORDS.has(word.toLowerCase()));
  for (const [index, raw] of words.entries()) {
    const word = raw.replace(/\(\)$/, "").replace(/[.-]+$/, "");
    const called = raw.endsWith("()");
    if (STOP_WORDS.has(word.toLowerCase()) && !(called || isCompound(word))) continue;
    if (language?.fillers.has(word.toLowerCase()) && !called) continue;
    const isOfOtherScript = language?.script !== undefined && /^[a-z]{3,}$/i.test(word);
    const capital = isOfOtherScript || (index > 0 && !language?.hasCapitalNouns && /^[A-Z][a-z0-9]+$/.test(word));
    if (called || word.startsWith(".") || isCompound(word) || capital || isAcronym(word)) add(word, "name");
    else if (/^[a-z][a-z0-9-]{2,}$/i.test(word)) add(word.toLowerCase(), "word");
    else if (foreign && /^\p{L}[\p{L}\p{M}\p{N}-]{2,}$/u.test(word)) add(word, "word");
  }
  return mostTelling(prompt, [...terms.values()]);
}

/**
 * Drops plain words if something is quoted or named, because they only blur the search. Translates words of other
 * languages to English.
 */
function mostTelling(prompt: string, terms: readonly Term[]): Term[] {
  const concepts = CONCEPTS.filter(([pattern]) => pattern.test(prompt));
  const own = acronymsAsWords(terms).filter((term) => !concepts.some(([pattern]) => pattern.test(term.text)));
  const english: Term[] = concepts.map(([, text]) => ({ text, kind: "word" }));
  for (const kind of ["quoted", "name"] as const) {
    const telling = own.filter((term) => term.kind === kind);
    if (telling.length > 0) return telling.slice(0, MAX_TERMS);
  }
  const distinct = new Map([...own, ...english].map((term) => [term.text, term]));
  return [...distinct.values()].slice(0, MAX_TERMS);
}

/** Among plain words an acronym counts as a word: code writes it in any case. */
function acronymsAsWords(terms: readonly Term[]): readonly Term[] {
  const plain = terms.every(({ text, kind }) => kind === "word" || isAcronym(text));
  if (!plain || terms.every(({ kind }) => kind !== "word")) return terms;
  return terms.map(({ text }) => ({ text: text.toLowerCase(), kind: "word" }));
}

function isAcronym(word: string): boolean {
  return /^[A-Z]{2,}[A-Z0-9]*$/.test(word);
}

/** Returns the first path in the prompt, with the line if given. `sure` is false if it may not be a path. */
export function pathIn(prompt: string): { path: string; line?: number; sure: boolean } | undefined {
  const text = prompt.replace(/https?:\/\/\S+/g, " ");
  let weak: string | undefined;
  for (const match of text.matchAll(
    /(?<![\p{L}\p{N}_@])@?((?:~|\.{1,2})?\/?[\p{L}\p{M}\p{N}_@.+[\]-]+(?:\/[\p{L}\p{M}\p{N}_@.+[\]-]+)*\/?)(?::(\d{1,9}))?/gu,
  )) {
    const path = cutLine(match[1] ?? "").replace(/[.,;:!?]{1,9}$/, "");
    const name = path.replace(/\/$/, "").split("/").at(-1) ?? "";
    const ending = /\.(\w+)$/.exec(name)?.[1];
    const line = match[2] === undefined ? {} : { line: Number(match[2]) };
    const known =
      /^(readme|license|licence|changelog|contributing|makefile|dockerfile|justfile|gemfile|procfile)$/i.test(name);
    if ((ending !== undefined && (isEnding(ending) || path.includes("/")) && /\p{L}/u.test(name[0] ?? "")) || known)
      return { path, ...line, sure: true };
    if (!path.includes("/") || NOT_PATHS.has(path.toLowerCase()) || !/[a-z]/i.test(path)) continue;
    if (
      /^(\.{1,2}|~)?\/|\/$/.test(path) ||
      /^(src|lib|test|tests|docs?|packages|apps|crates|internal|cmd|pkg|app|scripts|examples)\//.test(path)
    )
      return { path, ...line, sure: true };
    weak ??= path;
  }
  const folder =
    /\b(?:folder|directory|dir|ordner|verzeichnis|carpeta|dossier|каталог\p{L}*|папк\p{L}*)\s+[`"']?(?<name>[\p{L}\p{M}\p{N}_./-]{1,200})/iu.exec(
      text,
    )?.groups?.name ??
    /(?<![\w./-])(?<name>[\w./-]{1,200})[`"']?\s+(?:folder|directory|dir)\b/i.exec(text)?.groups?.name;
  if (folder !== undefined && !STOP_WORDS.has(folder.toLowerCase()) && !/^(top|root|each|every|current)$/i.test(folder))
    return { path: folder, sure: true };
  return weak === undefined ? undefined : { path: weak, sure: false };
}

/** Returns regular expressions for the names that a quoted or named term may have in code. */
export function namePatterns(term: Term): string[] {
  if (term.kind === "quoted") return [escapePattern(term.text)];
  const parts = splitName(term.text);
  if (term.text.includes(".") || parts.length === 0) return [escapePattern(term.text.split(".").at(-1) ?? term.text)];
  const capital = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);
  const variants = [
    term.text,
    ...(parts.length > 1
      ? [
          parts[0] + parts.slice(1).map(capital).join(""),
          parts.map(capital).join(""),
          parts.join("_"),
          parts.join("_").toUpperCase(),
          parts.join("-"),
        ]
      : []),
  ];
  return [...new Set(variants)].map(escapePattern);
}

/** Returns an expression that matches one of the patterns as a whole name, in any script. */
export function wholeName(patterns: readonly string[], ignoreCase: boolean): RegExp {
  const letters = "\\p{L}\\p{M}\\p{N}_";
  const any = patterns.join("|").replaceAll("\\w", `[${letters}]`);
  return new RegExp(`(?<![${letters}$])(?:${any})(?![${letters}$])`, ignoreCase ? "iu" : "u");
}

/** Returns the common beginning of a word's inflected forms. */
export function stem(word: string): string {
  const cut = word
    .toLowerCase()
    .replace(/(?:ies|ied)$/, "")
    .replace(/(?<=\w{4})(?:ations?|ings?|ers?|ors?|ed|es|s|y|e)$/, "");
  return cut.length >= 3 ? cut : word.toLowerCase();
}

export function splitName(name: string): string[] {
  return name
    .replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, "$1 $2")
    .replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, "$1 $2")
    .split(/[\s_.$-]+/)
    .filter((part) => part !== "")
    .map((part) => part.toLowerCase());
}

function isCompound(word: string): boolean {
  return (
    /^[@$]?\p{L}[\p{L}\p{N}]*(?:_[\p{L}\p{N}_]|\.\p{L}[\p{L}\p{N}_])/u.test(word) ||
    /[\p{Ll}\p{N}]\p{Lu}/u.test(word) ||
    /^[A-Z]{2,}[a-z]/.test(word) ||
    /^_[\p{L}\p{N}_]/u.test(word)
  );
}

function isName(text: string): boolean {
  return /^[\p{L}_$][\p{L}\p{M}\p{N}_$]*$/u.test(text);
}
