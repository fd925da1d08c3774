import { describe, expect, it } from "vitest";
import { headerProblem } from "./tool-headers.ts";

const withHeader = (property: object) => ({ type: "object", properties: { a: property } });

describe("headerProblem", () => {
  it("headerProblem accepts string, integer and boolean properties at any depth, and schemas without declarations", () => {
    const nested = withHeader({ type: "string", "x-mcp-header": "Region" });
    expect(headerProblem({ type: "object", properties: { one: nested, two: { type: "integer" } } })).toBeUndefined();
    expect(headerProblem(withHeader({ type: "boolean", "x-mcp-header": "Dry-Run" }))).toBeUndefined();
  });

  it.each([
    ["an empty name", withHeader({ type: "string", "x-mcp-header": "" }), /is not a name/],
    ["a name with a space", withHeader({ type: "string", "x-mcp-header": "My Region" }), /not a valid header name/],
    ["a name with a line break", withHeader({ type: "string", "x-mcp-header": "A\r\nB" }), /not a valid header name/],
    ["a number", withHeader({ type: "number", "x-mcp-header": "Size" }), /not a string, integer or boolean/],
    ["an object", withHeader({ type: "object", "x-mcp-header": "Size" }), /not a string, integer or boolean/],
    [
      "a list item",
      withHeader({ type: "array", items: { type: "string", "x-mcp-header": "A" } }),
      /only on properties/,
    ],
    [
      "a branch",
      { type: "object", anyOf: [withHeader({ type: "string", "x-mcp-header": "A" })] },
      /only on properties/,
    ],
    [
      "the same name twice",
      {
        type: "object",
        properties: { a: { type: "string", "x-mcp-header": "A" }, b: { type: "string", "x-mcp-header": "a" } },
      },
      /same header twice/,
    ],
  ])("headerProblem refuses %s", (_what, schema, problem) => {
    expect(headerProblem(schema)).toMatch(problem);
  });
});
