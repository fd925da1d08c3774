/**
 * Converts a web page to Markdown-like text for the model: headings, lists, links with full targets, code and tables.
 * Omits invisible parts (scripts, styles, hidden elements). Runs in linear time, whatever the page contains, and yields
 * to the event loop.
 */
import { setImmediate } from "node:timers/promises";
import { decodeEntities } from "./entities.ts";
import { htmlTokens, type Token } from "./html-tokens.ts";
import { type TextWriter, textWriter } from "./text-writer.ts";

export interface Readable {
  readonly title: string;
  readonly text: string;
  /** True when the text was too long and was cut. */
  readonly isCut: boolean;
}

const MAX_TEXT_CHARACTERS = 4_000_000;
const MAX_LINK_CHARACTERS = 1000;
const MAX_CELL_CHARACTERS = 300;
const MAX_DEPTH = 8;

const DROPPED = new Set([
  "script",
  "style",
  "template",
  "svg",
  "canvas",
  "iframe",
  "object",
  "noembed",
  "noframes",
  "math",
]);
const VOID = new Set(names("area base br col embed hr img input link meta param source track wbr"));
/** Elements that are closed by a sibling of the same name. */
const SELF_ENDING = new Set(["p", "li", "dt", "dd", "tr", "td", "th", "option"]);
const ENDS_LINK = new Set(names("a ul ol li dl dt dd table tr td th pre blockquote"));
const APART = new Map<string, 1 | 2>([
  ...names("p h1 h2 h3 h4 h5 h6 ul ol dl table pre blockquote hr figure").map((name) => [name, 2] as const),
  ...names(
    "div section article main header footer aside nav form fieldset figcaption address details summary dt dd li tr br option title caption body",
  ).map((name) => [name, 1] as const),
]);

export async function readable(html: string, base: URL, signal?: AbortSignal): Promise<Readable> {
  const page = newPage(base);
  for (const token of htmlTokens(html)) {
    if (token === undefined) {
      await setImmediate();
      signal?.throwIfAborted();
    } else take(token, page);
    if (page.writer.length > MAX_TEXT_CHARACTERS)
      return { title: page.title, text: page.writer.toString(), isCut: true };
  }
  if (page.verbatim !== undefined) closeVerbatim(page);
  return { title: page.title, text: page.writer.toString(), isCut: false };
}

interface Page {
  readonly base: URL;
  readonly writer: TextWriter;
  title: string;
  isInTitle: boolean;
  /** Set inside an element that is not shown; ends with the closing tag that brings the depth to 0. */
  skipping: { readonly name: string; depth: number } | undefined;
  /** Text of a `pre`, which preserves white space. */
  verbatim: string[] | undefined;
  link: { readonly target: string; readonly from: number } | undefined;
  readonly lists: { readonly isOrdered: boolean; count: number }[];
  quotes: number;
  row: { cells: number; isHead: boolean; isFirst: boolean; from: number };
}

function newPage(base: URL): Page {
  return {
    base,
    writer: textWriter(),
    title: "",
    isInTitle: false,
    skipping: undefined,
    verbatim: undefined,
    link: undefined,
    lists: [],
    quotes: 0,
    row: { cells: 0, isHead: false, isFirst: true, from: 0 },
  };
}

function take(token: Token, page: Page): void {
  if (page.skipping && !endsSkipping(token, page.skipping)) return;
  const wasSkipping = page.skipping !== undefined;
  page.skipping = undefined;
  if (token.kind === "text") takeText(token.text, page);
  else if (token.kind === "open") open(token, page);
  else if (!wasSkipping) close(token.name, page);
}

function endsSkipping(token: Token, skipping: NonNullable<Page["skipping"]>): boolean {
  if (token.kind === "text" || token.name !== skipping.name) return false;
  if (token.kind === "open" && SELF_ENDING.has(token.name)) return true;
  skipping.depth += token.kind === "open" ? 1 : -1;
  return skipping.depth === 0;
}

function takeText(raw: string, page: Page): void {
  const text = decodeEntities(raw);
  if (page.isInTitle) page.title ||= text.replace(/\s+/g, " ").trim().slice(0, 300);
  else if (page.verbatim) page.verbatim.push(text);
  else page.writer.text(text);
}

function open({ name, attributes }: Extract<Token, { kind: "open" }>, page: Page): void {
  const { writer } = page;
  if (DROPPED.has(name) || (!VOID.has(name) && isHidden(attributes))) {
    page.skipping = { name, depth: 1 };
    return;
  }
  if (page.verbatim) {
    if (name === "br") page.verbatim.push("\n");
    return;
  }
  if (ENDS_LINK.has(name)) closeLink(page);
  if (name === "tr" || name === "table") endHeadRow(page);
  const distance = APART.get(name);
  if (distance !== undefined && !(name === "p" && page.lists.length > 0)) apart(distance, page);
  const heading = /^h([1-6])$/.exec(name)?.[1];
  if (heading === undefined) openers.get(name)?.(page, attributes);
  else if (page.link === undefined) writer.mark(`${"#".repeat(Number(heading))} `, "before");
}

type Opener = (page: Page, attributes: string) => void;

const openers = new Map<string, Opener>(
  Object.entries({
    title: (page) => {
      page.isInTitle = true;
    },
    pre: (page) => {
      page.verbatim = [];
    },
    code: ({ writer }) => writer.mark("`", "before"),
    hr: ({ writer }) => writer.block(["---"]),
    img: ({ writer }, attributes) => {
      const alt = attributeOf(attributes, "alt")?.trim();
      if (alt) writer.text(` [image: ${alt.slice(0, 300)}] `);
    },
    a: (page, attributes) => {
      const target = linkTarget(attributeOf(attributes, "href"), page.base);
      if (target === undefined) return;
      page.writer.mark("[", "before");
      page.link = { target, from: page.writer.length };
    },
    ul: (page) => openList(page, false),
    ol: (page) => openList(page, true),
    li: (page) => {
      const list = page.lists.at(-1);
      const indent = "  ".repeat(Math.max(0, Math.min(page.lists.length, MAX_DEPTH) - 1));
      page.writer.mark(`${indent}${list?.isOrdered ? `${++list.count}.` : "-"} `, "before");
    },
    blockquote: (page) => quote(page, 1),
    table: (page) => {
      page.row = { cells: 0, isHead: false, isFirst: true, from: 0 };
    },
    tr: (page) => {
      endHeadRow(page);
      page.row = { cells: 0, isHead: false, isFirst: page.row.isFirst, from: 0 };
    },
    td: (page) => openCell(page),
    th: (page) => {
      page.row.isHead = true;
      openCell(page);
    },
  } satisfies Record<string, Opener>),
);

function close(name: string, page: Page): void {
  if (page.verbatim) {
    if (name === "pre") closeVerbatim(page);
    return;
  }
  if (ENDS_LINK.has(name)) closeLink(page);
  if (name === "title") page.isInTitle = false;
  if (name === "code") page.writer.mark("`", "after");
  if (name === "ul" || name === "ol") page.lists.pop();
  if (name === "blockquote") quote(page, -1);
  if (name === "tr" || name === "table") endHeadRow(page);
  const distance = APART.get(name);
  if (distance !== undefined && name !== "br") apart(distance, page);
}

/** Keeps the text of links and cells on one line even if they contain blocks, up to a limit. */
function apart(distance: 1 | 2, page: Page): void {
  const { writer, link, row } = page;
  const isInLink = link !== undefined && writer.length - link.from <= MAX_LINK_CHARACTERS;
  const isInCell = row.cells > 0 && writer.length - row.from <= MAX_CELL_CHARACTERS;
  if (isInLink || isInCell) {
    writer.text(" ");
    return;
  }
  closeLink(page);
  writer.apart(page.lists.length > 0 ? 1 : distance);
}

function closeLink(page: Page): void {
  if (page.link === undefined) return;
  const { target, from } = page.link;
  page.link = undefined;
  page.writer.mark(page.writer.length === from ? `link](${target})` : `](${target})`, "after");
}

function closeVerbatim(page: Page): void {
  const text = (page.verbatim ?? [])
    .join("")
    .replace(/^\r?\n/, "")
    .trimEnd();
  page.verbatim = undefined;
  if (text.trim() === "") return;
  const longest = (text.match(/`{3,}/g) ?? []).reduce((most, run) => Math.max(most, run.length), 2);
  const fence = "`".repeat(Math.min(longest + 1, 100));
  page.writer.block([fence, ...text.split(/\r?\n/), fence]);
  page.writer.apart(2);
}

function openList(page: Page, isOrdered: boolean): void {
  page.lists.push({ isOrdered, count: 0 });
}

function quote(page: Page, by: 1 | -1): void {
  page.quotes = Math.max(0, page.quotes + by);
  page.writer.prefix = "> ".repeat(Math.min(page.quotes, MAX_DEPTH));
}

function openCell(page: Page): void {
  if (page.row.cells++ > 0) page.writer.mark(" | ", "between");
  page.row.from = page.writer.length;
}

function endHeadRow(page: Page): void {
  const { cells, isHead, isFirst } = page.row;
  if (cells === 0) return;
  if (isHead && isFirst) page.writer.block([Array(Math.min(cells, 100)).fill("---").join(" | ")]);
  page.row = { cells: 0, isHead: false, isFirst: false, from: 0 };
}

function linkTarget(href: string | undefined, base: URL): string | undefined {
  if (href === undefined || href.length > MAX_LINK_CHARACTERS || href.trimStart().startsWith("#")) return undefined;
  try {
    const url = new URL(href, base);
    const isShown = ["http:", "https:", "mailto:"].includes(url.protocol) && url.href.length <= MAX_LINK_CHARACTERS;
    return isShown ? url.href.replaceAll("(", "%28").replaceAll(")", "%29") : undefined;
  } catch {
    return undefined;
  }
}

function isHidden(attributes: string): boolean {
  if (attributes === "") return false;
  if (attributeOf(attributes, "hidden") !== undefined) return true;
  if (attributeOf(attributes, "aria-hidden")?.toLowerCase() === "true") return true;
  const style = attributeOf(attributes, "style");
  return (
    style !== undefined &&
    /(display\s*:\s*none|visibility\s*:\s*(hidden|collapse)|opacity\s*:\s*0(?![.\d])|font-size\s*:\s*0(?![.\d]))/i.test(
      style,
    )
  );
}

/** Returns the value of an attribute, "" when it has none, undefined when it is absent. */
function attributeOf(attributes: string, wanted: string): string | undefined {
  if (!attributes.toLowerCase().includes(wanted)) return undefined;
  for (const [, name = "", double, single, bare] of attributes.matchAll(ATTRIBUTE)) {
    if (name.toLowerCase() === wanted) return decodeEntities(double ?? single ?? bare ?? "");
  }
  return undefined;
}

const ATTRIBUTE = /([^\s"'<>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?/g;

function names(list: string): string[] {
  return list.split(" ");
}
