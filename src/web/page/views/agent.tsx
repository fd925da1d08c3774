/** The facts of one agent, and what can be done with it. */
import type { JSX } from "preact";
import { sanitise } from "../../../lib/text.ts";
import type { AgentView, Spent, View } from "../../../view/view.ts";
import { waitChain, waitText } from "../../../view/waits.ts";
import { count, duration, exactMoney, tokens } from "../format.ts";
import { stateOf } from "../parts/agent-tree.tsx";
import { Fact, StateLabel } from "../parts/labels.tsx";
import { Markdown } from "../parts/markdown.tsx";
import { call } from "../server.ts";
import type { PageSession } from "../session-model.ts";
import { attempt, isExported, tell } from "../state.ts";

export interface PanelProps {
  readonly model: PageSession;
  readonly view: View;
  readonly agent: AgentView;
  readonly isLive: boolean;
}

export function AgentPanel({ model, view, agent, isLive }: PanelProps): JSX.Element {
  model.subscribe();
  const isMain = agent.kind === "main";
  const chain = waitChain(view, isMain ? undefined : agent.id);
  const end = agent.endedAt ?? (isLive && !isExported.value ? Date.now() : (model.time ?? agent.lastAt));
  return (
    <aside class="panel" aria-label="Agent">
      <h2>{isMain ? "Main agent" : sanitise(agent.id)}</h2>
      <p>
        <StateLabel state={stateOf(view, agent)} />
        {agent.reason !== undefined && <span class="hint"> {agent.reason.replaceAll("_", " ")}</span>}
      </p>
      {chain.length > 0 && <p class="waits">waits: {waitText(chain)}</p>}
      {isLive && !isExported.value && <Actions model={model} agent={agent} />}
      <Facts agent={agent} revision={model.revision.value} end={end} />
      {agent.error !== undefined && <p class="error">{sanitise(agent.error)}</p>}
      {agent.prompt !== "" && (
        <details open>
          <summary>prompt</summary>
          <Markdown text={agent.prompt} />
        </details>
      )}
      {agent.result !== undefined && agent.result !== "" && (
        <details open>
          <summary>result</summary>
          <Markdown text={agent.result} />
        </details>
      )}
      {agent.card && agent.card.steps.size > 0 && (
        <details open>
          <summary>steps</summary>
          <ul>
            {[...agent.card.steps.values()].map((step) => (
              <li key={step.stepId}>{sanitise(`${step.status}: ${step.note ?? step.stepId}`)}</li>
            ))}
          </ul>
        </details>
      )}
      {isMain && view.plan.items.length > 0 && (
        <details open>
          <summary>plan</summary>
          <ul class="todo">
            {view.plan.items.map(({ title, status }, index) => (
              <li key={index} class={status}>
                <span class="mark">{status === "done" ? "✓" : status === "in_progress" ? "▸" : "·"}</span>
                {sanitise(title)} <span class="hint">{status.replace("_", " ")}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
    </aside>
  );
}

interface FactsProps {
  readonly agent: AgentView;
  /** The end of its time, or now. */
  readonly end: number;
  /** The agent changes in place; a new number draws it again. */
  readonly revision: number;
}

function Facts({ agent, end }: FactsProps): JSX.Element {
  const isMain = agent.kind === "main";
  return (
    <dl>
      {!isMain && <Fact name="type">{sanitise(agent.displayName || agent.name)}</Fact>}
      {agent.model !== undefined && <Fact name="model">{sanitise(agent.model)}</Fact>}
      {agent.createdAt > 0 && <Fact name="time">{duration(Math.max(0, end - agent.startedAt))}</Fact>}
      <Fact name="model calls">{count(agent.modelCalls)}</Fact>
      <Fact name="tools">{count(agent.spent.tools)}</Fact>
      <Fact name="tokens in">{`${tokens(agent.spent.inputTokens)} (${tokens(agent.spent.cacheReadTokens)} cached)`}</Fact>
      <Fact name="tokens out">{tokens(agent.spent.outputTokens)}</Fact>
      <Fact name="cost">{agent.spent.requests === 0 ? "–" : costOf(agent.spent)}</Fact>
      {agent.subtree.costUsd !== agent.spent.costUsd && <Fact name="with its agents">{costOf(agent.subtree)}</Fact>}
      {agent.context && (
        <Fact name="context">{`${tokens(agent.context.currentTokens)} of ${tokens(agent.context.tokenLimit)}`}</Fact>
      )}
      {agent.worktree !== undefined && <Fact name="worktree">{sanitise(agent.worktree)}</Fact>}
      {agent.lastTool && <Fact name="last tool">{sanitise(agent.lastTool.title)}</Fact>}
    </dl>
  );
}

function costOf({ costUsd, isCostKnown }: Spent): string {
  if (isCostKnown) return exactMoney(costUsd);
  return costUsd === 0 ? "unknown" : `≥ ${exactMoney(costUsd)}`;
}

/** Null for commands without an answer. */
type Done = { readonly sent?: boolean; readonly error?: string } | null;

async function command(method: string, params: Readonly<Record<string, unknown>>, done: string): Promise<void> {
  const result = await attempt(call<Done>(method, params));
  if (result?.sent === false) tell(result.error ?? "The agent did not accept the message.", true);
  else if (result !== undefined) tell(done);
}

/** An agent that has ended cannot be resumed; an idle one can. Agents of workers are stopped with their session. */
function Actions({ model, agent }: Pick<PanelProps, "model" | "agent">): JSX.Element | null {
  model.subscribe();
  const sessionId = model.id;
  const isBusy = agent.status === "running" || agent.status === "queued";
  const run = (method: string, params: Readonly<Record<string, unknown>>, done: string): void =>
    void command(method, { sessionId, ...params }, done);
  if (agent.kind === "main") {
    const stop = (): void => run("session.interruptMainTurn", { flushQueued: true }, "Stopped the main agent.");
    return (
      <div class="actions">
        {isBusy && (
          <button type="button" class="danger" data-action="stop" onClick={stop}>
            Stop the answer
          </button>
        )}
      </div>
    );
  }
  if (model.isInDatabase) return null;
  return (
    <div class="actions">
      {isBusy && (
        <button
          type="button"
          class="danger"
          data-action="stop"
          onClick={() => run("session.tasks.cancel", { id: agent.id }, "Stopped the agent.")}
        >
          Stop
        </button>
      )}
      {isBusy && agent.isAwaited && (
        <button
          type="button"
          data-action="background"
          onClick={() => run("session.tasks.promoteToBackground", { id: agent.id }, "Moved to the background.")}
        >
          To the background
        </button>
      )}
      {agent.status === "idle" && (
        <button
          type="button"
          data-action="resume"
          onClick={() =>
            run(
              "session.tasks.sendMessage",
              { id: agent.id, message: "Continue where you stopped." },
              "Asked it to continue.",
            )
          }
        >
          Resume
        </button>
      )}
    </div>
  );
}
