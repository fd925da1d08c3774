import { readdirSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { expect, test } from "vitest";
import { fileEditTools } from "../../src/protocol/permission.ts";
import {
  agentTools,
  autopilotTools,
  boardTools,
  builtinTools,
  coordinationTools,
  inboxTools,
  interactiveTools,
  memoryTools,
  memoryVoteTools,
  searchTools,
  sidekickOnlyTools,
  skillTools,
} from "../../src/tools/builtin.ts";
import { Environments } from "../../src/tools/coordination/environment.ts";
import { workerOnlyTools } from "../../src/tools/coordination/worker-tools.ts";
import { call, contextFor } from "./workspace.ts";

const noSkills = { list: () => [], load: () => Promise.reject(new Error("none")) };
const noMemory: Parameters<(typeof memoryTools)[number]>[0] = {
  limits: { subject: 100, fact: 100, citations: 100, reason: 100 },
  scopes: ["repository"],
  canVote: true,
  descriptions: {},
  filter: (value) => value,
  missing: () => undefined,
  store: () => Promise.reject(new Error("none")),
  vote: async () => undefined,
};
const noReceiver = {
  called: () => {},
  submit: () => ({ kind: "taken", message: "" }) as const,
  close: () => {},
  taken: () => undefined,
};
const noInbox: Parameters<(typeof sidekickOnlyTools)[number]>[0] = {
  maxSends: 1,
  send: () => Promise.reject(new Error("none")),
};
const delegating = [
  ...agentTools.map((make) => make({ agents: () => [] })),
  ...coordinationTools.map((make) => make({})),
];
const all = [
  ...builtinTools,
  ...searchTools,
  ...autopilotTools,
  ...interactiveTools,
  ...skillTools.map((make) => make(noSkills)),
  ...delegating,
  ...boardTools,
  ...inboxTools,
  ...sidekickOnlyTools.map((make) => make(noInbox)),
  ...[...memoryTools, ...memoryVoteTools].map((make) => make(noMemory)),
  ...workerOnlyTools.map((make) => make({ receiver: noReceiver, environments: new Environments() })),
];

test("no two tools share a name, and each has tests of its own", () => {
  const names = all.map((tool) => tool.name);
  expect(new Set(names).size).toBe(names.length);
  const tests = readdirSync("test", { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".test.ts"));
  const imported = tests.map((path) => readFileSync(`test/${path}`, "utf8")).join("\n");
  const isImported = (name: string): boolean =>
    new RegExp(`src/tools/([a-z]+/)?${name.replaceAll("_", "-")}\\.ts"`).test(imported);
  const missing = names.filter((name) => !isImported(name));
  expect(missing).toEqual([]);
});

test("the tools that write files are those that the view and the search index know by name", () => {
  expect(all.filter(({ accessKind }) => accessKind === "write").map(({ name }) => name)).toEqual([...fileEditTools]);
});

test("every tool file is in one of the lists", () => {
  const folder = new URL("../../src/tools/", import.meta.url);
  const defining = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts") && file !== "tool.ts")
    // Tools of MCP servers are offered with the servers.
    .filter((file) => !file.startsWith("mcp/"))
    // A variant of `ask_user`, which is offered in its place.
    .filter((file) => basename(file) !== "ask-user-form.ts")
    .filter((file) => readFileSync(new URL(file, folder), "utf8").includes("defineTool({"))
    .map((file) => basename(file, ".ts").replaceAll("-", "_"));
  expect(defining.sort()).toEqual(all.map((tool) => tool.name).sort());
});

test.each(all.map((tool) => [tool.name, tool] as const))("%s is described, bounded and has an end", (_, tool) => {
  expect(tool.description.length).toBeGreaterThan(40);
  expect(tool.description.length).toBeLessThanOrEqual(1200);
  // A command may take ten minutes; only people and other agents may take longer.
  if (![...interactiveTools, ...delegating].includes(tool)) expect(tool.timeoutMs).toBeLessThanOrEqual(610_000);
  const { properties } = JSON.parse(JSON.stringify(tool.parameters)) as {
    properties: Record<string, { description?: string }>;
  };
  for (const [name, property] of Object.entries(properties))
    expect([name, property.description]).not.toContain(undefined);
});

test("the first request stays small: all tools with their schemas fit into 14 kB", () => {
  const tools = builtinTools.map(({ name, description, parameters }) => ({ name, description, parameters }));
  expect(JSON.stringify(tools).length).toBeLessThanOrEqual(14_000);
});

test("the tools take the arguments the wire contract names", () => {
  const fields = (name: string) => {
    const parameters = all.find((tool) => tool.name === name)?.parameters ?? {};
    return "properties" in parameters ? Object.keys(parameters.properties ?? {}) : [];
  };
  expect(fields("view")).toEqual(["path", "view_range", "forceReadLargeFiles"]);
  expect(fields("glob")).toEqual(["pattern", "path", "paths"]);
  expect(fields("grep").sort()).toEqual(
    [
      "pattern",
      "path",
      "paths",
      "output_mode",
      "glob",
      "type",
      "-i",
      "-n",
      "-A",
      "-B",
      "-C",
      "head_limit",
      "multiline",
    ].sort(),
  );
  expect(fields("task_complete")).toEqual(["summary"]);
});

test("task_complete ends the task with its summary", async () => {
  const [tool] = autopilotTools;
  if (tool === undefined) throw new Error("task_complete is missing");
  expect(tool.endsAnswer).toBe(true);
  expect(await call(tool, { summary: "All done." }, contextFor("/"))).toEqual({
    content: "All done.",
    taskComplete: { summary: "All done." },
  });
  expect(await call(tool, {}, contextFor("/"))).toEqual({ content: "Task complete.", taskComplete: {} });
});
