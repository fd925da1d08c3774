import { expect, it } from "vitest";
import { helpText } from "../../src/cli/help.ts";
import { options } from "../../src/cli/options.ts";

it("keeps the help readable: no line beyond 120 columns, every flag once, groups together", () => {
  const lines = helpText("0.0.0").split("\n");
  expect(lines.filter((line) => line.length > 120)).toEqual([]);
  for (const { name } of options) {
    expect(
      lines.filter((line) => new RegExp(`^  (-\\w, |    )--${name}( |$)`).test(line)),
      name,
    ).toHaveLength(1);
  }
  const groups = options.map(({ group }) => group);
  expect(groups.filter((group, index) => group !== groups[index - 1])).toEqual([...new Set(groups)]);
});
