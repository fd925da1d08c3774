/** Finds the files that an instruction file imports. */

import { homedir } from "node:os";
import { resolve } from "node:path";

/** Hidden folders that hold instructions. All other hidden names may hold keys, settings or git data. */
const OPEN_HIDDEN_NAMES = new Set([".github", ".claude", ".troupe", ".agents"]);
const MAX_PATH_CHARACTERS = 500;

/**
 * Returns the paths that a Markdown text imports by `@path`, in order, without duplicates. Ignores code. The files may
 * not exist: `@someone` looks the same.
 */
export function importedPaths(markdown: string, folder: string): string[] {
  const mentions = withoutCode(markdown).matchAll(/(?<![^\s([{,;])@([^\s`"'<>|*\\]+)/g);
  const paths = [...mentions].flatMap(([, mention = ""]) => {
    const path = mention.replace(/[).,;:!?\]}]+$/, "");
    if (path === "" || path.length > MAX_PATH_CHARACTERS) return [];
    return [path.startsWith("~/") ? resolve(homedir(), path.slice(2)) : resolve(folder, path)];
  });
  return [...new Set(paths)];
}

/** `path` is relative to its root. */
export function isHidden(path: string): boolean {
  return path.split(/[\\/]/).some((name) => name.startsWith(".") && !OPEN_HIDDEN_NAMES.has(name));
}

function withoutCode(markdown: string): string {
  const lines: string[] = [];
  let fence: string | undefined;
  for (const line of markdown.split("\n")) {
    const mark = /^\s{0,3}(?:>\s?)*\s*(`{3,}|~{3,})/.exec(line)?.[1];
    if (fence === undefined && mark === undefined) lines.push(line);
    else if (fence === undefined) fence = mark;
    else if (mark?.startsWith(fence) && line.trim() === mark) fence = undefined;
  }
  return withoutSpans(lines.join("\n"));
}

/** Removes code spans. A span ends at a run of as many backticks as started it. An unmatched run stays. */
function withoutSpans(text: string): string {
  const runs = [...text.matchAll(/`+/g)];
  let result = "";
  let at = 0;
  for (let index = 0; index < runs.length; index++) {
    const open = runs[index];
    if (open === undefined || open.index < at) continue;
    const close = runs.slice(index + 1, index + 200).find(([marks]) => marks.length === open[0].length);
    if (close === undefined) continue;
    result += `${text.slice(at, open.index)} `;
    at = close.index + close[0].length;
  }
  return result + text.slice(at);
}
