import { resolve } from "node:path";
import { approveAll, defineTool, RuntimeConnection, type SessionEvent } from "@github/copilot-sdk";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { calls, says } from "../../src/testing/index.ts";
import { shared } from "../support/second-look.ts";
import { type ServerStage, serverStage } from "./stage.ts";

let stage: ServerStage;
shared(
  async () => {
    stage = await serverStage();
  },
  () => stage[Symbol.asyncDispose](),
);

const customAgents = [
  {
    name: "researcher",
    displayName: "Research Agent",
    description: "Explores codebases and answers questions using read-only tools",
    tools: ["grep", "glob", "view", "analyze"],
    prompt: "You are a research assistant. Do not modify any files.",
  },
  {
    name: "editor",
    displayName: "Editor Agent",
    description: "Makes targeted code changes",
    tools: ["view", "edit", "bash"],
    prompt: "You are a code editor. Make minimal, surgical changes.",
  },
];

const task = (agent: string, prompt: string) =>
  calls(["task", { agent_type: agent, name: `the-${agent}`, description: "A part of it", prompt }]);

describe("agents of a client", () => {
  it("SDK-33 a researcher of a client finds, an editor changes, and their parent answers", async () => {
    const heard: SessionEvent[] = [];
    const asked: { kind: string }[] = [];
    const ofAgents: string[] = [];
    const analysed: unknown[] = [];
    const session = await stage.client.createSession({
      customAgents,
      tools: [
        defineTool("analyze", {
          description: "Deep analysis",
          parameters: z.object({ query: z.string() }),
          skipPermission: true,
          handler: (given) => {
            analysed.push(given);
            return "line 2 is wrong";
          },
        }),
      ],
      defaultAgent: { excludedTools: ["analyze"] },
      onPermissionRequest: ({ kind }) => {
        asked.push({ kind });
        return { kind: "approve-once" };
      },
      hooks: {
        onPreToolUse: ({ sessionId, toolName }) => {
          if (sessionId !== session.sessionId) ofAgents.push(toolName);
          return undefined;
        },
      },
      onEvent: (event) => heard.push(event),
    });
    stage.play(
      task("researcher", "What is wrong in a.txt?"),
      calls(["analyze", { query: "a.txt" }], ["edit", { path: "a.txt", old_str: "two", new_str: "hacked" }]),
      says("Line 2 should be TWO."),
      task("editor", "Make line 2 TWO."),
      calls(["view", { path: "a.txt" }]),
      calls(["edit", { path: "a.txt", old_str: "two", new_str: "TWO" }]),
      says("Changed."),
      says("It was wrong, and is right now."),
    );
    expect((await session.sendAndWait("Mend a.txt"))?.data.content).toBe("It was wrong, and is right now.");
    expect(await stage.folder.read("work/a.txt")).toBe("one\nTWO\n");
    expect(analysed).toEqual([{ query: "a.txt" }]);
    expect(asked.map(({ kind }) => kind)).toEqual(["read", "write"]);
    expect(ofAgents.sort()).toEqual(["analyze", "edit", "edit", "view"]);
    const lifecycle = heard.filter(({ type }) => type.startsWith("subagent."));
    expect(lifecycle.map(({ type, data }) => [type, Reflect.get(data, "agentName")])).toEqual([
      ["subagent.selected", "researcher"],
      ["subagent.started", "researcher"],
      ["subagent.configured", undefined],
      ["subagent.completed", "researcher"],
      ["subagent.deselected", undefined],
      ["subagent.selected", "editor"],
      ["subagent.started", "editor"],
      ["subagent.configured", undefined],
      ["subagent.completed", "editor"],
      ["subagent.deselected", undefined],
    ]);
    const [requested] = heard.filter(({ type }) => type === "external_tool.requested");
    expect(requested?.agentId).toBe(lifecycle[0]?.agentId);
    const refused = heard.filter(
      ({ type, data }) => type === "tool.execution_complete" && !Reflect.get(data, "success"),
    );
    expect(refused.map(({ data }) => Reflect.get(data, "error").message)).toEqual([
      expect.stringContaining("does not exist"),
    ]);
  });

  it("agents of a client run in the background, and the session is idle only after all notices", async () => {
    const session = await stage.client.createSession({ customAgents, onPermissionRequest: approveAll });
    const seen: string[] = [];
    session.on(({ type, agentId }) => {
      if (type === "session.idle" || type === "assistant.message")
        seen.push(`${type}${agentId === undefined ? "" : " of an agent"}`);
    });
    stage.play(
      calls([
        "task",
        { agent_type: "researcher", name: "back", description: "Look", prompt: "Look.", mode: "background" },
      ]),
      says("I wait."),
      says("Nothing found."),
      says("It found nothing."),
    );
    await session.sendAndWait("look in the background");
    expect(seen.at(-1)).toBe("session.idle");
    expect(seen.filter((one) => one === "session.idle")).toHaveLength(1);
    expect(seen).toContain("assistant.message of an agent");
  });
});

describe("agents that a client sets while a session is open", () => {
  const offered = (): string[] => stage.model.requests.at(-1)?.request?.tools.map(({ name }) => name) ?? [];
  const types = (): unknown => {
    const tool = stage.model.requests.at(-1)?.request?.tools.find(({ name }) => name === "task");
    return JSON.stringify(tool);
  };

  it("an agent that a client changes applies to agents that start from then on, until it is revoked", async () => {
    const session = await stage.client.createSession({ customAgents, onPermissionRequest: approveAll });
    const work = async () => {
      stage.play(task("general-purpose", "Do it."), says("Done."), says("It is done."));
      await session.sendAndWait("do it");
      return stage.model.requests.slice(-3).map(({ request }) => request?.model);
    };
    expect(await work()).toEqual(["faux-model", "faux-model", "faux-model"]);
    await session.rpc.tools.updateSubagentSettings({
      subagents: {
        agents: { "general-purpose": { model: "cheap-model" } },
        disabledSubagents: ["Researcher"],
        maxDepth: 1,
      },
    });
    expect(await work()).toEqual(["faux-model", "cheap-model", "faux-model"]);
    expect(types()).not.toContain("researcher");
    expect(types()).toContain("editor");
    const [, ofAgent] = stage.model.requests.slice(-3);
    expect(ofAgent?.request?.tools.map(({ name }) => name)).not.toContain("task");
    // What it is made with changes: it is made anew, and what was said of agents holds.
    await session.rpc.options.update({ excludedTools: ["glob"] });
    expect(await work()).toEqual(["faux-model", "cheap-model", "faux-model"]);
    expect(offered()).not.toContain("glob");
    await session.rpc.tools.updateSubagentSettings({ subagents: null });
    expect(await work()).toEqual(["faux-model", "faux-model", "faux-model"]);
    expect(types()).toContain("researcher");
    await session.disconnect();
  });

  it("the items of the board are counted for a client, if there is a board", async () => {
    const env = { ...stage.environment(), COPILOT_SUBCONSCIOUS: "on", SIDEKICK_AGENTS: "off" };
    const client = stage.newClient({
      connection: RuntimeConnection.forStdio({ path: resolve("bin/troupe.js"), env }),
    });
    const keeper = { name: "keeper", description: "Keeps what is worth it", tools: ["context_board"], prompt: "Keep." };
    const session = await client.createSession({ customAgents: [keeper], onPermissionRequest: approveAll });
    const count = (sessionId: string) =>
      Reflect.get(client, "connection").sendRequest("sessions.getBoardEntryCount", { sessionId });
    const { count: before } = await count(session.sessionId);
    expect(before).toBeGreaterThanOrEqual(0);
    const entry = {
      command: "add",
      name: `build-${session.sessionId}`,
      description: "How it is built",
      context: "With make.",
    };
    stage.play(task("keeper", "Keep it."), calls(["context_board", entry]), says("Kept."), says("It is kept."));
    await session.sendAndWait("keep it");
    expect(await count(session.sessionId)).toEqual({ count: before + 1 });
    expect(await count("nobody")).toEqual({});
    await session.disconnect();
    expect(await count(session.sessionId)).toEqual({});
  });
});

describe("MCP servers of a client", () => {
  it("a client's MCP servers bring tools under their name, with permission, and hooks send metadata", async () => {
    const kinds: string[] = [];
    const session = await stage.client.createSession({
      mcpServers: {
        helper: {
          type: "local",
          command: process.execPath,
          args: [resolve("test/mcp/servers/scripted.mjs"), "good", "meta"],
          tools: ["*"],
        },
      },
      onPermissionRequest: ({ kind }) => {
        kinds.push(kind);
        return { kind: "approve-once" };
      },
      hooks: { onPreMcpToolCall: ({ serverName, toolName }) => ({ metaToUse: { from: `${serverName}/${toolName}` } }) },
    });
    stage.play(calls(["helper-echo", { words: "hi" }]), says("It said hi."));
    await session.sendAndWait("echo");
    const results = stage.model.requests
      .at(-1)
      ?.request?.messages.flatMap((one) => (one.role === "tool" ? [one.content] : []));
    expect(results).toEqual([expect.stringMatching(/"from":"helper\/echo"/)]);
    expect(kinds).toEqual(["mcp"]);
  });
});
