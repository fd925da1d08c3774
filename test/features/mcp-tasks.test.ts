import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { calls, says, stalls } from "../../src/model/faux/faux-step.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { of, onStage, resultsOf, starts } from "./stage.ts";

const server = fileURLToPath(new URL("./task-server.mjs", import.meta.url));
const making = fileURLToPath(new URL("../mcp/servers/made-tasks.mjs", import.meta.url));

describe("MCP tools that must run as tasks, in a whole session", () => {
  it("ORC-72 an MCP tool task shows status, text, totals and lost answers to the model and in lists", async () => {
    await using folder = await tempFolder();
    const mcpServers = { garden: { command: process.execPath, args: [server, join(folder.path, "log"), "plain"] } };
    const ids: string[] = [];
    const steps = [
      calls(["garden-dig", { how: "for ever" }]),
      async () => {
        await expect.poll(() => ids.length).toBeGreaterThan(2);
        return calls(["read_agent", { agent_id: "dig" }]);
      },
      calls(["stop_agent", { agent_id: "dig" }]),
      says("enough"),
    ];
    await onStage(steps, { workspace: { mcpServers } }, async ({ session }) => {
      const seen: object[] = [];
      session.subscribe(({ type }) => {
        const { mcpTask } = session.agents.tasks?.view("dig") ?? {};
        if (mcpTask?.progress !== undefined) ids.push(type);
        if (mcpTask) seen.push(mcpTask);
      });
      await session.sendAndWait({ prompt: "go" });
      const about = { taskId: "t", updatedAt: expect.any(Number) };
      expect(seen).toContainEqual({ ...about, status: "working", message: "3 of 7 metres" });
      expect(seen).toContainEqual({
        ...about,
        status: "working",
        message: expect.stringContaining("metres"),
        progress: expect.any(Number),
        total: 7,
      });
      expect(seen).toContainEqual(expect.objectContaining({ warning: "1 of its answers were lost" }));
      expect(resultsOf(session.events, "read_agent")[0]).toMatch(/server: working \d+\/7/);
    });
  });

  it("ORC-71 ORC-91 tasks of an MCP tool have numbered ids in the order of the calls of one reply", async () => {
    await using folder = await tempFolder();
    const mcpServers = { garden: { command: process.execPath, args: [server, join(folder.path, "log"), "plain"] } };
    const names = ["one", "two", "three"];
    const steps = [calls(...names.map((how) => ["garden-dig", { how }] as const)), says("digging"), says("dug")];
    await onStage(steps, { workspace: { mcpServers }, agents: { wakes: false } }, async ({ session }) => {
      await session.sendAndWait({ prompt: "go" });
      const records = session.agents.tasks?.list().map(({ id }) => [id, session.agents.tasks?.get(id)?.spec.prompt]);
      expect(records?.toSorted()).toEqual([
        ["dig", '{"how":"one"}'],
        ["dig-2", '{"how":"two"}'],
        ["dig-3", '{"how":"three"}'],
      ]);
    });
  });

  it("ORC-71 ORC-73 an MCP tool task is a background record with progress, and ends although an answer was lost", async () => {
    await using folder = await tempFolder();
    const mcpServers = { garden: { command: process.execPath, args: [server, join(folder.path, "log"), "plain"] } };
    const steps = [
      calls(["garden-dig", { how: "deep" }]),
      says("digging"),
      calls(["read_agent", { agent_id: "dig" }]),
      says("dug"),
    ];
    await onStage(steps, { workspace: { mcpServers } }, async ({ session }) => {
      const seen: object[] = [];
      session.subscribe(() => seen.push(session.agents.tasks?.view("dig") ?? {}));
      expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "dug" });
      expect(resultsOf(session.events, "garden-dig")[0]).toMatch(/started in background with agent_id: dig\./);
      expect(session.agents.tasks?.get("dig")).toMatchObject({
        status: "completed",
        mode: "background",
        spec: { kind: "mcp-task", prompt: '{"how":"deep"}' },
      });
      const progress = { status: "running", lastActivity: expect.stringContaining("3 of 7 metres") };
      expect(seen).toContainEqual(expect.objectContaining(progress));
      expect(resultsOf(session.events, "read_agent")[0]).toContain("dug deep");
    });
  });

  it.each([
    ["steer", /tasks\/steer faster/, "delivered"],
    ["plain", /tools\/call/, "takes no messages"],
  ])(
    "ORC-74 ORC-75 an MCP task on a server of kind %s takes or returns a message, and a stop cancels it there",
    async (kind, sent, receipt) => {
      await using folder = await tempFolder();
      const log = join(folder.path, "log");
      const mcpServers = { garden: { command: process.execPath, args: [server, log, kind] } };
      const steps = [
        calls(["garden-dig", { how: "for ever" }]),
        calls(["write_agent", { agent_id: "dig", message: "faster" }]),
        calls(["stop_agent", { agent_id: "dig" }]),
        says("stopped"),
      ];
      await onStage(steps, { workspace: { mcpServers } }, async ({ session }) => {
        await session.sendAndWait({ prompt: "go" });
        expect(resultsOf(session.events, "write_agent")[0]).toContain(receipt);
        expect(session.agents.tasks?.view("dig")).toMatchObject({ status: "cancelled" });
        await expect.poll(() => readFileSync(log, "utf8")).toContain("tasks/cancel");
        expect(readFileSync(log, "utf8")).toMatch(sent);
        expect(readFileSync(log, "utf8").includes("tasks/steer")).toBe(kind === "steer");
      });
    },
  );
});

describe("calls that a server turns into tasks (2026-07-28)", () => {
  const garden = (log: string) => ({ garden: { command: process.execPath, args: [making, log] } });

  it("ORC-71 ORC-72 a call that a server turns into a task becomes a background record with an id and a result", async () => {
    await using folder = await tempFolder();
    const mcpServers = garden(join(folder.path, "log"));
    const steps = [
      calls(["garden-dig", { how: "at once" }], ["garden-dig", { how: "deep" }]),
      says("digging"),
      calls(["read_agent", { agent_id: "dig" }]),
      says("dug"),
    ];
    await onStage(steps, { workspace: { mcpServers } }, async ({ session }) => {
      const seen: object[] = [];
      session.subscribe(() => seen.push(session.agents.tasks?.view("dig")?.mcpTask ?? {}));
      expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "dug" });
      const results = resultsOf(session.events, "garden-dig");
      expect(results.find((text) => text.includes("dug at once"))).toBeDefined();
      expect(results.find((text) => text.includes("started in background with agent_id: dig."))).toBeDefined();
      expect(session.agents.tasks?.list()).toHaveLength(1);
      expect(session.agents.tasks?.get("dig")).toMatchObject({ status: "completed", spec: { kind: "mcp-task" } });
      expect(seen).toContainEqual(expect.objectContaining({ status: "working", message: "3 of 7 metres, working" }));
      expect(resultsOf(session.events, "read_agent")[0]).toContain("dug deep");
    });
  });

  it("ORC-74 ORC-75 a call that became a task is cancelled on the server, takes no messages, and reports its failure", async () => {
    await using folder = await tempFolder();
    const log = join(folder.path, "log");
    const steps = [
      calls(["garden-dig", { how: "for ever" }]),
      calls(["write_agent", { agent_id: "dig", message: "faster" }]),
      calls(["stop_agent", { agent_id: "dig" }]),
      calls(["garden-dig", { how: "badly" }]),
      says("stopped"),
      says("so it is"),
    ];
    await onStage(steps, { workspace: { mcpServers: garden(log) } }, async ({ session }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(resultsOf(session.events, "write_agent")[0]).toContain("takes no messages");
      expect(session.agents.tasks?.view("dig")).toMatchObject({ status: "cancelled" });
      await expect.poll(() => readFileSync(log, "utf8")).toContain("tasks/cancel t");
      expect(session.agents.tasks?.get("dig-2")).toMatchObject({
        status: "failed",
        error: expect.stringContaining("the spade broke"),
      });
    });
  });

  it("a subagent waits for its MCP tasks, and those of the main agent continue when its answer is stopped", async () => {
    await using folder = await tempFolder();
    const log = join(folder.path, "log");
    const mcpServers = garden(log);
    const steps = [
      starts("a", "general-purpose"),
      calls(["garden-dig", { how: "for ever" }]),
      stalls(new Promise(() => undefined), says("never")),
      of("a", calls(["garden-dig", { how: "deep" }]), says("done")),
    ];
    await onStage(steps, { workspace: { mcpServers }, agents: { waitMs: 0 } }, async ({ session, requests }) => {
      const sent = session.sendAndWait({ prompt: "go" });
      await expect.poll(() => requests("main").length).toBe(3);
      expect(requests("a")[1]?.messages.at(-1)?.content).toContain("dug deep");
      session.abort();
      expect(await sent).toEqual({ kind: "aborted" });
      expect(session.agents.tasks?.view("dig-2")).toMatchObject({ status: "running", mode: "background" });
      expect(readFileSync(log, "utf8")).not.toContain("tasks/cancel");
    });
  });
});
