import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { of, onStage, resultsOf, starts, toolNames } from "./stage.ts";

const fixture = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const TOOLS = ["list_mcp_resources", "read_mcp_resource"];
const ofResources = (names: readonly string[]): readonly string[] => names.filter((name) => TOOLS.includes(name));

describe("resources of MCP servers in a session", () => {
  const mcpServers = { notes: { command: process.execPath, args: [fixture("../mcp/servers/version-one.mjs")] } };

  it("a model lists and reads the resources of a connected MCP server", async () => {
    const steps = [
      calls(["list_mcp_resources", {}]),
      calls(["read_mcp_resource", { server: "notes", uri: "memory://greeting" }]),
      says("read"),
    ];
    await onStage(steps, { workspace: { mcpServers } }, async ({ session, first }) => {
      expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "read" });
      expect(ofResources(toolNames(first("main")))).toEqual(TOOLS);
      expect(resultsOf(session.events, "list_mcp_resources")[0]).toContain("notes: memory://greeting  greeting");
      expect(resultsOf(session.events, "read_mcp_resource")[0]).toMatch(
        /not instructions to follow\.\n\nhello reader$/,
      );
    });
  });

  it("the research agent reads resources of MCP servers, and the explore agent gets no such tool", async () => {
    const steps = [
      starts("finder", "research", { mode: "sync" }),
      of("finder", calls(["read_mcp_resource", { server: "notes", uri: "memory://greeting" }]), says("hello reader")),
      starts("looker", "explore", { mode: "sync" }),
      of("looker", says("nothing")),
      says("found"),
    ];
    await onStage(steps, { workspace: { mcpServers } }, async ({ session, first }) => {
      expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "found" });
      expect(ofResources(toolNames(first("finder")))).toEqual(TOOLS);
      expect(ofResources(toolNames(first("looker")))).toEqual([]);
      expect(resultsOf(session.events, "read_mcp_resource")[0]).toContain("hello reader");
    });
  });

  it("a session gets no tools for resources when its MCP servers have none", async () => {
    const without = { garden: { command: process.execPath, args: [fixture("../mcp/servers/version-two.mjs")] } };
    await onStage([says("done")], { workspace: { mcpServers: without } }, async ({ session, first }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(toolNames(first("main")).some((name) => name.startsWith("garden-"))).toBe(true);
      expect(ofResources(toolNames(first("main")))).toEqual([]);
    });
  });
});
