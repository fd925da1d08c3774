import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { localCommands } from "../../src/terminal/commands/list.ts";
import { keyTable } from "../../src/terminal/input/key-table.ts";
import { themeNames } from "../../src/terminal/screen/style.ts";

const guide = readFileSync("docs/how-to/terminal.md", "utf8");

describe("docs/how-to/terminal.md", () => {
  it("docs/how-to/terminal.md lists every key of the prompt and of a replay, in the program's order", () => {
    const isOfReplay = ({ action }: (typeof keyTable)[number]): boolean => action.startsWith("replay-");
    for (const keys of [keyTable.filter((key) => !isOfReplay(key)), keyTable.filter(isOfReplay)]) {
      const rows = keys.map(({ keys, help }) => `| ${keys.join(", ")} | ${help} |`);
      expect(guide).toContain(`| key | meaning |\n| --- | --- |\n${rows.join("\n")}\n`);
    }
  });

  it("docs/how-to/terminal.md names every command and every theme of the terminal", () => {
    for (const { name } of localCommands) expect(guide).toContain(`/${name}`);
    for (const theme of themeNames) expect(guide).toContain(`\`${theme}\``);
  });
});
