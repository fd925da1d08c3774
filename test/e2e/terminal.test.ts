/** A user at a real terminal: how answers look, what is asked, and what a run leaves on the screen. */
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { onTerminal, type TerminalOptions } from "../support/terminal.ts";
import { script, troupe } from "../support/troupe.ts";

async function desk() {
  const folder = await tempFolder();
  const [home, cwd] = [join(folder.path, "home"), join(folder.path, "project")];
  for (const path of [home, cwd]) mkdirSync(path);
  return {
    home,
    cwd,
    model: (steps: readonly object[]) => ["--model", script(folder.path, steps)],
    type: (args: readonly string[], more: Partial<TerminalOptions> = {}) => onTerminal(args, { cwd, home, ...more }),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

const answer = [
  "# Result\n",
  "A **bold** word and `code`.\n",
  "- one\n- two\n",
  "| a | b |\n| --- | --- |\n| 1 | 2 |\n",
  "\u001b]0;title\u0007\u001b[2Jend",
].join("\n");

/** Styles and the live lines of progress, which are taken away again. */
const sequences = (screen: string): string[] => [...screen.matchAll(/\u001b[^\u001b]{0,12}/g)].map(([one]) => one);

it("an answer on a terminal is rendered Markdown without escape sequences of its own", async () => {
  await using at = await desk();
  const { code, screen } = await at.type(["-p", "x", ...at.model([{ say: answer }])]);
  expect(code).toBe(0);
  expect(screen).toContain("\u001b[1;4mResult\u001b[22;24m\n");
  expect(screen).toContain("A \u001b[1mbold\u001b[22m word and \u001b[36mcode\u001b[39m.\n");
  expect(screen).toContain("• one\n• two\n");
  expect(screen).toContain("1\u001b[2m │ \u001b[22m2\n");
  expect(screen).toContain("end\n");
  expect(screen.match(/Result/g)).toHaveLength(1);
  expect(sequences(screen).filter((one) => /^\u001b(?:\]|\[2J)/.test(one))).toEqual([]);
});

it("an answer with NO_COLOR has no escape sequence, and the text is piped unchanged", async () => {
  await using at = await desk();
  const { screen } = await at.type(["-s", "-p", "x", ...at.model([{ say: answer }])], {
    environment: { NO_COLOR: "1" },
  });
  expect(screen).toContain("# Result\n\nA **bold** word and `code`.\n");
  expect(screen).not.toContain("\u001b");
  const piped = await troupe(["-s", "-p", "x", ...at.model([{ say: answer }])], at);
  expect(piped.stdout).toBe(`${answer}\n`);
});

const create = { call: { name: "create", arguments: { path: "a.txt", file_text: "one\ntwo\n" } } };

it('a prompt on a terminal asks, stores the answer "always", and ends with the changes and the model', async () => {
  await using at = await desk();
  const yes = await at.type(["-p", "x", ...at.model([create, { say: "made" }])], { answers: [["Allow?", "p"]] });
  expect(yes).toMatchObject({ code: 0, screen: expect.stringContaining("+two") });
  expect(yes.screen).toContain("1 file +2 −0 (a.txt) · troupe diff · troupe undo");
  expect(yes.screen).toMatch(/model faux, session [0-9a-f-]{36}/);
  expect(readFileSync(join(at.cwd, "a.txt"), "utf8")).toBe("one\ntwo\n");
  const other = { call: { name: "create", arguments: { path: "b.txt", file_text: "b\n" } } };
  const again = await at.type(["-p", "x", ...at.model([other, { say: "made" }])]);
  expect(again.screen).not.toContain("Allow?");
  expect(existsSync(join(at.cwd, "b.txt"))).toBe(true);
});

it("a prompt on a terminal denies the call after no, and tells the model the reason", async () => {
  await using at = await desk();
  const no = await at.type(["-p", "x", ...at.model([create, { say: "left alone" }])], {
    answers: [["Allow?", "n not now"]],
  });
  expect(no).toMatchObject({ code: 0, screen: expect.stringContaining("left alone") });
  expect(existsSync(join(at.cwd, "a.txt"))).toBe(false);
});
