/** The user's settings `stream`, `logLevel` and `askUser`, through the built program. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { onTerminal } from "../support/terminal.ts";
import { script, troupe } from "../support/troupe.ts";

const settings = { stream: true, logLevel: "debug", askUser: false };

async function desk() {
  const folder = await tempFolder();
  const [home, cwd] = [folder.at("home"), folder.at("project")];
  for (const path of [home, join(cwd, ".troupe")]) mkdirSync(path, { recursive: true, mode: 0o700 });
  return {
    ...{ home, cwd },
    model: (steps: readonly object[]) => script(folder.path, steps),
    user: (value: object) => writeFileSync(join(home, "settings.json"), JSON.stringify(value)),
    project: (value: object) => writeFileSync(join(cwd, ".troupe", "settings.json"), JSON.stringify(value)),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

it("the user's settings switch on deltas and debug lines; flags win, and a project's file has no effect", async () => {
  await using at = await desk();
  const shown = async (...flags: string[]) => {
    const model = at.model([{ say: "one two three" }]);
    const { code, stdout, stderr } = await troupe(["-p", "x", "--json", "--model", model, ...flags], at);
    expect(code, stderr).toBe(0);
    return {
      deltas: stdout.includes('"assistant.message_delta"'),
      debug: stderr.includes("troupe: assistant.turn_end"),
      ignored: ["stream", "logLevel", "askUser"].filter((name) => stderr.includes(`${name} is ignored`)),
    };
  };
  at.user(settings);
  expect(await shown()).toEqual({ deltas: true, debug: true, ignored: [] });
  const flags = ["--stream", "off", "--log-level", "warning"];
  expect(await shown(...flags)).toEqual({ deltas: false, debug: false, ignored: [] });
  at.user({});
  at.project(settings);
  const ignored = Object.keys(settings);
  expect(await shown("--trust-folder")).toEqual({ deltas: false, debug: false, ignored });
});

it("the model can ask in the terminal, but not with askUser false", async () => {
  await using at = await desk();
  const ask = { call: { name: "ask_user", arguments: { question: "Which colour?", choices: ["Red", "Blue"] } } };
  const screenOf = async (answers: readonly (readonly [string, string])[]) => {
    const model = at.model([ask, { say: "The end." }]);
    const { screen } = await onTerminal(["--plain", "--model", model], { ...at, answers });
    return screen;
  };
  at.user({});
  at.project({ askUser: false });
  const asked = await screenOf([
    ["ready: model", "go"],
    ["answer in words", "1"],
    ["troupe: The end.", "/exit"],
  ]);
  expect(asked).toContain("Red");
  at.user({ askUser: false });
  at.project({ askUser: true });
  const unasked = await screenOf([
    ["ready: model", "go"],
    ["troupe: The end.", "/exit"],
  ]);
  expect(unasked).not.toContain("Blue");
});
