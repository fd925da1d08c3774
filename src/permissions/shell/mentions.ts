/** Paths and addresses in the words of a command. */
const MAX_PATH_LENGTH = 4096;
const FETCHERS = new Set(["curl", "wget", "http", "https", "fetch", "aria2c"]);
const BARE_HOST = /^[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::\d+)?(?:\/.*)?$/i;

/** The path a word stands for, if it looks like one; the value of `--option=path` counts. */
export function pathIn(word: string): string | undefined {
  const value = /^--?[\w-]+=(.*)$/s.exec(word)?.[1] ?? word;
  const looksLikePath = value === "." || value === ".." || value.startsWith("~") || value.includes("/");
  if (!looksLikePath || value.startsWith("-") || value.length > MAX_PATH_LENGTH) return undefined;
  return /[\n\0]/.test(value) || /^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? undefined : value;
}

/** Addresses in a word; programs that fetch also take a host without a protocol. */
export function urlsIn(word: string, program: string): string[] {
  const found = word.includes("://") ? (word.match(/https?:\/\/[^\s'"<>]+/gi) ?? []) : [];
  return found.length === 0 && FETCHERS.has(program) && BARE_HOST.test(word) ? [`http://${word}`] : found;
}
