import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { onStage, resultsOf } from "./stage.ts";

const server = fileURLToPath(new URL("./task-server.mjs", import.meta.url));

describe("MCP tools that must run as tasks, in a whole session", () => {
  it("ORC-71 ORC-73 are background records with their progress, and end though an answer was lost", async () => {
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
      session.subscribe(() => seen.push(session.tasks?.view("dig") ?? {}));
      expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "dug" });
      expect(resultsOf(session.events, "garden-dig")[0]).toMatch(/started in background with agent_id: dig\./);
      expect(session.tasks?.get("dig")).toMatchObject({
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
    "ORC-74 ORC-75 on a server of the kind %s a message arrives or comes back, and stopping cancels over there",
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
        expect(session.tasks?.view("dig")).toMatchObject({ status: "cancelled" });
        await expect.poll(() => readFileSync(log, "utf8")).toContain("tasks/cancel");
        expect(readFileSync(log, "utf8")).toMatch(sent);
        expect(readFileSync(log, "utf8").includes("tasks/steer")).toBe(kind === "steer");
      });
    },
  );
});
