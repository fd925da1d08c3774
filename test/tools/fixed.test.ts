import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import * as z from "zod";
import { defineTool, fixed } from "../../src/tools/tool.ts";

it("a fixed input is made when a call is checked, and once", () => {
  let made = 0;
  const input = fixed("counted", () => {
    made++;
    return z.object({ path: z.string().describe("Where") });
  });
  const tool = defineTool({ name: "counted", description: "", input, run: async ({ path }) => ({ content: path }) });
  expect(made).toBe(0);
  tool.bind({ path: "a" });
  expect(() => tool.bind({ path: 1 })).toThrow(/Bad arguments for counted/);
  expect(tool.parameters).toEqual({
    type: "object",
    properties: { path: { type: "string", description: "Where" } },
    required: ["path"],
  });
  expect(made).toBe(1);
});

it("the shown fields of an argument are merged over its schema", () => {
  const tool = defineTool({
    name: "choose",
    description: "",
    input: fixed("choose", () => z.object({ one: z.string().describe("Which"), other: z.string() })),
    shown: { one: { enum: ["a", "b"] } },
    run: async () => ({ content: "" }),
  });
  expect(tool.parameters).toEqual({
    type: "object",
    properties: { one: { type: "string", description: "Which", enum: ["a", "b"] }, other: { type: "string" } },
    required: ["one", "other"],
  });
});

it("no two inputs of built-in tools have the same id", () => {
  const files = readdirSync("src/tools", { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  const ids = files.flatMap((name) =>
    [...readFileSync(join("src/tools", name), "utf8").matchAll(/\bfixed\(\s*"([^"]+)"/g)].map(([, id]) => id),
  );
  expect(ids.length).toBeGreaterThan(20);
  expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
});
