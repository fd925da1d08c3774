import { readFileSync, writeFileSync } from "node:fs";
import { afterEach, expect, it, vi } from "vitest";
import { parse } from "../src/cli/args.ts";
import { promptCommand } from "../src/cli/prompt-mode.ts";
import { type Stamp, systemStamp } from "../src/lib/stamp.ts";
import { tempFolder } from "../src/testing/temp-folder.ts";

interface Shape {
  readonly LIMITS: { readonly promptPath: number };
  readonly PROMPT_PATH: readonly (readonly [name: string, file: string])[];
}

const { LIMITS, PROMPT_PATH } = (await import(new URL("../scripts/shape.mjs", import.meta.url).href)) as Shape;

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

/** Returns the functions of `src` in a stack trace, outermost first. */
const framesOf = (stack: string): (readonly [name: string, file: string])[] =>
  [...stack.matchAll(/ at (?:async )?(?:Object\.)?(\S+) \(.*?\/src\/([^:]+):/g)]
    .map(([, name = "", file = ""]) => [name, file] as const)
    .reverse();

/** Runs a prompt like the command line does, and returns the stack of every id that it makes. */
async function stacksOfPrompt(): Promise<string[]> {
  await using folder = await tempFolder();
  writeFileSync(folder.at("script.json"), JSON.stringify({ steps: [{ say: "hello" }] }));
  vi.stubEnv("TROUPE_HOME", folder.at("home"));
  vi.spyOn(process.stdout, "write").mockImplementation(answered);
  const stacks: string[] = [];
  const limit = Error.stackTraceLimit;
  const id: Stamp["id"] = systemStamp.id.bind(systemStamp);
  vi.spyOn(systemStamp, "id").mockImplementation((prefix) => {
    Error.stackTraceLimit = 100;
    stacks.push(String(new Error(prefix).stack));
    Error.stackTraceLimit = limit;
    return id(prefix);
  });
  const flags = ["-p", "hi", "--model", `faux:${folder.at("script.json")}`, "--silent"];
  expect(await promptCommand(parse(flags), { importModule: (specifier) => import(specifier) })).toBe(0);
  return stacks;
}

/** Takes what is written, in all forms of `write`. */
const answered = (...[, encoding, done]: unknown[]): boolean => {
  const callback = typeof encoding === "function" ? encoding : done;
  if (typeof callback === "function") callback();
  return true;
};

it("the path from the prompt to the loop has exactly the functions that the shape lists", async () => {
  const traces = (await stacksOfPrompt()).map(framesOf);
  const named = (wanted: string) => (trace: ReturnType<typeof framesOf>) => trace.some(([name]) => name === wanted);
  // The queue works on its own, so a second trace begins there.
  const before = traces.find(named("MessageQueue.accept")) ?? [];
  const after = traces.find(named("runLoop")) ?? [];
  const path = [
    ...before.slice(0, before.findIndex(([name]) => name === "MessageQueue.accept") + 1),
    ...after.slice(0, after.findIndex(([name]) => name === "runLoop") + 1),
  ];
  expect(path).toEqual(PROMPT_PATH);
  expect(path.length).toBeLessThanOrEqual(LIMITS.promptPath);
});

it("the architecture page has every function of the prompt path, in order", () => {
  const text = readFileSync(new URL("../ARCHITECTURE.md", import.meta.url), "utf8");
  const drawing = /## Life of a prompt\n+```\n([\s\S]*?)```/.exec(text)?.[1] ?? "";
  const drawn = PROMPT_PATH.map(([name, file]) => drawing.search(new RegExp(`${escaped(name)}\\s+.*${escaped(file)}`)));
  expect(drawn).not.toContain(-1);
  expect(drawn).toEqual(drawn.toSorted((a, b) => a - b));
});

const escaped = (text: string): string => text.replace(/[.#/]/g, "\\$&");
