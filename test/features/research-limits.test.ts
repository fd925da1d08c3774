import { cpSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { researchLimits } from "../../src/commands/delegation/research-limits.ts";
import { calls, says, stalls } from "../../src/model/faux/faux-step.ts";
import type { ModelRequest } from "../../src/model/provider.ts";
import type { Emit } from "../../src/protocol/event.ts";
import { createRuntime } from "../../src/runtime/runtime.ts";
import { sendTyped, submit } from "../../src/runtime/submit.ts";
import { LimitedTools } from "../../src/session/turn/limited-tools.ts";
import { LOCK_FILE } from "../../src/store/lock-holder.ts";
import { noticeOf } from "../../src/tasks/notices.ts";
import type { TaskRecord } from "../../src/tasks/task-record.ts";
import { dataOf } from "../support/stage.ts";
import { of, onStage, resultsOf, starts, texts, toolNames } from "./stage.ts";

const reportOf = (request: ModelRequest): string => /\/\S+research-\S+?\.md/.exec(texts(request)[0] ?? "")?.[0] ?? "";
/** The gate asks twice for more agents; these tests are about single calls. */
const enough = [says("That is all."), says("That is all."), says("That is all.")];

describe("the agent that leads research", () => {
  it.each([
    ["another agent", { agent_type: "explore" }, /"explore" was not started\. Call task with agent_type "research"/],
    ["an agent in the background", { agent_type: "research", mode: "background" }, /not started in the background/],
  ])("ORC-92 ORC-66 the agent that leads research cannot start %s", async (_, given, why) => {
    const steps = [
      calls(["task", { description: "x", prompt: "@x look", name: "x", ...given }]),
      ...enough,
      of("x", says("fact")),
    ];
    await onStage(steps, {}, async ({ session, requests }) => {
      await submit(session, "/research leases");
      expect(resultsOf(session.events, "task")).toEqual([expect.stringMatching(why)]);
      expect(dataOf(session.events, "troupe.task_created")).toEqual([]);
      expect(requests("x")).toEqual([]);
    });
  });

  it("ORC-92 ORC-68 the agent that leads research keeps its limits and its gate after its process was killed", async () => {
    const steps = [
      stalls(),
      calls(["task", { description: "x", prompt: "@x look", name: "x", agent_type: "explore" }]),
      ...enough,
    ];
    await onStage(steps, {}, async ({ session, requests, home, folder }) => {
      const first = session.send({ prompt: "wait for me" });
      await first;
      await expect.poll(() => requests("main").length).toBe(1);
      await sendTyped(session, { text: "/research leases" });
      const copy = `${home}-after`;
      cpSync(home, copy, { recursive: true });
      rmSync(join(copy, "session-state", session.id, LOCK_FILE));
      session.abort();
      await session.close();
      const runtime = createRuntime({ environment: { PATH: process.env.PATH, TROUPE_SANDBOX: "off" }, home: copy });
      const permissions = { allTools: true };
      const again = await runtime.resumeSession(session.id, {
        cwd: folder,
        model: { name: "alpha/large" },
        permissions,
      });
      await again.sendAndWait({ prompt: "", displayPrompt: "", source: "system" }).catch(() => undefined);
      await again.queue.whenIdle();
      const research = requests("main").filter((request) => texts(request).some((text) => text.includes("leases")));
      expect(research.length).toBeGreaterThan(0);
      for (const request of research.slice(0, 1)) expect(toolNames(request)).toEqual(["view", "create", "task"]);
      expect(resultsOf(again.events, "task")).toEqual([expect.stringMatching(/"explore" was not started/)]);
      expect(
        dataOf(again.events, "user.message").filter(({ source }) => source === "gate-research").length,
      ).toBeGreaterThan(0);
      await again.close();
      await runtime.close();
    });
  });

  it("ORC-92 the agent that leads research starts research agents and waits for them, with or without sync", async () => {
    const steps = [
      starts("a", "research"),
      starts("b", "Research", { mode: "sync" }),
      ...enough,
      of("a", says("fact a")),
      of("b", says("fact b")),
    ];
    await onStage(steps, {}, async ({ session }) => {
      await submit(session, "/research leases");
      expect(resultsOf(session.events, "task")).toEqual([
        expect.stringContaining("fact a"),
        expect.stringContaining("fact b"),
      ]);
    });
  });

  it("ORC-92 ORC-66 the agent that leads research views only the file of a long answer, and sees only its own tools", async () => {
    const long = "The lease ends. ".repeat(2_000);
    const saved = (request: ModelRequest): string => /Saved to: (\S+)/.exec(texts(request).join("\n"))?.[1] ?? "";
    const steps = [
      calls(["view", { path: "a.ts" }]),
      starts("a", "research"),
      (request: ModelRequest) => calls(["view", { path: saved(request), view_range: [1, 1] }]),
      calls(["view", { path: "copilot-tool-output-task.txt" }]),
      ...enough,
      of("a", says(long)),
    ];
    const files = { "a.ts": "const secret = 1;", "copilot-tool-output-task.txt": "not an answer" };
    await onStage(steps, { files }, async ({ session }) => {
      await submit(session, "/research leases");
      const refused = expect.stringMatching(/^In research, view opens only a file that a result of task names/);
      expect(resultsOf(session.events, "view")).toEqual([refused, expect.stringContaining("The lease ends."), refused]);
      const [answer] = resultsOf(session.events, "task");
      expect(answer).toContain("Read parts of it with view and a view_range (1 line).");
      expect(answer).not.toContain("grep");
    });
  });

  it("ORC-92 the agent that leads research creates the report and no other file, and edits nothing", async () => {
    const steps = [
      calls(["create", { path: "notes.md", file_text: "x" }]),
      calls(["edit", { path: "a.ts", old_str: "x", new_str: "y" }]),
      (request: ModelRequest) => calls(["create", { path: reportOf(request), file_text: "# Leases" }]),
      (request: ModelRequest) => calls(["create", { path: reportOf(request), file_text: "# Leases, again" }]),
      ...enough,
    ];
    await onStage(steps, { files: { "a.ts": "x" } }, async ({ session, folder, first }) => {
      await submit(session, "/research leases");
      expect(resultsOf(session.events, "create")).toEqual([
        expect.stringContaining(`In research, create writes only the report. Its path is ${reportOf(first("main"))}`),
        expect.stringContaining("Created file"),
        expect.stringContaining("Created file"),
      ]);
      expect(resultsOf(session.events, "edit")).toEqual([expect.stringMatching(/Tool 'edit' does not exist/)]);
      expect(existsSync(join(folder, "notes.md"))).toBe(false);
    });
  });

  it("ORC-92 the agent that leads research is not advised to call read_agent when an older agent ends", async () => {
    const said: string[] = [];
    const emit: Emit = async (_, data) => void said.push((data as { content: string }).content);
    const task = { id: "old", status: "completed", spec: { agentName: "explore", description: "looks" } };
    const { content, kind } = noticeOf(task as unknown as TaskRecord);
    expect(content).toContain("read_agent");
    const limits = new LimitedTools(researchLimits("/r.md"), "/");
    await limits.withoutAdvice(emit)("system.notification", { content, kind });
    expect(said).toEqual([
      expect.stringMatching(/Agent "old"[^\n]*Its results cannot be read while this message is answered\.\n<\//),
    ]);
    expect(said[0]).not.toContain("read_agent");
  });

  it("ORC-68 the agent that leads research must continue after a dispatch was moved to the background", async () => {
    const { researchFacts } = await import("../../src/commands/delegation/research-gate.ts");
    const steps = [starts("a", "research"), ...enough, of("a", says("fact"))];
    await onStage(steps, {}, async ({ session }) => {
      await submit(session, "/research leases");
      expect(researchFacts(session.events, "/r.md").dispatches).toBe(1);
      const moved = session.events.map((event) =>
        event.type === "tool.execution_complete"
          ? { ...event, data: { ...event.data, result: { content: "Agent started in background with agent_id: a." } } }
          : event,
      );
      expect(researchFacts(moved, "/r.md").dispatches).toBe(0);
    });
  });
});
