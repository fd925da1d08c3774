import { Factories } from "../../factories/factories.ts";
import type {
  AgentEnd,
  AgentRequest,
  AgentState,
  FactorySource,
  SettledAttempt,
  WorkingAgent,
} from "../../factories/ports.ts";
import { defined } from "../../lib/defined.ts";
import { quoted, wrapInTag } from "../../lib/quoting.ts";
import { clip } from "../../lib/text.ts";
import type { Session } from "../../session/session.ts";
import type { Registry } from "../../tasks/registry.ts";
import { isIdleOrEnded } from "../../tasks/task-state.ts";

/** The default agent of a factory. */
const USUAL_AGENT = "general-purpose";
/** Limit for one wait; agents have their own limits. */
const MAX_WAIT_MS = 24 * 60 * 60 * 1000;

/** Opens the factories of a session with the runs in its log. Their agents are tasks of the session. */
export async function openFactories(session: Session, source: FactorySource): Promise<Factories> {
  const { stamp } = session.record;
  const factories = new Factories(
    {
      stamp,
      emit: session.record.emit,
      source,
      startAgent: (request) => startAgent(session, request),
      agentState: (agentId) => stateOf(session.agents.tasks, agentId),
      onSettled: (settled) => session.queue.notify(settledNotice(settled)),
    },
    session.events,
  );
  session.subscribe((event) => {
    if (!event.ephemeral) factories.observe(event);
  });
  // Close factories before their agents are aborted: a body would take the abort for their answer.
  session.queue.closed.addEventListener("abort", () => void factories.close(), { once: true });
  await factories.restore();
  return factories;
}

function settledNotice({
  runId,
  factoryName,
  attempt,
  status,
  text,
}: SettledAttempt): Parameters<Session["queue"]["notify"]>[0] {
  const about = `The factory ${quoted(factoryName)} has settled: ${status}. Run: ${runId}, attempt ${attempt}.`;
  const content = wrapInTag("factory_run_settled", {}, [about, text && quoted(text)].filter(Boolean).join("\n\n"));
  return { content, kind: { type: "unclassified" } };
}

async function startAgent(session: Session, request: AgentRequest): Promise<WorkingAgent> {
  const { runId, prompt, label, agent, model, reasoningEffort, schema, costUsd } = request;
  const id = await session.agents.start({
    prompt,
    factoryRunId: runId,
    agentType: agent ?? USUAL_AGENT,
    name: clip(label ?? agent ?? "factory-agent", 60),
    description: clip(label ?? "works for a factory", 200),
    ...defined({ model, reasoningEffort }),
    ...(schema !== undefined && {
      outputSchema: schema as NonNullable<Parameters<Session["agents"]["start"]>[0]["outputSchema"]>,
    }),
    ...defined({ costUsd }),
  });
  const { tasks } = session.agents;
  if (!tasks) throw new Error("a task was started in a session without tasks");
  return {
    id,
    toolCallId: tasks.get(id)?.spec.toolCallId ?? id,
    ended: endOf(tasks, id),
    stop: async () => void (await tasks.cancel(id)),
  };
}

async function endOf(tasks: Registry, id: string): Promise<AgentEnd> {
  for (;;) {
    await tasks.wait(id, { timeoutMs: MAX_WAIT_MS });
    const task = tasks.get(id);
    if (!task) return { why: "it is gone" };
    if (!isIdleOrEnded(task.status)) continue;
    const { answers } = await tasks.report(id);
    const response = answers.at(-1)?.response;
    if (task.status === "completed" && response) return { response };
    const { limit } = task;
    return {
      ...((limit === "cost" || limit === "price") && { stoppedBy: limit }),
      why: task.error ?? `it ended ${task.status}${task.reason ? ` (${task.reason})` : ""}`,
    };
  }
}

function stateOf(tasks: Registry | undefined, agentId: string): AgentState | undefined {
  const view = tasks?.view(agentId);
  const task = tasks?.get(agentId);
  if (!tasks || !view || !task) return undefined;
  return {
    status: view.status,
    agentType: view.agentType,
    displayName: task.spec.agentDisplayName,
    ...defined({ model: view.model, startedAt: task.startedAt, completedAt: task.endedAt }),
    activeMs: view.activeMs,
    costUsd: tasks.usage(agentId).costUsd,
  };
}
