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

interface Part {
  readonly isQuote: boolean;
  readonly lines: string[];
}

/** Runs of lines inside and outside of fences. Only a fence as long as the one that opened a run ends it. */
function partsOf(text: string): Part[] {
  let part: Part = { isQuote: false, lines: [] };
  const parts = [part];
  let fence: string | undefined;
  for (const line of text.split("\n")) {
    const marker = /^\s*(`{3,}|~{3,})\w*\s*$/.exec(line)?.[1];
    const isFence = fence === undefined ? marker !== undefined : line.trim() === fence;
    if (isFence) {
      fence = fence === undefined ? marker : undefined;
      part = { isQuote: fence !== undefined, lines: [] };
      parts.push(part);
    } else if (line !== "") part.lines.push(line);
  }
  return parts;
}

const isDiff = ([old = "", changed = "", hunk = ""]: readonly string[]): boolean =>
  old.startsWith("--- ") && changed.startsWith("+++ ") && hunk.startsWith("@@");
