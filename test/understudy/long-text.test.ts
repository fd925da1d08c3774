/** No text, however it is made, may hold up an answer. */
import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import type { ModelRequest } from "../../src/model/provider.ts";
import type { UnderstudyStep } from "../../src/model/understudy/plan/plan.ts";
import { nextStep } from "../../src/model/understudy/understudy.ts";
import type { Message } from "../../src/protocol/message.ts";
import { builtinTools } from "../../src/tools/builtin.ts";

const SIZE = 1_000_000;
const LIMIT_MS = 500;
/** The short version tries each text in every third way, so that each way meets a third of the texts. */
const STRIDE = process.env.TROUPE_SLOW === undefined ? 3 : 1;

function filled(unit: string): string {
  return unit.repeat(Math.ceil(SIZE / unit.length)).slice(0, SIZE);
}

function base64(): string {
  let text = "";
  for (let block = 0; text.length < SIZE; block++) {
    text += createHash("sha512").update(String(block)).digest("base64");
  }
  return text.slice(0, SIZE);
}

const minified = filled('function a(b,c){var d=b.e("f",{g:1,h:[2,3]});return d&&c(d)||null}');

const texts: Readonly<Record<string, string>> = {
  "the letter w": filled("w"),
  "a and a dot": filled("a."),
  "opening brackets": filled("("),
  spaces: `x${filled(" ")}x`,
  "double quotes": filled('"'),
  slashes: filled("/"),
  dashes: filled("-"),
  digits: filled("1"),
  backquotes: filled("`"),
  "square brackets": filled("!["),
  "tags that stay open": filled("<input>"),
  "reminders that stay open": filled("<reminder a"),
  "base64 in one line": base64(),
  "minified code in one line": minified,
  "base64 in short lines": base64().replace(/(.{76})/g, "$1\n"),
  "lines of 500 spaces": filled(`${" ".repeat(499)}\n`),
  "lines of 500 letters": filled(`${"w".repeat(499)}\n`),
  "a hundred thousand lines": filled("ab cd ef\n"),
  "the same error over and over": filled("ERROR no disk\n"),
};

function timed(messages: readonly Message[]): { step: UnderstudyStep; cost: number } {
  const request: ModelRequest = { model: "understudy", system: "", messages, tools: builtinTools, stream: false };
  const before = process.cpuUsage();
  const step = nextStep(request);
  const { user, system } = process.cpuUsage(before);
  if (step.kind === "answer") expect(step.text.length).toBeLessThan(30_000);
  return { step, cost: (user + system) / 1000 };
}

/** Answers every call with `reply` until the understudy is done; the slowest step counts. */
function slowest(prompt: string, reply: (name: string) => string): number {
  const messages: Message[] = [{ role: "user", content: prompt }];
  let most = 0;
  for (let turn = 0; turn < 3; turn++) {
    const { step, cost } = timed(messages);
    most = Math.max(most, cost);
    if (step.kind === "answer") return most;
    // One large result is enough for each turn: it is the text that is tried, not the sum.
    const calls = step.calls.map((call, index) => ({ toolCallId: `${turn}-${index}`, ...call }));
    messages.push({ role: "assistant", content: "", calls });
    for (const [index, { toolCallId, name }] of calls.entries()) {
      const large = calls.findIndex((call) => call.name === name) === index;
      messages.push({ role: "tool", toolCallId, content: large ? reply(name) : "No matches found.", isError: false });
    }
  }
  return most;
}

test.each(Object.entries(texts))("a million characters of %s cost less than half a second", (_, text) => {
  const rows = text.split("\n");
  const numbered = rows.map((row, index) => `${index + 1}. ${row}`).join("\n");
  const hits = rows.map((row, index) => `src/a.ts:${index + 1}:${row}`).join("\n");
  const costs = {
    piped: () => slowest(`what is this?\n\n<piped_input>\n${text}\n</piped_input>`, () => "Path x does not exist."),
    fenced: () => slowest(`why?\n\`\`\`\n${text}\n\`\`\``, () => "Path x does not exist."),
    prompt: () => slowest(text, () => "No matches found."),
    question: () => slowest(`where is ${text}`, () => "No matches found."),
    viewed: () => slowest("explain src/a.ts", (name) => (name === "view" ? numbered : "No matches found.")),
    prose: () => slowest("explain a.md", (name) => (name === "view" ? numbered : "No matches found.")),
    grepped: () => slowest("where is openBook defined?", (name) => (name === "grep" ? hits : "No matches found.")),
    raw: () => slowest("where is openBook defined?", () => text),
    overview: () => slowest("Explain this repository", (name) => (name === "glob" ? text : numbered)),
  };
  // Other programs on the same cores make a measurement larger, never smaller.
  const isSlow = (cost: () => number): boolean => [1, 2, 3].every(() => cost() >= LIMIT_MS);
  const first = Object.values(texts).indexOf(text);
  const tried = Object.entries(costs).filter((_, index) => (first + index) % STRIDE === 0);
  const slow = tried.filter(([, cost]) => isSlow(cost)).map(([name]) => name);
  expect(slow).toEqual([]);
});
