/** Reads the output of a hook line by line. Progress lines are reported immediately; the rest is the answer. */
import { StringDecoder } from "node:string_decoder";
import { isObject } from "../lib/json.ts";
import { clip, sanitise } from "../lib/text.ts";
import { readJson } from "./bounded-json.ts";

export interface HookProgress {
  readonly message: string;
  readonly temporary?: boolean;
}

export interface OutputReader {
  /** Returns false once the output exceeds the limit. */
  push(bytes: Buffer): boolean;
  /** Returns the output without progress lines. */
  text(): string;
}

const MAX_OUTPUT_BYTES = 10 * 1024 * 1024;
const MAX_PROGRESS_LINES = 100;
const MAX_PROGRESS_CHARACTERS = 8 * 1024;

export function outputReader(onProgress: (progress: HookProgress) => void): OutputReader {
  const decoder = new StringDecoder("utf8");
  const kept: string[] = [];
  let line: string[] = [];
  let size = 0;
  let told = 0;

  const endLine = (): void => {
    const whole = line.join("");
    line = [];
    const progress = readProgress(whole);
    if (progress === undefined) kept.push(whole);
    else if (told++ < MAX_PROGRESS_LINES) onProgress(progress);
  };
  return {
    push(bytes) {
      size += bytes.length;
      if (size > MAX_OUTPUT_BYTES) return false;
      const [first = "", ...rest] = decoder.write(bytes).split("\n");
      line.push(first);
      for (const next of rest) {
        endLine();
        line.push(next);
      }
      return true;
    },
    text() {
      line.push(decoder.end());
      endLine();
      return kept.join("\n");
    },
  };
}

/** Parses a line that is one complete object of type `progress`. */
function readProgress(line: string): HookProgress | undefined {
  if (!line.includes('"progress"') || line.length > MAX_PROGRESS_CHARACTERS) return undefined;
  const json = readJson(line);
  if (!json.ok || !isObject(json.value) || json.value.type !== "progress") return undefined;
  const { message, temporary } = json.value;
  return {
    message: clip(sanitise(typeof message === "string" ? message : ""), 500),
    ...(typeof temporary === "boolean" && { temporary }),
  };
}
