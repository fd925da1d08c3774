/** Reads facts from the lines of one file without running anything. */
import { cutLine } from "../bounds.ts";
import type { SourceLine } from "./evidence.ts";
import { declarationPatterns, importPatterns, languageOf, type SyntaxFamily } from "./languages.ts";

export interface Declaration {
  readonly kind: string;
  readonly name: string;
  readonly line: number;
  readonly text: string;
  readonly visible: boolean;
}

export interface Remark {
  readonly text: string;
  readonly line: number;
}

export function declarationsIn(path: string, lines: readonly SourceLine[]): Declaration[] {
  const family = languageOf(path)?.family;
  return family === undefined ? [] : declarationsOf(family, lines);
}

export function declarationsOf(family: SyntaxFamily, lines: readonly SourceLine[]): Declaration[] {
  const patterns = declarationPatterns[family];
  let fenced = false;
  return lines.flatMap((line) => {
    if (family === "prose" && /^\s*(```|~~~)/.test(line.text)) fenced = !fenced;
    if (fenced) return [];
    for (const pattern of patterns) {
      const groups = pattern.exec(cutLine(line.text))?.groups;
      const name = groups?.name;
      if (name === undefined || /^(if|for|while|switch|catch|return|else|new|await)$/.test(name)) continue;
      return {
        kind: groups?.kind ?? "",
        name,
        line: line.number,
        text: line.text,
        visible: isVisible(family, line.text, name),
      };
    }
    return [];
  });
}

export function importsIn(path: string, lines: readonly SourceLine[]): { target: string; line: number }[] {
  const patterns = importPatterns[languageOf(path)?.family ?? "data"];
  return lines.flatMap((line) => {
    for (const pattern of patterns) {
      const target = pattern.exec(cutLine(line.text))?.[1];
      if (target !== undefined) return { target: target.replace(/::$/, ""), line: line.number };
    }
    return [];
  });
}

/** Returns the first informative comment, above the code or above its first declaration. */
export function leadingRemark(path: string, lines: readonly SourceLine[]): Remark | undefined {
  const family = languageOf(path)?.family;
  if (family === "prose") return firstParagraph(lines);
  if (family === "data" || family === undefined) return undefined;
  let block: SourceLine[] = [];
  let above = true;
  let hashed = false;
  for (const line of lines.slice(0, 60)) {
    const text = commentText(line.text, family, block.length > 0);
    if (text !== undefined && !(family === "python" && opensDocstring(line.text) && hashed)) {
      block.push({ number: line.number, text });
      hashed = line.text.startsWith("#");
      continue;
    }
    if (block.length > 0 && /^(#\[|@\w)/.test(line.text)) continue;
    // Below the first code, a comment describes the file only if it is on something the file exports.
    const remark = above || OFFERED.test(line.text) ? remarkFrom(block) : undefined;
    if (remark !== undefined) return remark;
    if (
      text === undefined &&
      line.text.trim() !== "" &&
      !/^(#!|package|namespace|<\?php|["']use \w+["'])/.test(line.text)
    )
      above = false;
    block = text === undefined ? [] : [{ number: line.number, text }];
    hashed = false;
  }
  return above ? remarkFrom(block) : undefined;
}

/** A docstring below `#` lines is a separate comment. */
function opensDocstring(text: string): boolean {
  return /^[rRuU]?("""|''')/.test(text);
}

const OFFERED = /^(export|pub|public|module\.exports|def|class|func|type|interface|@)\b/;

export function titleOf(lines: readonly SourceLine[]): Remark | undefined {
  for (const [index, line] of lines.entries()) {
    const title = /^#\s+(.+?)\s*#*$/.exec(line.text)?.[1] ?? /^<h1[^>]*>(.+?)<\/h1>/i.exec(line.text)?.[1];
    if (title !== undefined && plain(title) !== "") return { text: plain(title), line: line.number };
    if (/^={3,}\s*$/.test(lines[index + 1]?.text ?? "") && line.text.trim() !== "")
      return { text: plain(line.text), line: line.number };
  }
  return undefined;
}

/** Returns the first paragraph of prose: no headings, badges, markup, lists, code blocks. */
export function firstParagraph(lines: readonly SourceLine[]): Remark | undefined {
  let fenced = false;
  let matter = lines[0]?.number === 1 && lines[0].text.trim() === "---";
  const paragraph: SourceLine[] = [];
  for (const [index, line] of lines.entries()) {
    const text = line.text.trim();
    if (matter) {
      if (index > 0 && text === "---") matter = false;
      continue;
    }
    if (/^(```|~~~)/.test(text)) fenced = !fenced;
    const underlined = /^(={3,}|-{3,})$/.test(lines[index + 1]?.text.trim() ?? "");
    const prose =
      !fenced &&
      !underlined &&
      !/^([#<|=`~[!]|[-*+] |\d+\. |-{3,}|\.\. |:\w+:)/.test(text) &&
      /\p{L}{3}/u.test(plain(text));
    if (prose) paragraph.push({ number: line.number, text: plain(text.replace(/^>\s*/, "")) });
    else if (paragraph.length > 0) break;
  }
  const first = paragraph[0];
  return first === undefined ? undefined : { text: sentence(joinLines(paragraph)), line: first.number };
}

const SHORT_SENTENCE = 40;
const MAX_REMARK_CHARACTERS = 1000;

function joinLines(paragraph: readonly SourceLine[]): string {
  const text = paragraph
    .slice(0, 30)
    .map((line) => line.text)
    .join(" ");
  return text.slice(0, MAX_REMARK_CHARACTERS);
}

/** Returns the first sentence. A short one includes the next. */
function sentence(text: string): string {
  const flat = text.replace(/\s+/g, " ").trim();
  const first = firstSentence(flat);
  return first.length >= SHORT_SENTENCE ? first : `${first} ${firstSentence(flat.slice(first.length).trim())}`.trim();
}

function firstSentence(flat: string): string {
  const end = /(?<!\b(?:e\.g|i\.e|etc|vs|cf|Mr|Dr|\.))[.!?。](?=\s+["'(`*_]?\p{Lu}|\s*$)/u.exec(flat);
  return end === null ? flat : flat.slice(0, end.index + 1);
}

function remarkFrom(block: readonly SourceLine[]): Remark | undefined {
  const said = block.filter((line) => /\p{L}{2}/u.test(line.text));
  const first = said[0];
  if (first === undefined) return undefined;
  const whole = said.map((line) => line.text).join(" ");
  if (
    /copyright|licen[cs]ed? |SPDX|all rights reserved|eslint|prettier|biome-ignore|@ts-|coding[:=]|do not edit|<reference|go:build|^\+build|noqa|pylint|type: ignore|istanbul/i.test(
      whole,
    )
  )
    return undefined;
  const from = block.indexOf(first);
  const stop = block.findIndex(
    (line, index) => index > from && (line.text === "" || /^(@\w+|-{3,}|={3,})/.test(line.text)),
  );
  const paragraph = block.slice(from, stop < 0 ? undefined : stop);
  const text = sentence(plain(joinLines(paragraph).replace(/[-=*#~]{3,}/g, " ")));
  return text.includes(" ") ? { text, line: first.number } : undefined;
}

/**
 * Returns the text of a comment line, or `undefined` if the line is not a comment. `inside`: the line before was one.
 */
function commentText(text: string, family: SyntaxFamily, inside: boolean): string | undefined {
  const trimmed = text.trim();
  if (trimmed.startsWith("#!") && family !== "rust") return undefined;
  if (family === "python") {
    const quoted = /^[rRuU]?("""|''')(.*?)(?:\1\s*)?$/.exec(trimmed);
    if (quoted !== null) return quoted[2]?.trim() ?? "";
    if (/^#/.test(trimmed)) return trimmed.replace(/^#+\s?/, "");
    // The body of a docstring has no marks. Code does not follow it without a closing quote.
    return inside && trimmed !== "" && !/^(import|from|def|class|@)\b|[=(]/.test(trimmed)
      ? trimmed.replace(/("""|''')$/, "")
      : undefined;
  }
  if (family === "elixir" || family === "ruby" || family === "shell" || family === "make")
    return /^#/.test(trimmed) ? trimmed.replace(/^#+\s?/, "") : undefined;
  if (family === "sql") return /^--/.test(trimmed) ? trimmed.replace(/^-+\s?/, "") : undefined;
  if (/^\/\//.test(trimmed)) return trimmed.replace(/^\/\/[/!]?\s?/, "");
  if (/^\/\*/.test(trimmed)) return trimmed.replace(/^\/\*+!?\s?/, "").replace(/\s*\*+\/$/, "");
  if (inside && /^\*/.test(trimmed)) return trimmed.replace(/^\*+\/?\s?/, "").replace(/\s*\*+\/$/, "");
  return undefined;
}

function isVisible(family: SyntaxFamily, text: string, name: string): boolean {
  if (family === "script") return /^(export\b|(module\.)?exports\.)/.test(text);
  if (family === "rust") return /^\s*pub\b/.test(text);
  if (family === "go") return /^\p{Lu}/u.test(name);
  if (family === "braces") return !/\b(private|internal)\b/.test(text);
  return !name.startsWith("_");
}

/** Removes Markdown and HTML marks. */
function plain(text: string): string {
  return text
    .replace(/!\[[^\]]*\]\([^)]*\)/g, "")
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/\[([^\]]+)\](?:\[[^\]]*\])?/g, "$1")
    .replace(/<\/?[a-z][^>]*>/gi, "")
    .replace(/(\*\*|__)(.+?)\1/g, "$2")
    .trim();
}
