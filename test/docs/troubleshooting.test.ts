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
  it("docs/how-to/troubleshooting.md quotes more than 25 messages", () => expect(messages.length).toBeGreaterThan(25));

  it.each(messages)("docs/how-to/troubleshooting.md quotes a message that exists: %s", (message) => {
    const parts = partsOf(message);
    expect(parts).not.toEqual([]);
    expect(sources.some((source) => parts.every((part) => isIn(source, part)))).toBe(true);
  });

  it("the check of quoted messages does not find a made-up message in the sources", () => {
    expect(sources.some((source) => isIn(source, "This message was never written."))).toBe(false);
  });
});
