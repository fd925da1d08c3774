/** SQL text cut at the semicolons that end statements: not those in strings, comments, names or bodies of triggers. */
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

/** The word that says what a statement does. */
export function verbOf(statement: string): string {
  for (const { text } of tokensOf(statement)) if (/^\w/.test(text)) return text.toUpperCase();
  return "";
}

/** Words and semicolons; everything else, comments and quoted text included, is passed over. */
function* tokensOf(sql: string): Generator<{ index: number; text: string }> {
  const token = /--[^\n]*|\/\*(?:[^*]|\*(?!\/))*(?:\*\/)?|'(?:[^']|'')*'?|"(?:[^"]|"")*"?|`[^`]*`?|\[[^\]]*\]?|\w+|;/g;
  for (const match of sql.matchAll(token)) {
    if (/^[\w;]/.test(match[0])) yield { index: match.index, text: match[0] };
  }
}

function isTrigger([first, ...rest]: readonly string[]): boolean {
  return first === "CREATE" && /^(TEMP |TEMPORARY )?TRIGGER\b/.test(rest.slice(0, 2).join(" "));
}
