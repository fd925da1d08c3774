import { expect, it } from "vitest";
import { complete } from "./complete.ts";

const lookup = async (kind: string) => [{ value: `${kind}-1`, description: "" }];

async function offered(line: string): Promise<readonly string[]> {
  const { candidates, shell } = await complete(line.split(" "), lookup);
  return [...candidates.map(({ value }) => value), ...(shell ? [`:${shell}`] : [])];
}

it.each([
  ["fo", ["fork"]],
  ["tasks di", ["diff", "discard"]],
  ["tasks --session x di", ["diff", "discard"]],
  ["--model m", ["model-1"]],
  ["--model=m", ["--model=model-1"]],
  ["sessions show s", ["session-1"]],
  ["sessions show x y", []],
  ["agents check ", [":file"]],
  ["trust ", ["list", "remove", ":folder"]],
  ["config set ", ["setting-1"]],
  ["fork --na", ["--name"]],
  ["fork --name x --na", []],
  ["-p hello", []],
  ["-p hello --cont", ["--continue"]],
])("command completion completes %j", async (line, expected) => {
  expect(await offered(line)).toEqual(expected);
});
