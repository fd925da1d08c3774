import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { builtinCommands } from "../../src/commands/list.ts";
import { parseCommand } from "../../src/commands/parse-command.ts";
import { TroupeError } from "../../src/protocol/errors.ts";
import { stage, typed } from "./stage.ts";

const skills = [
  { commandName: "release-notes", name: "Release Notes", description: "" },
  { commandName: "kit:lint.all", name: "kit:lint.all", description: "" },
  { commandName: "permissions", name: "permissions", description: "comes with the folder" },
];
const isPath = (path: string): boolean => ["/etc", "/Users"].includes(path);

function parsed(text: string): string {
  const result = parseCommand(text, { commands: builtinCommands, skills, isPath });
  if (result.kind === "text") return "text";
  const name = result.kind === "command" ? result.command.name : result.skill.name;
  return `${result.kind} ${name} [${result.argumentText}]`;
}

describe("typed input", () => {
  it.each([
    ["/review", "command review []"],
    ["  /Review  the last commit \n", "command review [the last commit]"],
    ["/review\nfirst line\nsecond line", "command review [first line\nsecond line]"],
    ["/rewind", "command rewind []"],
    ["/add-dir ../x", "command add-dir [../x]"],
    ["/release-notes v2", "skill Release Notes [v2]"],
    ["/kit:lint.all src", "skill kit:lint.all [src]"],
    ["/permissions", "command permissions []"],
    ["what does /review do?", "text"],
    ["/usr/bin is full", "text"],
    ["/usr/bin", "text"],
    ["/etc is not readable, why?", "text"],
    ["/Users", "text"],
    ["/index.html does not load", "text"],
    ["/", "text"],
    ["/ review", "text"],
    ["//review", "text"],
    ["/* a comment */", "text"],
    ["/1st", "text"],
    ["/review/", "text"],
    ["", "text"],
  ])("the typed input %j is %s", (text, expected) => {
    expect(parsed(text)).toBe(expected);
  });

  it.each([
    ["/reveiw", "There is no command /reveiw here.", "Did you mean /review?"],
    ["/relase-notes now", "There is no command /relase-notes here.", "Did you mean /release-notes?"],
    ["/quux", "There is no command /quux here.", "/help lists the commands."],
  ])("the typed input %j is an error that suggests what to type", (text, message, hint) => {
    expect(() => parsed(text)).toThrow(
      expect.objectContaining({ kind: "usage", message, hint: expect.stringContaining(hint) }),
    );
  });

  it("arbitrary typed input never throws anything but a TroupeError", () => {
    const unit = fc.constantFrom(..."/aeirvw-:._!\\ \n\t0", "\u0000", "é", "😀", "\ud800", "\u200b");
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 90 }), fc.boolean(), (words, isCommand) => {
        try {
          return ["text", "command", "skill"].includes(parsed(isCommand ? `/${words}` : words).split(" ")[0] ?? "");
        } catch (error) {
          return error instanceof TroupeError;
        }
      }),
      { numRuns: 300 },
    );
  });
});

describe("offered commands", () => {
  it("commands without their port are not offered, and one that is typed anyway is reported", async () => {
    const { context } = stage();
    const { models: _, ...without } = context;
    await expect(typed("/model", { context: without, asked: [] })).rejects.toThrow("There is no command /model here.");
    const help = await typed("/help", { context: without, asked: [] });
    expect(help).toMatchObject({ text: expect.not.stringContaining("/model") });
    expect(await typed("/help")).toMatchObject({ text: expect.stringContaining("/model [name]: ") });
  });

  it("skills are offered as commands and run by their names", async () => {
    expect(await typed("/release-notes v2")).toEqual({ kind: "skill", name: "Release Notes", request: "v2" });
  });

  it("an ordinary prompt is not changed by commands", async () => {
    expect(await typed("/tmp is full")).toBeUndefined();
  });
});
