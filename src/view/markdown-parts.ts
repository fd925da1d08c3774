/**
 * Cuts Markdown into parts that can be drawn one after the other. The cuts depend on the text alone, not on the pieces in
 * which it arrives: a reply that was streamed has the same parts as the stored message.
 */
import { firstCharacters } from "../lib/text.ts";
import type { MarkdownPart } from "./blocks.ts";
import { ownCopy } from "./own-text.ts";

/** State between two pieces of text. Plain data, so that a view can be copied. */
export interface Splitter {
  /** The line that is not finished. */
  line: string;
  /** The part under way: its finished lines. */
  lines: string[];
  characters: number;
  kind: MarkdownPart["kind"];
  gap: boolean;
  /** Set inside fenced code. */
  fence: { readonly mark: string; readonly language: string; isFirst: boolean } | undefined;
}

/** A part is cut after the line in which it reaches this size, and a line without an end at it. */
const MAX_PART_CHARACTERS = 8_000;
const MAX_CODE_LINES = 40;

export function newSplitter(): Splitter {
  return { line: "", lines: [], characters: 0, kind: "text", gap: false, fence: undefined };
}

/** Returns the parts that `text` finishes. */
export function feed(splitter: Splitter, text: string): MarkdownPart[] {
  const parts: MarkdownPart[] = [];
  let from = 0;
  for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
    addToLine(splitter, text.slice(from, end), parts);
    const line = splitter.line.endsWith("\r") ? splitter.line.slice(0, -1) : splitter.line;
    splitter.line = "";
    endLine(splitter, line, parts);
    from = end + 1;
  }
  addToLine(splitter, text.slice(from), parts);
  return parts;
}

/** Returns the rest. The splitter must not be used afterwards. */
export function flush(splitter: Splitter): MarkdownPart[] {
  const parts: MarkdownPart[] = [];
  if (splitter.line !== "") endLine(splitter, splitter.line, parts);
  finish(splitter, parts, true);
  return parts;
}

export function partsOf(text: string): MarkdownPart[] {
  const splitter = newSplitter();
  const parts = feed(splitter, text);
  parts.push(...flush(splitter));
  return parts;
}

/** The part under way, with its unfinished line; undefined when there is none. */
export function tailOf(splitter: Splitter): MarkdownPart | undefined {
  const { lines, line, kind, gap, fence } = splitter;
  if (lines.length === 0 && line === "") return undefined;
  const text = [...lines, ...(line === "" ? [] : [line])].join("\n");
  return { kind, text, gap, language: fence?.language ?? "", isFirst: fence?.isFirst ?? true, isLast: false };
}

/** A line that is longer than a part is cut at fixed places, so that its size stays bounded. */
function addToLine(splitter: Splitter, text: string, parts: MarkdownPart[]) {
  splitter.line += text;
  while (splitter.line.length > MAX_PART_CHARACTERS) {
    const piece = firstCharacters(splitter.line, MAX_PART_CHARACTERS);
    splitter.line = splitter.line.slice(piece.length);
    splitter.lines.push(piece);
    finish(splitter, parts, false);
  }
}

const FENCE = /^ {0,12}(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*$/;
const HEADING = /^ {0,3}#{1,6}(?:\s|$)/;
const ITEM = /^ {0,3}(?:[-*+]|\d{1,9}[.)])\s/;
const TABLE = /^ {0,3}\|/;

function endLine(splitter: Splitter, line: string, parts: MarkdownPart[]) {
  if (splitter.fence) return endCodeLine(splitter, splitter.fence, line, parts);
  if (line.trim() === "") {
    finish(splitter, parts, true);
    splitter.gap = true;
    return;
  }
  const [, mark, language = ""] = FENCE.exec(line) ?? [];
  if (mark !== undefined) {
    finish(splitter, parts, true);
    splitter.kind = "code";
    splitter.fence = { mark, language, isFirst: true };
    return;
  }
  const kind = kindOf(line);
  const { lines } = splitter;
  if (lines.length > 0 && startsPart(kind, splitter.kind)) finish(splitter, parts, true);
  if (splitter.lines.length === 0) splitter.kind = kind;
  add(splitter, line, parts);
  if (kind === "heading") finish(splitter, parts, true);
}

function kindOf(line: string): MarkdownPart["kind"] {
  if (HEADING.test(line)) return "heading";
  if (ITEM.test(line)) return "item";
  return TABLE.test(line) ? "table" : "text";
}

/** Other lines go on with the part before them, as a wrapped paragraph does. */
function startsPart(kind: MarkdownPart["kind"], current: MarkdownPart["kind"]): boolean {
  return kind === "heading" || kind === "item" || (kind === "table") !== (current === "table");
}

function endCodeLine(splitter: Splitter, fence: NonNullable<Splitter["fence"]>, line: string, parts: MarkdownPart[]) {
  const trimmed = line.trim();
  const closes = trimmed.length >= fence.mark.length && trimmed === fence.mark.charAt(0).repeat(trimmed.length);
  if (closes) return finish(splitter, parts, true);
  add(splitter, line, parts);
  if (splitter.lines.length >= MAX_CODE_LINES) finish(splitter, parts, false);
}

function add(splitter: Splitter, line: string, parts: MarkdownPart[]) {
  splitter.lines.push(line);
  splitter.characters += line.length + 1;
  if (splitter.characters >= MAX_PART_CHARACTERS) finish(splitter, parts, false);
}

/** Ends the part under way. With `isEnd` false, the next part is of the same kind. */
function finish(splitter: Splitter, parts: MarkdownPart[], isEnd: boolean) {
  const { lines, kind, gap, fence } = splitter;
  if (lines.length > 0 || (fence && isEnd)) {
    const code = { language: fence?.language ?? "", isFirst: fence?.isFirst ?? true, isLast: fence ? isEnd : true };
    parts.push(Object.freeze({ kind, text: ownCopy(lines.join("\n")), gap, ...code }));
    splitter.gap = false;
    if (fence) fence.isFirst = false;
  }
  splitter.lines = [];
  splitter.characters = 0;
  if (!isEnd) return;
  splitter.fence = undefined;
  splitter.kind = "text";
}
