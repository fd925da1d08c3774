import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { shared } from "../support/second-look.ts";
import { checkTasks, type TaskRule } from "../support/task-checker.ts";
import { buildProgram, type Defect, runProgram } from "./agent-pool-build.ts";
import { agentPoolStore } from "./agent-pool-stage.ts";

let folder: Awaited<ReturnType<typeof tempFolder>>;
let sound: string;

shared(
  async () => {
    folder = await tempFolder();
    sound = join(folder.path, "sound.mjs");
    await buildProgram(ENTRY, sound);
  },
  () => folder[Symbol.asyncDispose](),
);

const ENTRY = "test/reliability/agent-pool-program.ts";

type Life = readonly [mode: "create" | "stop" | "settle", lastEvent: string];

/** Each is a mistake of one line. What the process left behind must give it away. */
const defects: readonly (Defect & { name: string; rule: TaskRule; lives: readonly Life[] })[] = [
  {
    name: "an agent of a dead process counts as running",
    rule: "one-end",
    file: /tasks\/registry\.ts$/,
    from: "!isIdleOrEnded(status) || isCalled",
    to: "false",
    lives: [
      ["create", "30"],
      ["settle", "0"],
    ],
  },
  {
    name: "a delivered notice is delivered again by the next process",
    rule: "heard-once",
    file: /tasks\/task-fold\.ts$/,
    from: 'record.notice = { ...record.notice, state: "emitted", by: "notice" };',
    to: "",
    lives: [
      ["create", "system.notification"],
      ["settle", "0"],
    ],
  },
  {
    name: "a pending notice for a parent is lost with the process",
    rule: "heard-once",
    file: /tasks\/notifications\.ts$/,
    from: "this.suppressWake(task);",
    to: "continue;",
    lives: [
      ["create", "troupe.task_state idle"],
      ["settle", "0"],
    ],
  },
  {
    name: "the agents below a stopped agent are not stopped",
    rule: "no-remains",
    file: /tasks\/stopping\.ts$/,
    from: "roots.flatMap((root) => subtree(fold, root))",
    to: "[...roots]",
    lives: [["stop", "0"]],
  },
];

/** Which rules are broken in what a program leaves behind after these lives. */
async function rulesBroken(program: string, root: string, lives: readonly Life[]): Promise<readonly TaskRule[]> {
  mkdirSync(root);
  for (const life of lives) await runProgram(program, [root, ...life]);
  const { events } = await agentPoolStore(root).read("one");
  return checkTasks(events, { settled: true }).map(({ rule }) => rule);
}

describe("the checker applied to the log of a program with a defect", () => {
  it.each(defects)("the checker of a log with a defect finds that $name", async ({ name, rule, lives, ...defect }) => {
    const seeded = join(folder.path, "seeded.mjs");
    await buildProgram(ENTRY, seeded, defect);
    const [whole, broken] = await Promise.all([
      rulesBroken(sound, join(folder.path, `${name} sound`), lives),
      rulesBroken(seeded, join(folder.path, `${name} seeded`), lives),
    ]);
    expect(whole).toEqual([]);
    expect(broken).toContain(rule);
  });
});
