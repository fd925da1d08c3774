import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { forAgent, otherwise } from "../../src/model/faux/faux-plan.ts";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { type Stage as McpStage, stage as mcpStage, stdioConfig, toolsOf } from "../mcp/stage.ts";
import { agent } from "../support/agent.ts";
import { agentPool, storeWith, task } from "../support/agent-pool.ts";
import { dataOf } from "../support/stage.ts";
import { checkTasks } from "../support/task-checker.ts";

const SLOW = "version-one-slow";
let mcp: McpStage;
let folder: TempFolder;
let tools: readonly Tool[];

beforeAll(async () => {
  mcp = mcpStage();
  folder = await tempFolder({ log: "" });
  tools = await toolsOf(mcp.use(stdioConfig("version-one.mjs", [folder.at("log")])));
});

afterAll(async () => {
  await mcp.close();
  await folder[Symbol.asyncDispose]();
});

const slow = (ms: number, id: string) => calls([SLOW, { ms }, id]);

describe("calls that a server takes only as tasks", () => {
  it("ORC-71, ORC-72: MCP tasks continue in the background with an id, and their result is read like an agent's", async () => {
    const { session, model } = await agentPool(
      [slow(400, "c1"), says("waiting"), calls(["read_agent", { agent_id: "slow" }]), says("it took 400")],
      { tools },
    );
    const seen: string[] = [];
    session.subscribe(() => {
      const { status, lastActivity = "" } = session.agents.tasks?.view("slow") ?? {};
      if (status === "running" && seen.at(-1) !== lastActivity) seen.push(lastActivity);
    });
    expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "it took 400" });
    const [first] = dataOf(session.events, "tool.execution_complete");
    expect(first?.result?.content).toMatch(/^MCP task started in background with agent_id: slow\. You'll be notified/);
    expect(session.agents.tasks?.get("slow")).toMatchObject({
      status: "completed",
      spec: { kind: "mcp-task", agentName: "mcp-task", prompt: '{"ms":400}', toolCallId: "c1", tools: [] },
    });
    expect(seen.some((activity) => activity.startsWith("working"))).toBe(true);
    expect(dataOf(session.events, "system.notification")).toMatchObject([
      { kind: { type: "agent_completed", agentId: "slow", agentType: "mcp-task", status: "completed" } },
    ]);
    expect(model.requests.at(-1)?.messages.at(-1)?.content).toContain("took 400");
    expect(checkTasks(session.events, { settled: true })).toEqual([]);
    await session.close();
  });

  it("ORC-74, ORC-75: stop_agent cancels a task on the MCP server, and a message to the task is refused", async () => {
    const { session } = await agentPool(
      [
        slow(60_000, "c1"),
        calls(["write_agent", { agent_id: "slow", message: "hurry" }]),
        calls(["stop_agent", { agent_id: "slow" }]),
        says("stopped"),
      ],
      { tools },
    );
    expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "stopped" });
    const [, written] = dataOf(session.events, "tool.execution_complete");
    expect(written?.error?.message).toMatch(/NOT delivered.*takes no messages.*stop_agent/);
    expect(session.agents.tasks?.view("slow")).toMatchObject({ status: "cancelled" });
    await expect.poll(() => folder.read("log")).toContain("task cancelled");
    await session.close();
  });

  it("MCP tasks survive the end of an answer and the stop of the next, and fail at once when refused", async () => {
    const { session } = await agentPool(
      [slow(500, "c1"), says("first"), calls([SLOW, { ms: "soon" }, "c2"]), otherwise(says("second"))],
      { tools, waitForAgentsMs: 0 },
    );
    await session.sendAndWait({ prompt: "go" });
    expect(session.agents.tasks?.view("slow")?.status).toBe("running");
    await session.sendAndWait({ prompt: "again" });
    const refused = dataOf(session.events, "tool.execution_complete").find(({ toolCallId }) => toolCallId === "c2");
    expect(refused).toMatchObject({ success: false, error: { message: expect.stringContaining("The call failed") } });
    await expect.poll(() => session.agents.tasks?.view("slow")?.status).toBe("completed");
    await session.queue.whenIdle();
    expect(checkTasks(session.events)).toEqual([]);
    await session.close();
  });

  it("a subagent waits for its MCP task, because it cannot be notified later", async () => {
    const { session } = await agentPool(
      [task("one", "caller"), says("end"), forAgent("caller", slow(150, "c1"), says("got it"))],
      { tools, agents: [agent("caller")] },
    );
    await session.sendAndWait({ prompt: "go" });
    const own = session.events.flatMap(({ agentId, type, data }) =>
      agentId === "one" && type === "tool.execution_complete" ? [data.result?.content] : [],
    );
    expect(own).toEqual([expect.stringContaining("took 150")]);
    expect(session.agents.tasks?.view("slow")).toMatchObject({ parentId: "one", status: "completed" });
    expect(checkTasks(session.events, { settled: true })).toEqual([]);
    await session.close();
  });

  it("MCP tasks are listed as interrupted after the process died, and are not repeated", async () => {
    const first = await agentPool([slow(60_000, "c1"), says("waiting")], { tools, waitForAgentsMs: 0 });
    await first.session.sendAndWait({ prompt: "go" });
    const store = await storeWith(first.session.events);
    await first.session.close();
    const { session } = await agentPool([otherwise(says("noted"))], { tools, store, resume: "session-1" });
    await session.sendAndWait({ prompt: "what happened?" });
    expect(session.agents.tasks?.view("slow")?.reason).toBe("interrupted");
    expect(dataOf(session.events, "system.notification")).toMatchObject([{ kind: { agentId: "slow" } }]);
    await session.agents.tasks?.send("slow", "go on");
    await expect.poll(() => session.agents.tasks?.get("slow")?.error).toMatch(/ended with its process/);
    await session.close();
  });
});
