import { describe, expect, it } from "vitest";
import { subagentsRead } from "../../src/tools/agents/subagents-read.ts";
import type { TaskReport, Tasks } from "../../src/tools/agents/task-port.ts";
import { call, contextFor, failureOf } from "./workspace.ts";

function contextOf(report: { status: string; response?: string; error?: string }) {
  const { status, response, error } = report;
  const answers = response === undefined ? [] : [{ number: 1, message: "look", response }];
  const tasks: Pick<Tasks, "list" | "read"> = {
    list: () => [],
    read: async () => ({ task: { id: "w", status }, answers, ...(error && { error }) }) as unknown as TaskReport,
  };
  return { ...contextFor("/"), tasks: tasks as Tasks };
}

describe("subagents_read", () => {
  it("subagents_read returns the page of a worker's result", async () => {
    const finding = { severity: "info", title: "t", evidence: "e", paths: [] };
    const response = JSON.stringify({ status: "completed", summary: "s", findings: [finding, finding] });
    const { content } = await call(
      subagentsRead,
      { agent_id: "w", from: 1 },
      contextOf({ status: "completed", response }),
    );
    expect(JSON.parse(content)).toEqual({ agent_id: "w", part: "findings", from: 1, of: 2, items: [finding] });
  });

  it("subagents_read quotes a payload that never fitted the schema", async () => {
    const response = JSON.stringify({ status: "great" });
    const { content } = await call(subagentsRead, { agent_id: "w" }, contextOf({ status: "completed", response }));
    expect(JSON.parse(content).items).toMatchObject([{ title: "Payload of submit_result", evidence: response }]);
  });

  it.each([
    ["a worker that still runs", { status: "running" }, "w is still running. Wait for the result of subagents_run."],
    [
      "an agent that is no worker",
      { status: "completed", response: "Words." },
      "w submitted no structured result. Use read_agent to read its answer.",
    ],
  ])("subagents_read refuses %s", async (_, report, message) => {
    expect((await failureOf(subagentsRead, { agent_id: "w" }, contextOf(report))).message).toBe(message);
  });
});
