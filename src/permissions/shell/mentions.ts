/** Finds paths and addresses in the words of a command. */
const MAX_PATH_LENGTH = 4096;
/** Further texts are ignored: no program takes this many paths in one word. */
const MAX_TEXTS = 32;
const PLAIN_WORD = /^[\w./][\w./-]*$/;
const FETCHERS = new Set(["curl", "wget", "http", "https", "fetch", "aria2c"]);
const BARE_HOST = /^[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::\d+)?(?:\/.*)?$/i;

/** Options that set the folder in which a program works: `-C folder`, `--prefix=folder`. Captures an attached value. */
export const FOLDER_OPTION =
  /^(?:-C=?|--(?:directory|chdir|cwd|prefix|work-tree|git-dir|root|target-directory)(?:=|$)|-t(?=[./~]|$))(.*)$/s;

/** Returns the path in a word, if it looks like one, including the value of `--option=path`. */
export function pathIn(word: string): string | undefined {
  const value = /^--?[\w-]+=(.*)$/s.exec(word)?.[1] ?? word;
  return looksLikePath(value) && !value.startsWith("-") ? value : undefined;
}

export function looksLikePath(value: string): boolean {
  if (value !== "." && value !== ".." && !value.startsWith("~") && !value.includes("/")) return false;
  return value.length <= MAX_PATH_LENGTH && !/[\n\0]/.test(value) && !/^[a-z][a-z0-9+.-]*:\/\//i.test(value);
}

/**
 * Returns every text in a word that a program may take for a path: the word, and values attached to options and names.
 */
export function pathTexts(word: string): string[] {
  if (word.length > MAX_PATH_LENGTH || /[\n\0]/.test(word)) return [];
  if (PLAIN_WORD.test(word)) return [word];
  if (/^(?!file:)[a-z][a-z0-9+.-]*:\/\//i.test(word)) return [];
  const texts = new Set<string>();
  const add = (text: string): void => {
    if (text !== "" && !/^-/.test(text)) texts.add(text.replace(/^file:(?:\/\/[^/]*)?/i, ""));
  };
  add(word);
  // `--output=x`, `of=x`, `-o=x`.
  const value = /^-{0,2}[\w.-]+=(.*)$/s.exec(word)?.[1];
  if (value !== undefined) add(value);
  if (/^-[A-Za-z]./.test(word)) {
    add(word.slice(2));
    // A bundle such as `-xf../a`: the value starts somewhere before its first slash.
    const slash = word.indexOf("/");
    for (let at = 3; at <= slash; at++) add(word.slice(at));
  }
  // `HEAD:file`, `host:file`, `/a:/b`; `@file` as in curl.
  if (!word.includes("://")) for (const part of (value ?? word).split(/[:,]/)) add(part.replace(/^[@<]/, ""));
  return [...texts].slice(0, MAX_TEXTS);
}

/** Returns the addresses in a word. Programs that fetch also take a host without a protocol. */
export function urlsIn(word: string, program: string): string[] {
  const found = word.includes("://") ? (word.match(/https?:\/\/[^\s'"<>]+/gi) ?? []) : [];
  return found.length === 0 && FETCHERS.has(program) && BARE_HOST.test(word) ? [`http://${word}`] : found;
}
