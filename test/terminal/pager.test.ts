import { describe, expect, it } from "vitest";
import { Pager } from "../../src/terminal/overlays/pager.ts";
import { styleOf } from "../../src/terminal/screen/style.ts";

const size = { columns: 40, rows: 6 };
const type = (pager: Pager, keys: readonly string[]): void => {
  for (const key of keys) pager.key({ id: key, data: key });
};
const reader = () => {
  const text = { lines: ["reading…"] as readonly string[] };
  const style = styleOf("default", { NO_COLOR: "1" });
  const pager = new Pager({ title: "Output", style, lines: () => text.lines, isFollowing: true });
  return { pager, text };
};
const numbered = Array.from({ length: 60 }, (_, index) => `row ${index + 1}.`);

describe("the pager", () => {
  it("the pager finds text that arrives after the search was entered", () => {
    const { pager, text } = reader();
    pager.rows(size);
    type(pager, ["g", "/", "3", "0", ".", "enter"]);
    expect(pager.rows(size)[1]).toBe("reading…");
    text.lines = numbered;
    expect(pager.rows(size)[1]).toBe("row 30.");
  });

  it("the pager stops searching when the reader moves", () => {
    const { pager, text } = reader();
    pager.rows(size);
    type(pager, ["/", "3", "0", ".", "enter", "g"]);
    text.lines = numbered;
    expect(pager.rows(size)[1]).toBe("row 1.");
  });
});
