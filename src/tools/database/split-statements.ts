const TOKEN = /--[^\n]*|\/\*(?:[^*]|\*(?!\/))*(?:\*\/)?|'(?:[^']|'')*'?|"(?:[^"]|"")*"?|`[^`]*`?|\[[^\]]*\]?|\w+|;/g;

/** Splits SQL at the semicolons that end statements, not at those in strings, comments, names or trigger bodies. */
export function splitStatements(sql: string): string[] {
  const statements: string[] = [];
  let start = 0;
  let words: string[] = [];
  for (const { index, text } of tokensOf(sql)) {
    if (text !== ";") {
      if (/^\w/.test(text)) words.push(text.toUpperCase());
      continue;
    }
    if (isTrigger(words) && !(words.at(-1) === "END" && words.at(-2) === ";")) {
      words.push(";");
      continue;
    }
    if (words.length > 0) statements.push(sql.slice(start, index).trim());
    start = index + 1;
    words = [];
  }
  if (words.length > 0) statements.push(sql.slice(start).trim());
  return statements;
}

/** Returns the first word of a statement, in upper case. */
export function verbOf(statement: string): string {
  for (const { text } of tokensOf(statement)) if (/^\w/.test(text)) return text.toUpperCase();
  return "";
}

/** Returns all words of a statement outside quotes and comments, in upper case. */
export function wordsOf(statement: string): string[] {
  return [...tokensOf(statement)].filter(({ text }) => text !== ";").map(({ text }) => text.toUpperCase());
}

/**
 * Returns the SQL with `change` applied to quoted text (strings and names) and comments. The result of `change` cannot
 * end its quotes.
 */
export function withQuoted(sql: string, change: (text: string) => string): string {
  return sql.replace(TOKEN, (token) => {
    const [open = ""] = token;
    if (/[\w;]/.test(open)) return token;
    if (open === "-" || open === "/") {
      const end = open === "/" && token.length > 3 && token.endsWith("*/") ? "*/" : "";
      return `${token.slice(0, 2)}${change(token.slice(2, token.length - end.length))}${end}`;
    }
    const close = open === "[" ? "]" : open;
    const isClosed = token.length > 1 && token.endsWith(close);
    const inner = token.slice(1, isClosed ? -1 : undefined);
    const isDoubled = open === "'" || open === '"';
    const changed = change(isDoubled ? inner.replaceAll(open + open, open) : inner);
    const safe = isDoubled ? changed.replaceAll(open, open + open) : changed.replaceAll(close, "");
    return `${open}${safe}${isClosed ? close : ""}`;
  });
}

/** Yields words and semicolons; skips everything else, including comments and quoted text. */
function* tokensOf(sql: string): Generator<{ index: number; text: string }> {
  for (const match of sql.matchAll(TOKEN)) {
    if (/^[\w;]/.test(match[0])) yield { index: match.index, text: match[0] };
  }
}

function isTrigger([first, ...rest]: readonly string[]): boolean {
  return first === "CREATE" && /^(TEMP |TEMPORARY )?TRIGGER\b/.test(rest.slice(0, 2).join(" "));
}
