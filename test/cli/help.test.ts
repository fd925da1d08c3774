import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { commands } from "../../src/cli/command-list.ts";
import { commandHelp } from "../../src/cli/help/command-help.ts";
import { variables } from "../../src/cli/help/environment.ts";
import { mainHelp } from "../../src/cli/help/main-help.ts";
import { manPage } from "../../src/cli/help/man-page.ts";
import { referencePage } from "../../src/cli/help/reference.ts";
import { topics } from "../../src/cli/help/topics.ts";
import { options } from "../../src/cli/options.ts";
import type { Subcommand } from "../../src/cli/table/command.ts";
import { setVariables } from "../../src/cli/variables.ts";

const everything: readonly { title: string; one: Subcommand; help: string }[] = commands.flatMap((command) => [
  { title: command.name, one: command, help: commandHelp(command) },
  ...(command.subcommands ?? []).map((one) => ({
    title: `${command.name} ${one.name}`,
    one,
    help: commandHelp(command, one),
  })),
]);

describe("the table of commands", () => {
  it("the table of commands names only flags that exist, and every flag of commands is used by one", () => {
    const known = new Set(options.map(({ name }) => name));
    const used = everything.flatMap(({ one }) => Object.keys(one.flags ?? {}));
    expect(used.filter((name) => !known.has(name))).toEqual([]);
    const ofCommands = options.filter(({ group }) => group === "Commands").map(({ name }) => name);
    expect(ofCommands.filter((name) => !used.includes(name))).toEqual([]);
  });

  it("the table of commands has a unique name, a short summary and a loader that works for every command", async () => {
    const names = commands.map(({ name }) => name);
    expect(names).toEqual([...new Set(names)]);
    for (const { name, summary, load, usual, subcommands } of commands) {
      expect({ name, fits: summary.length <= 64, isPlain: /^[a-z].*[^.]$/.test(summary) }).toEqual({
        ...{ name, fits: true, isPlain: true },
      });
      if (usual !== undefined) expect(subcommands?.map((one) => one.name)).toContain(usual);
      expect(typeof (await load())).toBe("function");
    }
  });

  it("the table of commands lists every file of its folder", () => {
    const files = readdirSync("src/cli/table").filter((name) => name !== "command.ts");
    const list = readFileSync("src/cli/command-list.ts", "utf8");
    expect(files.filter((name) => !list.includes(`"./table/${name}"`))).toEqual([]);
  });
});

describe("the help", () => {
  it("troupe's help fits one screen of 80 columns", () => {
    const lines = mainHelp("0.0.0").trimEnd().split("\n");
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
    expect(lines.length).toBeLessThanOrEqual(54);
    for (const { name } of [...commands, ...topics]) expect(lines.join("\n")).toMatch(new RegExp(`\\b${name}\\b`));
  });

  it.each(everything)("troupe's help is complete and at most 80 columns wide for $title", ({ one, help }) => {
    const lines = help.split("\n").filter((line) => !line.startsWith("  troupe "));
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
    for (const name of Object.keys(one.flags ?? {})) expect(help).toContain(`--${name}`);
    if (one.examples) expect(help.indexOf("Examples:")).toBeLessThan(help.search(/Usage:|Subcommands:/));
  });

  it.each([40, 60])("the help fits a terminal of %i columns, except for command lines", (width) => {
    const texts = [
      mainHelp("0.0.0", width),
      ...commands.flatMap((command) => [
        commandHelp(command, undefined, width),
        ...(command.subcommands ?? []).map((one) => commandHelp(command, one, width)),
      ]),
    ];
    const lines = texts.flatMap((text) => text.split("\n"));
    expect(lines.filter((line) => line.length > width && !/^ {2}\S|^More: /.test(line))).toEqual([]);
    const main = mainHelp("0.0.0", width).split("\n");
    expect(main.filter((line) => line.length > width)).toEqual([]);
  });

  it("troupe's help lists every flag that is not limited to commands once, groups together", async () => {
    const text = (await topics.find(({ name }) => name === "flags")?.text()) ?? "";
    const lines = text.split("\n");
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
    for (const { name } of options.filter(({ group }) => group !== "Commands")) {
      expect(
        lines.filter((line) => new RegExp(`^  (-\\w, |    )--${name}( |$)`).test(line)),
        name,
      ).toHaveLength(1);
    }
    const groups = options.map(({ group }) => group);
    expect(groups.filter((group, index) => group !== groups[index - 1])).toEqual([...new Set(groups)]);
  });

  it("troupe's help has text for every topic", async () => {
    for (const { name, text } of topics)
      expect({ name, isLong: (await text()).length > 100 }).toEqual({ name, isLong: true });
  });

  it("troupe's help explains every variable of troupe that the sources read", () => {
    const sources = readdirSync("src", { recursive: true, encoding: "utf8" }).filter((name) =>
      /(?<!\.test)\.ts$/.test(name),
    );
    const found = sources
      .filter((name) => !name.startsWith("cli/help/"))
      .flatMap((name) => readFileSync(`src/${name}`, "utf8").match(/\bTROUPE_[A-Z_]*[A-Z]\b/g) ?? []);
    const known = new Set([
      ...Object.keys(variables),
      ...setVariables.variables.map(({ name }) => name),
      "TROUPE_SUBCONSCIOUS",
      "TROUPE_MULTI_TURN_AGENTS",
      "TROUPE_OTEL",
    ]);
    expect([...new Set(found)].filter((name) => !known.has(name))).toEqual([]);
    expect(Object.keys(variables).filter((name) => !found.includes(name))).toEqual([]);
  });
});

it("the reference page in docs equals the table of commands (update: npx vitest run test/cli/help.test.ts -u)", async () => {
  await expect(referencePage()).toMatchFileSnapshot("../../docs/reference/command-line.md");
});

it("the man page has every command and flag, and no line that roff would read as a macro", () => {
  const page = manPage("0.0.0");
  for (const { title } of everything)
    expect(page).toContain(
      `\\fBtroupe ${title.replaceAll("-", "\\-")}\\fR`.replace(/^.*$/, (text) =>
        title.includes(" ") ? text : `.SS troupe ${title}`,
      ),
    );
  for (const { name } of options) expect(page).toContain(`\\-\\-${name.replaceAll("-", "\\-")}`);
  const macros = page.split("\n").flatMap((line) => /^\.(\w+)/.exec(line)?.[1] ?? []);
  expect([...new Set(macros)].sort()).toEqual(["B", "PP", "RE", "RS", "SH", "SS", "TH", "TP", "br", "fi", "nf"]);
});
