/** Draws docs/pictures/terminal.svg from a real session. `npx vitest run test/terminal/picture.test.ts -u` renews it. */
import { mkdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Terminal } from "@xterm/headless";
import { expect, it } from "vitest";
import { calls, forAgent, says, stalls, together } from "../../src/testing/index.ts";
import { pictureOf } from "./picture.ts";
import { READY, terminalStage } from "./stage.ts";

const COLUMNS = 96;
const ROWS = 36;

const before = "export function isLeap(year: number): boolean {\n  return year % 4 === 0;\n}\n";
const starts = (name: string, type: string, description: string) =>
  calls(["task", { agent_type: type, name, description, prompt: description, mode: "background" }]);
/** Agents are told apart by their prompts. */
const isAsked = (prompt: string) => (request: { readonly messages: readonly { readonly role: string }[] }) =>
  JSON.stringify(request.messages.find(({ role }) => role === "user")).includes(prompt);
const made =
  'import { expect, it } from "vitest";\nimport { isLeap } from "../src/calendar.ts";\n\nit.each([\n  [1900, false],\n  [2000, true],\n])("%i: %s", (year, leap) => expect(isLeap(year)).toBe(leap));\n';

// A path that is cut or wrapped would make another picture.
const isLong = tmpdir().length > 30;

it.skipIf(isLong)("the picture of the README is drawn from a real session", async () => {
  const steps = [
    together(says("I look at the function first."), calls(["view", { path: "src/calendar.ts" }])),
    together(
      says("Centuries are missing: **1900** is not a leap year, `2000` is."),
      calls([
        "edit",
        {
          path: "src/calendar.ts",
          old_str: "  return year % 4 === 0;",
          new_str: "  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);",
        },
      ]),
    ),
    together(
      says("Two agents go on in the background."),
      starts("tests", "general-purpose", "write tests for centuries"),
      starts("callers", "explore", "look for callers that work around it"),
    ),
    forAgent(isAsked("look for callers"), calls(["grep", { pattern: "isLeap" }]), stalls()),
    forAgent(isAsked("write tests for"), calls(["create", { path: "test/leap.ts", file_text: made }])),
    says("Fixed in `src/calendar.ts`. **tests** writes the missing cases, **callers** looks for workarounds."),
  ];
  await using stage = await terminalStage({ steps, columns: COLUMNS, rows: ROWS });
  await mkdir(join(stage.cwd, "src"));
  await writeFile(join(stage.cwd, "src/calendar.ts"), before);
  await stage.shows(READY);
  stage.send("The calendar says that 1900 was a leap year. Fix it.\r");
  await stage.shows(/^▌ y once/m);
  stage.send("y");
  await stage.shows("looks for workarounds.");
  await stage.shows("▌ Permission · tests");
  await stage.shows(/^▌ y once/m);
  await stage.shows("callers (Explore");
  await expect.poll(() => stage.screenText()).not.toContain("Esc interrupts");
  const screen = new Terminal({ cols: COLUMNS, rows: ROWS, allowProposedApi: true, scrollback: 5_000 });
  const bytes = stage.writes.join("").replaceAll(stage.cwd, "~/calendar").replaceAll("scripted", "your-model");
  await new Promise<void>((resolve) => screen.write(bytes, resolve));
  // Times and counts depend on the machine.
  const tidy = (text: string): string =>
    text
      .replaceAll(/\b\d+ s\b/g, "4 s")
      .replaceAll(/\b[\d.]+k tok/g, "5.1k tok")
      .replaceAll(/\d+% of/g, "5% of");
  const svg = pictureOf(screen, { title: "troupe", tidy });
  await expect(svg).toMatchFileSnapshot("../../docs/pictures/terminal.svg");
});
