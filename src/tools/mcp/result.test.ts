import { describe, expect, it } from "vitest";
import { toToolResult } from "./result.ts";

const config = {
  name: "files",
  scope: "program" as const,
  source: "test",
  transport: { type: "stdio" as const, command: "x", args: [], environment: {} },
  tools: ["*"],
  timeoutMs: 1000,
};
const shown = (text: string, structuredContent: Record<string, unknown>): string =>
  toToolResult({ content: [{ type: "text", text }], structuredContent }, { config, toolName: "read" }).content;

describe("a result with structured content", () => {
  it("is sent once when the structured content wraps the text", () => {
    expect(shown("line one\nline two\n", { content: "line one\nline two\n" })).toBe("line one\nline two\n");
  });

  it("is sent once when the text is the same JSON, however it is laid out", () => {
    const value = { sum: 3, parts: [1, 2] };
    expect(shown(JSON.stringify(value, undefined, 2), value)).toBe(JSON.stringify(value, undefined, 2));
  });

  it("is sent as text when the text names every value", () => {
    expect(shown("Temperature 22, humidity 65", { temperature: 22, humidity: 65 })).toBe("Temperature 22, humidity 65");
  });

  it("is sent as JSON when the text is a part of it", () => {
    expect(shown("Two found", { summary: "Two found", found: ["a.ts", "b.ts"] })).toBe(
      '{"summary":"Two found","found":["a.ts","b.ts"]}',
    );
  });

  it("is sent in both forms when each has something that the other has not", () => {
    expect(shown("See the table.", { rows: ["a", "z9"] })).toBe('See the table.\n{"rows":["a","z9"]}');
  });
});
