import { expect, it } from "vitest";
import { changeText } from "../../src/cli/output/board-lines.ts";

it("a change of the board shows a short note once, and its description before the text", () => {
  const row = { src: "user", name: "n", description: "short", content: "short" };
  const rows = [
    { before: null, after: row },
    { before: null, after: { ...row, description: "about", content: "one\ntwo" } },
  ];
  const text = changeText({ rows } as unknown as Parameters<typeof changeText>[0]);
  expect(text).toBe("+ user/n\n  + short\n+ user/n\n  + about\n  + one\n  + two\n");
});
