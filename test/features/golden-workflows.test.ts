import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { describe, expect, it } from "vitest";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import type { ModelRequest } from "../../src/model/provider.ts";
import { submit } from "../../src/runtime/submit.ts";
import { story } from "../../src/testing/story.ts";
import { dataOf } from "../support/stage.ts";
import { beginning, golden, of, onStage, resultsOf, starts, texts, toolNames, turn } from "./stage.ts";

const asked = ["troupe.permission"];
const by = (agent: string, lines: readonly string[]): string[] => lines.map((line) => `${agent} ${line}`);

/** The rules of a command are in the log before its message. */
const commanded = beginning.toSpliced(1, 0, "troupe.message_queued");

describe("golden: /review", () => {
  it("ORC-61 golden: /review leads to one code-review agent, whose findings the main agent reports", async () => {
    const steps = [
      starts("review", "code-review"),
      says("One defect."),
      of("review", calls(["view", { path: "a.ts" }]), says("a.ts:1 is wrong")),
    ];
    await onStage(steps, { files: { "a.ts": "x" } }, async ({ session, first }) => {
      expect(await submit(session, "/review a.ts")).toMatchObject({ outcome: { answer: "One defect." } });
      expect(texts(first("main"))[0]).toMatch(/`?task`?[\s\S]*code-review[\s\S]*a\.ts/);
      expect(dataOf(session.events, "user.message")[0]?.content).toBe("Review: a.ts");
      expect(story(session.events)).toEqual([
        ...by("root", beginning),
        ...by("root", turn([]).slice(0, 3)),
        ...by("root", ["tool.execution_start", "troupe.permission", "troupe.task_created", "troupe.task_state"]),
        ...by("review", ["subagent.selected", "subagent.started", "user.message", ...turn([[]]), ...turn()]),
        "root troupe.task_state",
        ...by("review", ["subagent.completed", "subagent.deselected"]),
        ...by("root", ["troupe.task_notice_delivered", "tool.execution_complete"]),
        "root assistant.turn_end",
        ...by("root", turn()),
        "root session.usage_checkpoint",
      ]);
    });
  });
});

describe("golden: /research", () => {
  it("ORC-62 ORC-66 ORC-67 ORC-68 golden: /research starts agents in parallel, asks for more, and saves a report", async () => {
    const [early, late] = [
      ["a", "b", "c"],
      ["d", "e", "f"],
    ];
    const send = (names: readonly string[] = []) =>
      calls(
        ...names.map(
          (name) => ["task", { description: name, prompt: `@${name} find out`, agent_type: "research", name }] as const,
        ),
      );
    const report = (request: ModelRequest): string => /\/\S+research-\S+?\.md/.exec(texts(request)[0] ?? "")?.[0] ?? "";
    const steps = [
      send(early),
      says("That is all."),
      send(late),
      (request: ModelRequest) => calls(["create", { path: report(request), file_text: "# Leases" }]),
      calls(["grep", { pattern: "lease" }]),
      says("The report is written."),
      ...[...(early ?? []), ...(late ?? [])].map((name) => of(name, says(`fact ${name}`))),
    ];
    await onStage(steps, {}, async ({ session, first }) => {
      expect(await submit(session, "/research how leases expire")).toMatchObject({
        outcome: { answer: "The report is written." },
      });
      expect(texts(first("main"))[0]).toMatch(/3 to 5[\s\S]*6 to 10/);
      expect(toolNames(first("main")).toSorted()).toEqual(["create", "task", "view"]);
      expect(resultsOf(session.events, "grep")[0]).toMatch(/Tool 'grep' does not exist/);
      expect(dirname(report(first("main")))).toBe(session.workspace.services?.filesFolder);
      expect(existsSync(report(first("main")))).toBe(true);
      const worker = [
        "subagent.selected",
        "subagent.started",
        "user.message",
        ...turn(),
        "subagent.completed",
        "subagent.deselected",
      ];
      const life = ["created", "state running", "state completed", "notice_delivered read"];
      expect(golden(session.events)).toEqual({
        agents: {
          root: [
            ...commanded,
            ...turn([asked, asked, asked]),
            ...turn(),
            "user.message",
            ...turn([asked, asked, asked]),
            ...turn([asked]),
            ...turn([[]]),
            ...turn(),
          ],
          ...Object.fromEntries(["a", "b", "c", "d", "e", "f"].map((name) => [name, worker])),
        },
        tasks: Object.fromEntries(["a", "b", "c", "d", "e", "f"].map((name) => [name, life])),
      });
      expect(
        dataOf(session.events, "user.message").flatMap(({ source, content }) =>
          source === "gate-research" ? content : [],
        ),
      ).toEqual([expect.stringContaining("3 of at least 6 dispatches")]);
    });
  });
});

describe("golden: /fleet", () => {
  const sql = (query: string) => calls(["sql", { description: "todos", query }]);
  const claim = (id: string) => sql(`UPDATE todos SET status = 'in_progress' WHERE id = '${id}' RETURNING id`);
  const finish = (id: string) => sql(`UPDATE todos SET status = 'done' WHERE id = '${id}'`);

  it("ORC-64 ORC-69 golden: /fleet divides the work into todos, assigns ready ones, and ends when none is left", async () => {
    const ready = (request: ModelRequest) =>
      sql(/SELECT id, title FROM todos[^;]*;/.exec(texts(request)[0] ?? "")?.[0] ?? "");
    const steps = [
      sql("INSERT INTO todos (id, title) VALUES ('a', 'A'), ('b', 'B'); INSERT INTO todo_deps VALUES ('b', 'a')"),
      ready,
      starts("worker-a", "general-purpose"),
      says("a is done."),
      ready,
      starts("worker-b", "general-purpose"),
      says("All is done and checked."),
      of("worker-a", claim("a"), finish("a"), says("done")),
      of("worker-b", claim("b"), finish("b"), says("done")),
    ];
    await onStage(steps, {}, async ({ session, heard }) => {
      expect(await submit(session, "/fleet build it")).toMatchObject({
        outcome: { kind: "done", answer: "All is done and checked." },
      });
      expect(dataOf(session.events, "user.message").map(({ content, source }) => source ?? content)).toEqual([
        "Fleet deployed: build it",
        "agent",
        "gate-fleet",
        "agent",
      ]);
      const shown = resultsOf(session.events, "sql").filter((text) => /title/.test(text));
      expect(shown.map((text) => /\bA\b/.test(text))).toEqual([true, false]);
      expect(shown.map((text) => /\bB\b/.test(text))).toEqual([false, true]);
      expect(heard.some(({ type }) => type === "session.todos_changed")).toBe(true);
      const worker = [
        "subagent.selected",
        "subagent.started",
        "user.message",
        ...turn([[]]),
        ...turn([[]]),
        ...turn(),
        "subagent.completed",
        "subagent.deselected",
      ];
      const life = ["created", "state running", "state completed", "notice_delivered read"];
      const round = [...turn([[]]), ...turn([asked]), ...turn()];
      expect(golden(session.events)).toEqual({
        agents: {
          root: [...commanded, ...turn([[]]), ...round, "user.message", ...round],
          "worker-a": worker,
          "worker-b": worker,
        },
        tasks: { "worker-a": life, "worker-b": life },
      });
    });
  });
});
