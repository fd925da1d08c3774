/** Files that a prompt names with `@`, in the terminal and in prompt mode: they go along with it as attachments, with their range of lines. */
import { stat } from "node:fs/promises";
import { resolve } from "node:path";

/** Describes the file to the model; the model reads the content with its tools, under the rules of the session. */
export type Mentioned =
  | {
      readonly type: "file";
      readonly path: string;
      readonly displayName: string;
      readonly lineRange?: { readonly start: number; readonly end: number };
    }
  | { readonly type: "directory"; readonly path: string; readonly displayName: string };

const MENTION = /(?<=^|\s)@([^\s@]\S*)/g;
const MAX_MENTIONS = 32;
/** A prompt that goes on after this was pasted. */
const MAX_SCANNED = 100_000;

/** Words that name no file stay text. */
export async function mentionedIn(text: string, cwd: string): Promise<readonly Mentioned[]> {
  const words = [...text.slice(0, MAX_SCANNED).matchAll(MENTION)].map(([, word = ""]) => word);
  const found = await Promise.all([...new Set(words)].slice(0, MAX_MENTIONS).map((word) => readMention(word, cwd)));
  return found.filter((one) => one !== undefined);
}

/** A word as it stands, without punctuation at its end, and without a range: the first that names a file. */
async function readMention(word: string, cwd: string): Promise<Mentioned | undefined> {
  const bare = word.replace(/[.,;:!?)\]}'"]+$/, "");
  const [, ranged, first, last = first] = /^(.+?):(\d{1,7})(?:-(\d{1,7}))?$/.exec(bare) ?? [];
  for (const name of new Set([word, bare])) {
    const found = await fileAt(name, cwd);
    if (found) return found;
  }
  const file = ranged === undefined ? undefined : await fileAt(ranged, cwd);
  if (file?.type !== "file") return file;
  const start = Math.max(1, Number(first));
  const end = Math.max(start, Number(last));
  return { ...file, displayName: `${file.displayName}:${start}-${end}`, lineRange: { start, end } };
}

async function fileAt(name: string, cwd: string): Promise<Mentioned | undefined> {
  const path = resolve(cwd, name);
  const found = await stat(path).catch(() => undefined);
  if (!found || name === "") return undefined;
  if (found.isDirectory()) return { type: "directory", path, displayName: name };
  return found.isFile() ? { type: "file", path, displayName: name } : undefined;
}
