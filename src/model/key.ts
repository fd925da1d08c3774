/** Adds a provider's key to its requests. */
import { type Stamp, systemStamp } from "../lib/stamp.ts";
import { clip, sanitise } from "../lib/text.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { Auth } from "./providers/definition.ts";

export interface Signature {
  readonly auth: Auth;
  readonly key:
    | { readonly type: "none" }
    | { readonly type: "value"; readonly value: string }
    | { readonly type: "command"; readonly command: readonly string[] }
    /** Called before each request. */
    | { readonly type: "callback"; readonly read: () => Promise<string> };
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Returns a function for the headers of each request. The output of a key command is cached for five minutes, because
 * such tokens live longer. A callback is called each time.
 */
export function signedHeaders(
  signature: Signature,
  stamp: Stamp = systemStamp,
  onKey?: (key: string) => void,
): () => Promise<Record<string, string>> {
  const key = keyReader(signature.key, stamp);
  return async () => {
    const value = await key();
    if (value !== undefined) onKey?.(value);
    return { ...(value === undefined ? {} : authHeader(signature.auth, value)), ...signature.headers };
  };
}

/** Returns a function for the key itself, for callers that add it to requests themselves. */
export function keyReader(key: Signature["key"], stamp: Stamp = systemStamp): () => Promise<string | undefined> {
  if (key.type === "none") return async () => undefined;
  if (key.type === "value") return async () => key.value;
  if (key.type === "callback") return key.read;
  let kept: { readonly value: Promise<string>; readonly until: number } | undefined;
  return () => {
    const now = stamp.monotonic();
    if (kept === undefined || kept.until <= now) {
      const value = runKeyCommand(key.command);
      kept = { value, until: now + KEPT_MS };
      value.catch(() => {
        kept = undefined;
      });
    }
    return kept.value;
  };
}

const KEPT_MS = 5 * 60_000;

function authHeader(auth: Auth, key: string): Record<string, string> {
  switch (auth) {
    case "bearer":
      return { authorization: `Bearer ${key}` };
    case "none":
      return {};
    default:
      return { [auth]: key };
  }
}

/** Runs the program without a shell, for at most ten seconds. Its output is the key and is never shown. */
export async function runKeyCommand(command: readonly string[], timeoutMs = 10_000): Promise<string> {
  const { execFile } = await import("node:child_process");
  const [program = "", ...args] = command;
  const options = { timeout: timeoutMs, killSignal: "SIGKILL", maxBuffer: 64 * 1024, windowsHide: true } as const;
  return new Promise((resolve, reject) => {
    const fail = (why: string): void => reject(new TroupeError("configuration", `the key command "${program}" ${why}`));
    execFile(program, args, options, (error, stdout, stderr) => {
      const key = stdout.trim();
      if (error?.killed) return fail(`did not finish within ${timeoutMs / 1_000} s`);
      if (error?.code === "ENOENT") return fail("was not found");
      if (error)
        return fail(`failed: ${clip(sanitise(stderr).trim().split("\n")[0] || `exit code ${error.code}`, 200)}`);
      if (key === "" || /[\r\n]/.test(key)) return fail(key === "" ? "printed nothing" : "printed more than one line");
      resolve(key);
    }).stdin?.end();
  });
}

/** Splits a command line into words. Quotes group, and a backslash escapes the next character. Nothing is expanded. */
export function splitCommand(text: string): string[] {
  const words: string[] = [];
  const pattern = /(?:[^\s"'\\]|\\[\s\S]|"(?:[^"\\]|\\[\s\S])*"|'[^']*')+/g;
  for (const [word] of text.matchAll(pattern)) {
    words.push(
      word.replace(
        /\\([\s\S])|"((?:[^"\\]|\\[\s\S])*)"|'([^']*)'/g,
        (_, escaped, double, single) => escaped ?? (double === undefined ? single : double.replace(/\\(["\\])/g, "$1")),
      ),
    );
  }
  return words;
}
