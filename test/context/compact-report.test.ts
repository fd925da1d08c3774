import { describe, expect, it } from "vitest";
import type { Message } from "../../src/protocol/message.ts";
import { compactionOptions, DEFAULT_COMPACTION } from "../../src/session/compaction/compaction-options.ts";
import { contextReport, contextText } from "../../src/session/compaction/context-report.ts";
import { ContextMeter } from "../../src/session/compaction/context-usage.ts";
import { workSnapshot } from "../../src/session/compaction/work-snapshot.ts";
import type { Registry } from "../../src/tasks/registry.ts";
import type { Tool } from "../../src/tools/tool.ts";
import { echo } from "../support/stage.ts";

const model = {
  provider: { id: "faux", stream: () => [] as never },
  providerId: "faux",
  model: "faux-1",
  costOf: () => 0,
};
const remote: Tool = { ...echo, name: "docs-search", origin: { kind: "mcp", serverName: "docs", toolName: "search" } };
const result = (number: number, characters: number): Message[] => [
  {
    role: "assistant",
    content: "",
    calls: [{ toolCallId: `c${number}`, name: "view", arguments: { path: `file-${number}.ts` } }],
  },
  { role: "tool", toolCallId: `c${number}`, content: "x".repeat(characters), isError: false },
];

describe("the report on the context window", () => {
  it("the report on the context window counts by kind, and lists the ten largest results by tool", () => {
    const shown = {
      system: `You are.\n<custom_instructions>\n${"i".repeat(400)}\n</custom_instructions>`,
      tools: [echo, remote],
    };
    const messages: Message[] = [
      { role: "user", content: "lead-in <summary>s</summary>" },
      { role: "user", content: "go" },
      ...Array.from({ length: 12 }, (_, index) => result(index, index * 400)).flat(),
    ];
    const meter = new ContextMeter();
    const usage = meter.measure({ model, promptAndTools: shown, history: { tokens: 7_000, length: messages.length } });
    const report = contextReport({ model, shown, messages, usage, meter, options: DEFAULT_COMPACTION });
    expect(report.parts.map(({ kind }) => kind)).toEqual([
      ...["system", "instructions", "tools", "mcp", "summary", "user", "assistant", "results"],
    ]);
    expect(report.totalTokens).toBe(report.parts.reduce((sum, { tokens }) => sum + tokens, 0));
    expect(report.largest).toHaveLength(10);
    expect(report.largest[0]).toEqual({ label: "view file-11.ts", tokens: 1_104 });
    expect(report).toMatchObject({ tokenLimit: 128_000, compactionThreshold: 102_400, bufferTokens: 6_400 });
    expect(contextText(report)).toContain("tools of docs");
    expect(contextText(report)).toMatch(/^Context of faux-1: about [\d,]+ of 128,000 tokens/);
  });
});

describe("the compaction thresholds", () => {
  it("the compaction thresholds are 0.80 and 0.95 unless a program or the environment sets valid ones", () => {
    expect(compactionOptions({})).toEqual({ enabled: true, backgroundThreshold: 0.8, bufferThreshold: 0.95 });
    const environment = { COPILOT_BACKGROUND_COMPACTION_THRESHOLD: "0.5", COPILOT_BUFFER_EXHAUSTION_THRESHOLD: "7" };
    expect(compactionOptions(environment)).toEqual({ enabled: true, backgroundThreshold: 0.5, bufferThreshold: 0.95 });
    expect(compactionOptions(environment, { enabled: false, bufferThreshold: 0.4 })).toEqual({
      enabled: false,
      backgroundThreshold: 0.4,
      bufferThreshold: 0.4,
    });
  });
});

describe("the work snapshot beside a summary", () => {
  const tasks = {
    list: () => [
      { id: "scout", agentType: "explore", status: "running", description: "look\naround", relation: "child" },
      { id: "other", agentType: "task", status: "idle", description: "build", relation: "other" },
    ],
  } as unknown as Registry;
  const readTodos = async () => [
    { id: "a", status: "done", title: "first" },
    { id: "b", status: "pending", title: "second" },
  ];

  it("the work snapshot lists the todos, open ones first, and the running or waiting agents, with ids", async () => {
    expect(await workSnapshot("session-1", { readTodos, tasks })).toEqual({
      todos: "- b [pending] second\n- a [done] first",
      agents: "- agent_id: scout (explore), running: look around\n- agent_id: other (task), idle: build",
    });
  });

  it("the work snapshot of a subagent lists only its own agents", async () => {
    expect(await workSnapshot("session-1/scout", { readTodos, tasks })).toEqual({
      agents: "- agent_id: scout (explore), running: look around",
    });
  });

  it("the work snapshot has a limit, and is empty when nothing can be read", async () => {
    const many = async () => Array.from({ length: 500 }, (_, index) => ({ id: `t${index}`, status: "pending" }));
    expect((await workSnapshot("s", { readTodos: many })).todos?.split("\n").at(-1)).toBe("- and 400 more");
    expect(await workSnapshot("s", { readTodos: () => Promise.reject(new Error("gone")) })).toEqual({});
  });
});
