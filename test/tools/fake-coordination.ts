import * as z from "zod";
import type { Coordination, WorkerEnd, WorkerSpec, WorkerStep } from "../../src/tools/coordination/coordination.ts";
import { defineTool, type Tool } from "../../src/tools/tool.ts";
import { ToolError, type ToolResult } from "../../src/tools/tool-error.ts";
import { contextFor } from "./workspace.ts";

/** A tool of the coordinator that says what it was asked. */
export function echo(name: string, changes: Partial<Tool> = {}): Tool {
  const tool = defineTool({
    name,
    description: `The tool ${name}`,
    input: z.looseObject({}),
    run: async (input) => ({ content: `${name} ${JSON.stringify(input)}` }),
  });
  return { ...tool, ...changes };
}

export const PARENT_TOOLS = [
  ...["view", "glob", "grep", "bash", "edit", "sql", "skill", "web_fetch", "task", "subagents_run"],
].map((name) => echo(name));

export type Call = (name: string, input?: unknown) => Promise<string>;
export type Script = (call: Call, worker: WorkerSpec) => Promise<Partial<WorkerEnd> | undefined>;

/** Thrown by a call that ends the worker's run, as success of a terminal tool does. */
class Ended extends Error {}

export interface FakeCoordination extends Coordination {
  readonly specs: WorkerSpec[];
  readonly steps: [string, WorkerStep][];
  running(): { now: number; most: number };
}

/** Runs each worker by a script, with the tools it was provided and the loop's rules for calling them. */
export function fakeCoordination(script: Script, tools: readonly Tool[] = PARENT_TOOLS): FakeCoordination {
  const state = { now: 0, most: 0 };
  const fake: FakeCoordination = {
    specs: [],
    steps: [],
    running: () => state,
    refused: () => undefined,
    tools: () => tools.map(({ name }) => name),
    step: (id, step) => void fake.steps.push([id, step]),
    async runWorker(spec, signal) {
      fake.specs.push(spec);
      state.now += 1;
      state.most = Math.max(state.most, state.now);
      try {
        const end = await script(caller(spec.provide(tools)), spec).catch((error: unknown) => {
          if (!(error instanceof Ended)) throw error;
          return undefined;
        });
        signal.throwIfAborted();
        return { outcome: "done", turns: 3, outputTokens: 120, durationMs: 40, ...end };
      } finally {
        state.now -= 1;
      }
    },
  };
  return fake;
}

function caller(tools: readonly Tool[]): Call {
  return async (name, input = {}) => {
    const tool = tools.find((candidate) => candidate.name === name);
    if (tool === undefined) return `Tool '${name}' does not exist.`;
    const result: ToolResult | string = await Promise.resolve()
      .then(() => tool.bind(input).run(contextFor("/")))
      .catch((error: unknown) => {
        if (error instanceof ToolError) return error.message;
        throw error;
      });
    if (typeof result === "string") return result;
    if (tool.endsAnswer) throw new Ended(result.content);
    return result.content;
  };
}
