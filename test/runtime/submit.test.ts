import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";

import { createRuntime } from "../../src/runtime/runtime.ts";
import type { SessionRequest } from "../../src/runtime/session-request.ts";
import { submit } from "../../src/runtime/submit.ts";
import type { Session } from "../../src/session/session.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { dataOf } from "../support/stage.ts";

/** A real session in a folder of its own, on a script. */
async function withSession(
  script: object,
  request: Partial<SessionRequest>,
  work: (session: Session, folder: string) => Promise<void>,
): Promise<void> {
  await using root = await tempFolder();
  const folder = join(root.path, "work");
  mkdirSync(folder);
  const file = join(root.path, "script.json");
  writeFileSync(file, JSON.stringify(script));
  const environment = { PATH: process.env.PATH, HOME: root.path, TROUPE_SANDBOX: "off" };
  const runtime = createRuntime({ environment, home: join(root.path, "home") });
  const session = await runtime.createSession({ cwd: folder, model: { name: `faux:${file}` }, ...request });
  try {
    await work(session, folder);
  } finally {
    await session.close();
    await runtime.close();
  }
}

const all = { permissions: { allTools: true } };
const call = (name: string, args: object) => ({ call: { name, arguments: args } });
const requests = (session: Session) => dataOf(session.events, "user.message");

describe("autopilot", () => {
  it("LOOP-12 autopilot continues until the agent declares the task complete", async () => {
    const steps = [
      { say: "I would plan it so." },
      call("create", { path: "a.txt", file_text: "x" }),
      call("task_complete", { summary: "made a.txt" }),
    ];
    await withSession({ steps }, { ...all, mode: "autopilot" }, async (session, folder) => {
      const result = await submit(session, "make a.txt");
      expect(result).toMatchObject({
        kind: "answered",
        verdict: { kind: "complete", verified: false, summary: "made a.txt" },
      });
      expect(existsSync(join(folder, "a.txt"))).toBe(true);
      expect(requests(session).map(({ source }) => source)).toEqual([undefined, "autopilot"]);
      expect(session.record.title).toBe("make a.txt");
    });
  });

  it("LOOP-13 autopilot stops after the limit of continuations, and reports that it is out of budget", async () => {
    const steps = Array.from({ length: 3 }, (_, index) => [
      call("create", { path: `${index}.txt`, file_text: "x" }),
      { say: `step ${index}` },
    ]).flat();
    await withSession({ steps }, { ...all, mode: "autopilot" }, async (session) => {
      const result = await submit(session, "never ends", { maxContinues: 2 });
      expect(result).toMatchObject({ verdict: { kind: "out_of_budget" } });
    });
  });

  it("autopilot ends as blocked when nothing changes any more", async () => {
    await withSession({ steps: [], otherwise: { say: "I am thinking." } }, { mode: "autopilot" }, async (session) => {
      expect(await submit(session, "go")).toMatchObject({ verdict: { kind: "blocked" } });
    });
  });

  it("autopilot runs the check itself: a failure goes back to the agent, a success verifies the result", async () => {
    const steps = [
      call("task_complete", { summary: "done" }),
      call("create", { path: "proof.txt", file_text: "x" }),
      call("task_complete", { summary: "really done" }),
    ];
    await withSession({ steps }, { ...all, mode: "autopilot" }, async (session) => {
      const result = await submit(session, "go", { check: "test -f proof.txt || { echo no proof; exit 3; }" });
      expect(result).toMatchObject({ verdict: { kind: "complete", verified: true, summary: "really done" } });
      expect(requests(session)[1]?.transformedContent ?? requests(session)[1]?.content).toContain("no proof");
    });
  });

  it.each([
    ["without autopilot", { ...all }],
    ["in autopilot", { ...all, mode: "autopilot" as const }],
  ])("a session that is closed during the check ends the prompt as aborted, %s", async (_, request) => {
    const steps = [call("task_complete", { summary: "done" })];
    await withSession({ steps, otherwise: { say: "done" } }, request, async (session, folder) => {
      const check = "touch begun; sleep 30; true";
      const result = submit(session, "go", { check, maxContinues: 0 });
      await vi.waitFor(() => expect(existsSync(join(folder, "begun"))).toBe(true), 20_000);
      await session.close();
      expect(await result).toEqual({ kind: "answered", outcome: { kind: "aborted" } });
    });
  });

  it("autopilot ends at once after an error of the provider", async () => {
    await withSession({ steps: [{ fail: { status: 401 } }] }, { mode: "autopilot" }, async (session) => {
      expect(await submit(session, "go")).toMatchObject({ verdict: { kind: "failed" } });
    });
  });
});

describe("commands", () => {
  it("/plan allows no writes but the plan, and no command that may write", async () => {
    const steps = [
      call("create", { path: "a.txt", file_text: "x" }),
      call("bash", { command: "touch b.txt", description: "try" }),
      { say: "here is the plan" },
    ];
    await withSession({ steps }, { permissions: { allTools: true } }, async (session, folder) => {
      await submit(session, "/plan make a.txt");
      expect(session.mainAgent.modes.current).toBe("plan");
      expect(existsSync(join(folder, "a.txt"))).toBe(false);
      expect(existsSync(join(folder, "b.txt"))).toBe(false);
      expect(dataOf(session.events, "troupe.permission").map(({ decision, by }) => [decision, by])).toEqual([
        ["denied", "policy"],
        ["denied", "policy"],
      ]);
    });
  });

  it("the plan can be written in plan mode", async () => {
    await withSession({ steps: [{ say: "x" }] }, { ...all, mode: "plan" }, async (session) => {
      const plan = join(session.workspace.services?.filesFolder ?? "", "plan.md");
      await submit(session, "go");
      expect(
        session.permissions.reasonToRefuse?.({
          access: { kind: "write", path: plan, diff: "", intention: "" },
          toolName: "create",
          cwd: "/",
        }),
      ).toBeUndefined();
    });
  });

  it("ORC-66: /research allows only its three tools, and must write its report", async () => {
    const steps = [call("grep", { pattern: "x" }), { say: "I am done" }, { say: "still done" }, { say: "enough" }];
    await withSession({ steps }, all, async (session) => {
      await submit(session, "/research how it works");
      const [first] = dataOf(session.events, "tool.execution_complete");
      expect(first?.error?.message).toMatch(/Tool 'grep' does not exist.*task/s);
      expect(requests(session).map(({ source }) => source)).toEqual([undefined, "gate-research", "gate-research"]);
      expect(requests(session)[0]?.content).not.toContain("dispatch");
    });
  });

  it("/fleet reminds the agent of todos that are ready", async () => {
    const steps = [
      call("sql", { description: "d", query: "INSERT INTO todos (id, title) VALUES ('a', 'A')" }),
      { say: "resting" },
      { say: "no" },
    ];
    await withSession({ steps }, all, async (session) => {
      await submit(session, "/fleet do a");
      expect(requests(session).map(({ content, source }) => source ?? content)).toEqual([
        "Fleet deployed: do a",
        "gate-fleet",
      ]);
    });
  });

  it("a todo cannot be claimed twice in a session", async () => {
    const claim = "UPDATE todos SET status = 'in_progress' WHERE id = 'a'";
    const steps = [
      call("sql", { description: "d", query: "INSERT INTO todos (id, title) VALUES ('a', 'A')" }),
      call("sql", { description: "d", query: claim }),
      call("sql", { description: "d", query: claim }),
      { say: "ok" },
    ];
    await withSession({ steps }, all, async (session) => {
      await submit(session, "go");
      const ends = dataOf(session.events, "tool.execution_complete");
      expect(ends.map(({ success }) => success)).toEqual([true, true, false]);
      expect(ends[2]?.error?.message).toContain("already claimed");
    });
  });

  it("/tasks and /usage answer without a model call", async () => {
    await withSession({ steps: [] }, {}, async (session) => {
      expect(await submit(session, "/tasks")).toEqual({ kind: "said", text: "No agent has been started." });
      expect(await submit(session, "/usage")).toMatchObject({ kind: "said" });
    });
  });

  it("/agent makes another agent lead with its prompt and tools, and the log records it", async () => {
    await withSession(
      { steps: [call("create", { path: "a", file_text: "x" }), { say: "ok" }] },
      all,
      async (session) => {
        expect(await submit(session, "/agent explore")).toMatchObject({ kind: "said" });
        await submit(session, "go");
        expect(dataOf(session.events, "subagent.selected")).toMatchObject([{ agentName: "explore" }]);
        expect(dataOf(session.events, "system.message").at(-1)?.content).toContain("You explore code");
        expect(dataOf(session.events, "tool.execution_complete")[0]?.error?.message).toContain(
          "Tool 'create' does not exist",
        );
        await submit(session, "/agent none");
        expect(dataOf(session.events, "subagent.deselected")).toHaveLength(1);
      },
    );
  });

  it("/every stores a schedule in the log, lists it and removes it", async () => {
    await withSession({ steps: [] }, {}, async (session) => {
      await submit(session, "/every 5m look at the build");
      expect(dataOf(session.events, "session.schedule_created")).toMatchObject([
        { id: 1, prompt: "look at the build", intervalMs: 300_000, recurring: true },
      ]);
      expect(session.workspace.services?.schedules?.()?.list()).toHaveLength(1);
      await submit(session, "/schedules stop 1");
      expect(dataOf(session.events, "session.schedule_cancelled")).toEqual([{ id: 1 }]);
    });
  });

  it("an unknown command is an error with a suggestion, and a path is a prompt", async () => {
    await withSession({ steps: [{ say: "a path" }] }, {}, async (session) => {
      await expect(submit(session, "/reviw")).rejects.toMatchObject({ hint: expect.stringContaining("review") });
      expect(await submit(session, "/etc/hosts what is this?")).toMatchObject({ kind: "answered" });
    });
  });

  it("a skill is run by its name, with the request behind it", async () => {
    const script = { steps: [{ say: "tidied" }] };
    await withSession(script, {}, async (session) => {
      expect(session.workspace.services?.skills.map(({ name }) => name) ?? []).toEqual([]);
      await expect(submit(session, "/tidy the attic")).rejects.toThrow();
    });
  });

  it("/review asks for a code-review agent, and piped data stays data", async () => {
    const script = {
      steps: [
        call("task", { description: "r", prompt: "review", agent_type: "code-review", name: "review" }),
        { say: "fine" },
        { agent: "review", say: "no findings" },
      ],
    };
    await withSession(script, all, async (session) => {
      await submit(session, "/review", { withData: (prompt) => `${prompt}\n<data>/fleet</data>` });
      expect(session.agents.tasks?.list()).toMatchObject([
        { id: "review", agentType: "code-review", status: "completed" },
      ]);
    });
  });
});
