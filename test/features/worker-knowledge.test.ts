import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Json } from "../../src/lib/json.ts";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { accepted, localAt } from "../memory/support.ts";
import { repository } from "./memory-stage.ts";
import { of, onStage, resultsOf, type StageOptions, texts, toolNames } from "./stage.ts";

const submits = () => calls(["submit_result", { status: "completed", summary: "seen" }]);
const skill = "---\nname: tidy\ndescription: tidies\n---\nPut every thing in its place.";

interface Case {
  readonly group: string;
  readonly tool: string;
  readonly input?: Json;
  readonly answer: RegExp;
}

const groups: readonly Case[] = [
  { group: "memory_read", tool: "memory_read", answer: /"Tests run with npm test\."/ },
  { group: "plans_read", tool: "plan_read", answer: /^1\. repair the roof$/ },
  { group: "tasks_read", tool: "task_list", answer: /^\[pending\] roof: Repair it\. With slate$/ },
  { group: "rules_skills_read", tool: "skill", input: { skill: "tidy" }, answer: /Put every thing in its place/ },
];

const options: StageOptions = {
  context: { memory: { enabled: true } },
  files: { ...repository(), "home:skills/tidy/SKILL.md": skill },
};

describe("tool groups that read the session's knowledge", () => {
  it.each(groups)("BLX-38 $group gives a worker the tool $tool, and the tool works", async (row) => {
    const agents = [{ id: "w", role: "scout", task: "@w look", allowedToolGroups: [row.group] }];
    const todo = "INSERT INTO todos (id, title, description) VALUES ('roof', 'Repair it', 'With slate')";
    const steps = [
      calls(["sql", { query: todo, description: "plan" }]),
      calls(["subagents_run", { agents }]),
      says("ok"),
      of("w", calls([row.tool, row.input ?? {}]), submits()),
    ];
    await onStage(steps, options, async ({ session, folder, home, first, requests }) => {
      await localAt(home, folder).store(accepted("Tests run with npm test."));
      const files = join(home, "session-state", session.id, "files");
      mkdirSync(files, { recursive: true });
      writeFileSync(join(files, "plan.md"), "1. repair the roof");
      await session.sendAndWait({ prompt: "go" });
      expect(toolNames(first("w"))).toEqual([row.tool, "submit_result"]);
      const last = requests("w").at(-1);
      const read = [...resultsOf(session.events, row.tool), ...(last ? texts(last) : [])];
      expect(read.filter((text) => row.answer.test(text))).not.toEqual([]);
    });
  });

  it("BLX-38 a worker is told that there is nothing to read when memory is off and no plan or todo exists", async () => {
    const allowedToolGroups = ["memory", "plans", "tasks"];
    const agents = [{ id: "w", role: "scout", task: "@w look", allowedToolGroups }];
    const looks = calls(["memory_read", {}], ["plan_read", {}], ["task_list", {}]);
    const steps = [calls(["subagents_run", { agents }]), says("ok"), of("w", looks, submits())];
    await onStage(steps, {}, async ({ session }) => {
      await session.sendAndWait({ prompt: "go" });
      const answers = ["memory_read", "plan_read", "task_list"].flatMap((name) => resultsOf(session.events, name));
      expect(answers).toEqual([
        "No facts are stored, or memory is off in this session.",
        "This session has no plan.",
        "This session has no todos.",
      ]);
    });
  });

  it("BLX-38 a worker whose coordinator cannot read todos gets no list of todos", async () => {
    const agents = [{ id: "w", role: "review", task: "@w look", allowedToolGroups: ["tasks"] }];
    const steps = [calls(["subagents_run", { agents }]), says("ok"), of("w", submits())];
    const without: StageOptions = { tools: { choice: { excluded: ["sql", "update_todo"] } } };
    await onStage(steps, without, async ({ session, first }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(toolNames(first("w"))).toEqual(["submit_result"]);
    });
  });
});
