/** The text of a request as lines of a terminal, without the fences of its Markdown. Callers put a bar before each. */

/** A label with one line below it becomes one line. The heads of a diff, which repeat the name of the file, are left out. */
export function requestLines(text: string): string[] {
  const shown: string[] = [];
  for (const part of partsOf(text)) {
    const [first = "", second] = part.lines;
    const label = part.isQuote ? shown.at(-1) : undefined;
    if (label?.match(/^[A-Z][^:]*:$/) && second === undefined) shown.splice(-1, 1, `${label} ${first}`);
    else shown.push(...(isDiff(part.lines) ? part.lines.slice(2) : part.lines));
  }
  return shown;
}

/** The address of a sign-in or a form that the user opens, if the request has one. */
export const addressLines = (url: string | undefined): string[] =>
  url === undefined ? [] : [`Open it yourself: ${url}`];

/** Every line of the request, for a reader that has room: what was quoted is indented, and keeps its empty lines. */
export function wholeRequest(text: string): string[] {
  return partsOf(text).flatMap(({ isQuote, lines, whole }) =>
    isQuote ? whole.map((line) => (line === "" ? "" : `  ${line}`)) : lines,
  );
}

interface Part {
  readonly isQuote: boolean;
  readonly lines: string[];
  /** With empty lines. */
  readonly whole: string[];
}

/** Runs of lines inside and outside of fences. Only a fence as long as the one that opened a run ends it. */
function partsOf(text: string): Part[] {
  let part: Part = { isQuote: false, lines: [], whole: [] };
  const parts = [part];
  let fence: string | undefined;
  for (const line of text.split("\n")) {
    const marker = /^\s*(`{3,}|~{3,})\w*\s*$/.exec(line)?.[1];
    const isFence = fence === undefined ? marker !== undefined : line.trim() === fence;
    if (isFence) {
      fence = fence === undefined ? marker : undefined;
      part = { isQuote: fence !== undefined, lines: [], whole: [] };
      parts.push(part);
      continue;
    }
    part.whole.push(line);
    if (line !== "") part.lines.push(line);
  }
  return parts;
}

const isDiff = ([old = "", changed = "", hunk = ""]: readonly string[]): boolean =>
  old.startsWith("--- ") && changed.startsWith("+++ ") && hunk.startsWith("@@");
