/** Splits HTML into tokens. Every character is read a bounded number of times, whatever the page contains. */
export type Token =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "open"; readonly name: string; readonly attributes: string }
  | { readonly kind: "close"; readonly name: string };

/** Elements whose content is not markup: only their own closing tag ends it. */
const OPAQUE = new Set(["script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"]);
const MAX_TAG_CHARACTERS = 64 * 1024;

/** Yields `undefined` regularly, so that a reader can yield to the event loop. */
export function* htmlTokens(html: string): Generator<Token | undefined> {
  let position = 0;
  let breathAt = BREATH_CHARACTERS;
  let searchFrom = 0;
  /** Closing tags that are known to be absent; searching for them again would take quadratic time. */
  const absent = new Set<string>();
  while (position < html.length) {
    if (searchFrom >= breathAt) {
      breathAt = searchFrom + BREATH_CHARACTERS;
      yield undefined;
    }
    const next = html.indexOf("<", searchFrom);
    const tag: Tag | "text" = next === -1 ? { end: html.length } : readTag(html, next, absent);
    if (tag === "text") {
      searchFrom = next + 1;
      continue;
    }
    const textEnd = next === -1 ? html.length : next;
    if (textEnd > position) yield { kind: "text", text: html.slice(position, textEnd) };
    if (tag.token) yield tag.token;
    position = tag.end;
    if (tag.token?.kind === "open" && OPAQUE.has(tag.token.name)) {
      const close = findClose(html, position, tag.token.name, absent);
      if (close > position) yield { kind: "text", text: html.slice(position, close) };
      position = close;
    }
    searchFrom = position;
  }
}

const BREATH_CHARACTERS = 128 * 1024;

interface Tag {
  readonly token?: Token;
  readonly end: number;
}

/** Returns "text" when it only looks like a tag. */
function readTag(html: string, start: number, absent: Set<string>): Tag | "text" {
  const following = html.charCodeAt(start + 1);
  if (following === 0x21 || following === 0x3f) return { end: endOfDeclaration(html, start, absent) };
  const isClose = following === 0x2f;
  const nameStart = start + (isClose ? 2 : 1);
  if (!isLetter(html.charCodeAt(nameStart))) {
    return isClose ? { end: after(html, ">", start, absent) } : "text";
  }
  const end = endOfTag(html, nameStart);
  if (end === "text") return end;
  if (html.charCodeAt(end - 1) !== 0x3e) return { end };
  const inner = html.slice(nameStart, end - 1);
  const [name = ""] = /^[^\s/>]{1,64}/.exec(inner) ?? [];
  const lower = name.toLowerCase();
  const token: Token = isClose
    ? { kind: "close", name: lower }
    : { kind: "open", name: lower, attributes: inner.slice(name.length) };
  return { token, end };
}

/**
 * Returns the index after the `>` that ends the tag, ignoring `>` inside quotes. Returns "text" when it is not a tag.
 * Text longer than any tag is skipped, so that nothing is scanned twice.
 */
function endOfTag(html: string, start: number): number | "text" {
  let quote = 0;
  const limit = Math.min(html.length, start + MAX_TAG_CHARACTERS);
  for (let index = start; index < limit; index++) {
    const code = html.charCodeAt(index);
    if (quote !== 0) {
      if (code === quote) quote = 0;
    } else if (code === 0x3e) return index + 1;
    else if ((code === 0x22 || code === 0x27) && html.charCodeAt(index - 1) === 0x3d) quote = code;
    else if (code === 0x3c) return "text";
  }
  return limit;
}

function endOfDeclaration(html: string, start: number, absent: Set<string>): number {
  if (html.startsWith("<!--", start)) return after(html, "-->", start + 2, absent);
  if (html.startsWith("<![CDATA[", start)) return after(html, "]]>", start + 9, absent);
  return after(html, ">", start, absent);
}

/** Returns the index after the mark, or the end of the page when there is none. */
function after(html: string, mark: string, start: number, absent: Set<string>): number {
  const found = absent.has(mark) ? -1 : html.indexOf(mark, start);
  if (found !== -1) return found + mark.length;
  absent.add(mark);
  return html.length;
}

function findClose(html: string, start: number, name: string, absent: Set<string>): number {
  const mark = `</${name}`;
  if (absent.has(mark)) return html.length;
  const pattern = new RegExp(`</${name}(?=[\\s/>])`, "gi");
  pattern.lastIndex = start;
  const found = pattern.exec(html);
  if (found) return found.index;
  absent.add(mark);
  return html.length;
}

function isLetter(code: number): boolean {
  return (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a);
}
