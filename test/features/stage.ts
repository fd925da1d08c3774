import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { forAgent, type PlainStep } from "../../src/model/faux/faux-plan.ts";
import { calls } from "../../src/model/faux/faux-step.ts";
import type { ModelRequest } from "../../src/model/provider.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { createRuntime, type Runtime } from "../../src/runtime/runtime.ts";
import type { SessionRequest } from "../../src/runtime/session-request.ts";
import type { Session } from "../../src/session/session.ts";
import type { HttpPlay, HttpStep } from "../../src/testing/http-reply.ts";
import { modelServer } from "../../src/testing/model-server.ts";
import { storyByAgent } from "../../src/testing/story.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";

/** The whole product but its surface: a runtime over real files, and a scripted model behind real HTTP. */
export interface Stage {
  readonly runtime: Runtime;
  readonly session: Session;
  /** The folder the session works in. */
  readonly folder: string;
  /** The state root. */
  readonly home: string;
  /** Everything the session said, ephemeral events included, in order. */
  readonly heard: readonly SessionEvent[];
  /** What the model was shown, call by call; of one agent (`main` for the main one) or of all. */
  requests(agent?: string): readonly ModelRequest[];
  /** The first request of this agent. Throws when it made none. */
  first(agent: string): ModelRequest;
  /** The same as it went over the wire. */
  firstBody(agent: string): Readonly<Record<string, unknown>>;
  /** Ends the session and takes it up again, as a new process would. */
  reopen(more?: Partial<SessionRequest>): Promise<Session>;
}

export interface StageOptions extends Partial<Omit<SessionRequest, "cwd">> {
  /** Files by path, in the working folder, in the state root after `home:`. */
  readonly files?: Readonly<Record<string, string>>;
  readonly environment?: Readonly<Record<string, string>>;
  /** How many tokens the models take; 200,000 unless told. */
  readonly window?: number;
}

export async function onStage(
  steps: readonly HttpStep[],
  options: StageOptions,
  work: (stage: Stage) => Promise<void>,
): Promise<void> {
  const { files = {}, environment = {}, window = 200_000, ...request } = options;
  await using root = await tempFolder();
  await using server = await modelServer({ steps, models: ["large", "small"] });
  const [folder, home] = [join(root.path, "work"), join(root.path, "home")];
  mkdirSync(folder);
  place(home, "providers.json", JSON.stringify(providers(server.baseUrl, window)));
  for (const [path, text] of Object.entries(files)) {
    if (path.startsWith("home:")) place(home, path.slice("home:".length), text);
    else place(folder, path, text);
  }
  const runtime = createRuntime({
    environment: { PATH: process.env.PATH, HOME: root.path, TROUPE_SANDBOX: "off", ...environment },
    home,
  });
  const model = { name: "alpha/large", ...request.model };
  const wanted = { cwd: folder, permissions: { allTools: true }, ...request, model };
  const session = await runtime.createSession(wanted);
  let current = session;
  const reopen = async (more: Partial<SessionRequest> = {}): Promise<Session> => {
    await current.close();
    current = await runtime.resumeSession(session.id, {
      ...wanted,
      ...more,
      model: { ...wanted.model, ...more.model },
    });
    return current;
  };
  const heard: SessionEvent[] = [];
  session.subscribe((event) => heard.push(event));
  const shown = (): readonly ModelRequest[] => server.requests.flatMap(({ request: one }) => one ?? []);
  const requests = (agent?: string): readonly ModelRequest[] =>
    agent === undefined ? shown() : shown().filter((one) => whose(one) === agent);
  const first = (agent: string): ModelRequest => {
    const [one] = requests(agent);
    if (!one) throw new Error(`${agent} never asked the model; those who did: ${shown().map(whose).join(", ")}`);
    return one;
  };
  const firstBody = (agent: string): Readonly<Record<string, unknown>> => {
    const meant = first(agent);
    return server.requests.find(({ request: one }) => one === meant)?.body as Record<string, unknown>;
  };
  try {
    await work({ runtime, session, folder, home, heard, requests, first, firstBody, reopen });
  } finally {
    await current.close();
    await runtime.close();
  }
}

/** Steps of the agent whose prompt holds `@name`. */
export const of = (name: string, ...steps: readonly PlainStep<HttpPlay>[]): HttpStep =>
  forAgent<HttpPlay>((request) => whose(request) === name, ...steps);

/** A call of `task` for an agent that the script knows by `name`. */
export const starts = (name: string, agentType: string, more: object = {}) =>
  calls(["task", { description: `do ${name}`, prompt: `@${name} look around`, agent_type: agentType, name, ...more }]);

export const toolNames = ({ tools }: ModelRequest): string[] => tools.map(({ name }) => name);

export const texts = ({ messages }: ModelRequest): string[] => messages.map(({ content }) => content);

/** The results of all calls of one tool, errors included. */
export function resultsOf(events: readonly SessionEvent[], toolName: string): string[] {
  const ids = new Set(
    events.flatMap(({ type, data }) =>
      type === "tool.execution_start" && data.toolName === toolName ? [data.toolCallId] : [],
    ),
  );
  return events.flatMap(({ type, data }) =>
    type === "tool.execution_complete" && ids.has(data.toolCallId)
      ? [data.result?.content ?? data.error?.message ?? ""]
      : [],
  );
}

function whose({ messages }: ModelRequest): string {
  const first = messages.find(({ role }) => role === "user")?.content ?? "";
  return /@([\w-]+)/.exec(first)?.[1] ?? "main";
}

function providers(baseUrl: string, contextWindow: number): object {
  const price = { input: 1, output: 5 };
  const model = (more: object = {}) => ({ contextWindow, price, ...more });
  return {
    providers: {
      alpha: {
        type: "openai",
        baseUrl,
        auth: "none",
        models: { large: model(), small: model({ price: { input: 0.1, output: 0.5 } }) },
      },
      beta: {
        type: "anthropic",
        baseUrl,
        auth: "none",
        models: { other: model({ maxOutputTokens: 8000 }), dear: model({ price: { input: 50, output: 250 } }) },
      },
    },
  };
}

function place(root: string, path: string, text: string): void {
  const file = join(root, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/**
 * Everything that happened, in an order that does not depend on who was quicker: what each agent did, and for each
 * task what became of it.
 */
export function golden(events: readonly SessionEvent[]): {
  readonly agents: Readonly<Record<string, readonly string[]>>;
  readonly tasks: Readonly<Record<string, readonly string[]>>;
} {
  // What it has cost so far is said when it comes to rest, which is no part of what happened.
  const isTask = ({ type }: SessionEvent): boolean => type.startsWith("troupe.task_");
  const isAccount = ({ type }: SessionEvent): boolean => type === "session.usage_checkpoint";
  const tasks: Record<string, string[]> = {};
  for (const { type, data } of events.filter(isTask)) {
    const { taskId, to, by } = data as { taskId: string; to?: string; by?: string };
    const told = [type.slice("troupe.task_".length), by ?? to].filter((word) => word !== undefined).join(" ");
    tasks[taskId] = [...(tasks[taskId] ?? []), told];
  }
  return { agents: storyByAgent(events.filter((event) => !isTask(event) && !isAccount(event))), tasks };
}

/** One turn in the log: a model call and the calls that it asked for, each a list of what stands between. */
export const turn = (calls: readonly (readonly string[])[] = []): string[] => [
  "assistant.turn_start",
  "troupe.usage",
  "assistant.message",
  ...calls.map(() => "tool.execution_start"),
  ...calls.flat(),
  ...calls.map(() => "tool.execution_complete"),
  "assistant.turn_end",
];

export const beginning = ["session.start", "session.model_change", "system.message", "user.message"];
