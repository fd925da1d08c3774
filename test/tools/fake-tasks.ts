import type {
  TaskAnswer,
  TaskReport,
  TaskRequest,
  TaskStart,
  Tasks,
  TaskView,
} from "../../src/tools/agents/task-port.ts";
import { ToolError } from "../../src/tools/tool-error.ts";

export const AGENTS = [
  { name: "explore", description: "Searches the code and answers short questions about it, with places." },
  { name: "task", description: "Runs a command such as tests or a build, and says how it went." },
  { name: "general-purpose", description: "Works through many steps on its own, with every tool." },
  { name: "rubber-duck", description: "Thinks along: criticises a plan, a design or code." },
  { name: "code-review", description: "Reviews a change and names only what matters." },
  { name: "research", description: "Searches far and wide and reports with sources." },
  { name: "rem-agent", description: "Puts what was learned in order. Only when asked for." },
];

function taskView(changes: Partial<TaskView> = {}): TaskView {
  return {
    id: "scout",
    agentType: "explore",
    description: "Find the entry",
    status: "completed",
    mode: "sync",
    relation: "child",
    startedAt: 0,
    elapsedMs: 12_400,
    activeMs: 11_000,
    turns: 1,
    toolCalls: 3,
    tokens: 4200,
    costUsd: 0.0123,
    quietMs: 5000,
    unreadMessages: 0,
    ...changes,
  };
}

export function turn(number: number, response: string, message = "the prompt"): TaskAnswer {
  return { number, message, response };
}

export function ended(
  response: string,
  view: Partial<TaskView> = {},
  error?: string,
): Extract<TaskStart, { kind: "ended" }> {
  return { kind: "ended", report: reportOf([turn(1, response)], view, error) };
}

export function reportOf(answers: readonly TaskAnswer[], view: Partial<TaskView> = {}, error?: string): TaskReport {
  return { task: taskView({ turns: answers.length, ...view }), answers, ...(error !== undefined && { error }) };
}

export interface FakeTasks extends Tasks {
  readonly requests: TaskRequest[];
  readonly signals: AbortSignal[];
  readonly reads: unknown[];
  readonly writes: unknown[];
  readonly lists: unknown[];
}

/** Agents that answer as they are told and remember what was asked of them. */
export function fakeTasks(answers: {
  start?: TaskStart;
  reports?: readonly TaskReport[];
  receipts?: Awaited<ReturnType<Tasks["write"]>>;
}): FakeTasks {
  const { reports = [] } = answers;
  const find = (id: string): TaskReport => {
    const report = reports.find(({ task }) => task.id === id);
    if (report === undefined) throw new ToolError(`There is no agent "${id}".`);
    return report;
  };
  const fake: FakeTasks = {
    requests: [],
    signals: [],
    reads: [],
    writes: [],
    lists: [],
    agents: () => AGENTS,
    async start(request, signal) {
      fake.requests.push(request);
      fake.signals.push(signal);
      if (answers.start === undefined) throw new ToolError("Model x is not available. Models: a, b.");
      return answers.start;
    },
    async rejoin() {
      if (answers.start === undefined) throw new ToolError("There is no such agent.");
      return answers.start;
    },
    async read(request) {
      fake.reads.push(request);
      return find(request.id);
    },
    async write(target, message) {
      fake.writes.push({ target, message });
      return answers.receipts ?? [];
    },
    list(options) {
      fake.lists.push(options);
      return reports.map(({ task }) => task);
    },
    stop: async (id) => find(id),
  };
  return fake;
}
