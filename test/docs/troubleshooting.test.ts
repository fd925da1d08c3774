import { describe, expect, it } from "vitest";
import { read, sources } from "./documents.ts";

/** The literal parts of a quoted message: `…` stands for anything. */
const partsOf = (message: string): string[] =>
  message
    .split("…")
    .map((part) => part.trim())
    .filter((part) => part.length > 3);

const messages = [...read("docs/how-to/troubleshooting.md").matchAll(/^\| `([^`]+)` \|/gm)].map(
  ([, text = ""]) => text,
);

/** A template literal may have a value, and source code may break a string, where the message has a space. */
const isIn = (source: string, part: string): boolean => source.includes(part) || source.includes(escaped(part));
const escaped = (part: string): string => part.replaceAll('"', '\\"');

describe("docs/how-to/troubleshooting.md", () => {
  it("quotes messages", () => expect(messages.length).toBeGreaterThan(25));

  it.each(messages)("quotes a message that exists: %s", (message) => {
    const parts = partsOf(message);
    expect(parts).not.toEqual([]);
    expect(sources.some((source) => parts.every((part) => isIn(source, part)))).toBe(true);
  });

  it("is checked against the sources, where a made-up message is not found", () => {
    expect(sources.some((source) => isIn(source, "This message was never written."))).toBe(false);
  });
});
