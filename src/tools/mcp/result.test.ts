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
  it("structured content that wraps the text of a result is sent once", () => {
    expect(shown("line one\nline two\n", { content: "line one\nline two\n" })).toBe("line one\nline two\n");
  });

  it("structured content that is the same JSON as the text is sent once", () => {
    const value = { sum: 3, parts: [1, 2] };
    expect(shown(JSON.stringify(value, undefined, 2), value)).toBe(JSON.stringify(value, undefined, 2));
  });

  it("structured content whose values the text names is sent as text", () => {
    expect(shown("Temperature 22, humidity 65", { temperature: 22, humidity: 65 })).toBe("Temperature 22, humidity 65");
  });

  it("structured content that contains the text is sent as JSON", () => {
    expect(shown("Two found", { summary: "Two found", found: ["a.ts", "b.ts"] })).toBe(
      '{"summary":"Two found","found":["a.ts","b.ts"]}',
    );
  });

  it("structured content and text are both sent when each has something that the other lacks", () => {
    expect(shown("See the table.", { rows: ["a", "z9"] })).toBe('See the table.\n{"rows":["a","z9"]}');
  });
});
