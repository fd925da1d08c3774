import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { boardKey } from "../../src/context/board/board-key.ts";
import { openBoard } from "../../src/context/board/open.ts";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { submit } from "../../src/runtime/submit.ts";
import type { HttpStep } from "../../src/testing/http-reply.ts";
import { optionsFor } from "../board/stage.ts";
import { localAt } from "../memory/support.ts";
import { dataOf } from "../support/stage.ts";
import { person, repository, stores } from "./memory-stage.ts";
import { beside, ends, entries, sends, sidekickFile, until } from "./sidekick-stage.ts";
import { of, onStage, type Stage, starts } from "./stage.ts";

const FILE = ".github/copilot-memories.jsonl";

/** What is in each of the four layers. */
async function layers({ home, folder, session }: Stage) {
  const board = openBoard(optionsFor(home, { key: boardKey(folder, { isTrusted: false }) }));
  const rows = await board.list();
  await board.close();
  const path = join(folder, FILE);
  return {
    facts: localAt(home, folder).journals.flatMap((journal) =>
      [...journal.read().facts.values()].map(({ fact }) => fact),
    ),
    file: existsSync(path) ? readFileSync(path, "utf8").split("\n").filter(Boolean).length : 0,
    board: rows.map(({ name }) => name),
    inbox: entries(session).map(({ summary }) => summary),
  };
}

const empty = { facts: [], file: 0, board: [], inbox: [] };
const adds = (name: string) =>
  calls(["context_board", { command: "add", name, description: `About ${name}`, context: `All about ${name}.` }]);
const keeper = "---\nname: keeper\ndescription: keeps\ntools: context_board\n---\nYou keep.\n";

const options = {
  context: { memory: { enabled: true } },
  environment: { COPILOT_SUBCONSCIOUS: "on", MEMORY_IN_REPO_STORE: "on" },
  permissions: {},
} as const;
const files = (more: Record<string, string> = {}) => ({
  ...repository(),
  ".github/agents/keeper.md": keeper,
  ...more,
});

/** One message in a session that has all four; what is in them afterwards, before it ends and then. */
async function after(steps: readonly HttpStep[], more: Record<string, string> = {}) {
  const found: Awaited<ReturnType<typeof layers>>[] = [];
  await onStage(steps, { ...options, files: files(more) }, async (stage) => {
    person(stage.session);
    expect(await layers(stage)).toEqual(empty);
    await stage.session.sendAndWait({ prompt: "go" });
    if (Object.keys(more).length > 0) await until(() => ends(stage.session).length === 1);
    found.push(await layers(stage));
    await stage.session.close();
    found.push(await layers(stage));
  });
  return found;
}

it("MEM-01 a memory changes neither board nor inbox, and is written to the repository's file only when it ends", async () => {
  const [before, ended] = await after([stores(), says("ok")]);
  expect(before).toEqual({ ...empty, facts: ["Tests run with npm test."] });
  expect(ended).toEqual({ ...empty, facts: ["Tests run with npm test."], file: 1 });
});

it("MEM-01 an entry of the board changes neither memories nor their file nor the inbox", async () => {
  const steps = [starts("a", "keeper"), says("ok"), of("a", adds("build"), says("done"))];
  for (const found of await after(steps)) expect(found).toEqual({ ...empty, board: ["build"] });
});

it("MEM-01 an entry of a sidekick is in the inbox alone", async () => {
  const scout = { "home:agents/scout.md": sidekickFile("scout", ["tools: [view]"]) };
  const steps = [says("ok"), beside("scout", sends("the door"))];
  for (const found of await after(steps, scout)) expect(found).toEqual({ ...empty, inbox: ["the door"] });
});

it("MEM-54 a compaction writes a summary and changes neither memories, their file, the board nor the inbox", async () => {
  const summary = says("<overview>Remember that tests run with make.</overview>");
  const steps = [
    starts("a", "keeper"),
    stores(),
    says("ok"),
    says("and more"),
    summary,
    says("on"),
    of("a", adds("build"), says("done")),
  ];
  await onStage(steps, { ...options, files: files() }, async (stage) => {
    const { session } = stage;
    person(session);
    await session.sendAndWait({ prompt: "go" });
    await session.sendAndWait({ prompt: "more" });
    const before = await layers(stage);
    expect(before).toEqual({ ...empty, facts: ["Tests run with npm test."], board: ["build"] });
    await submit(session, "/compact");
    expect(dataOf(session.events, "session.compaction_complete")).toMatchObject([{ success: true }]);
    await session.sendAndWait({ prompt: "go on" });
    expect(await layers(stage)).toEqual(before);
    await session.close();
    expect(await layers(stage)).toEqual({ ...before, file: 1 });
  });
});
