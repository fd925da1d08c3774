/** The agents in the order in which a tree shows them. */
import { type Labels, labelsFor, statusLabel } from "../protocol/labels.ts";
import { isBusy } from "./draft.ts";
import type { AgentView, View } from "./view.ts";

/** A line of the tree: an agent, or the head of the coordinated workers of one message. */
export type AgentRow =
  | { readonly kind: "agent"; readonly agent: AgentView; readonly depth: number }
  | { readonly kind: "group"; readonly agents: readonly AgentView[]; readonly depth: number };

/**
 * Each agent before those that it started; workers below the head of their group. The main agent is not among them. Agents
 * that `isShown` leaves out do not indent those below them.
 */
export function agentRows(view: View, isShown: (agent: AgentView) => boolean = () => true): readonly AgentRow[] {
  const rows: AgentRow[] = [];
  const below = childrenByParent(view);
  const visit = (parent: string | undefined, depth: number): void => {
    const groups = new Set<number>();
    const one = (agent: AgentView, level: number): void => {
      const shown = isShown(agent);
      if (shown) rows.push({ kind: "agent", agent, depth: level });
      visit(agent.id, shown ? level + 1 : level);
    };
    const children = below.get(parent) ?? [];
    for (const agent of children) {
      const group = isShown(agent) ? agent.card?.group : undefined;
      if (group === undefined) one(agent, depth);
      else if (!groups.has(group)) {
        groups.add(group);
        const agents = children.filter((other) => other.card?.group === group && isShown(other));
        rows.push({ kind: "group", agents, depth });
        for (const worker of agents) one(worker, depth + 1);
      }
    }
  };
  visit(undefined, 0);
  return rows;
}

function childrenByParent(view: View): ReadonlyMap<string | undefined, readonly AgentView[]> {
  const below = new Map<string | undefined, AgentView[]>();
  for (const agent of view.agents.values()) {
    const parent = view.agents.has(agent.parentId ?? "") ? agent.parentId : undefined;
    const siblings = below.get(parent);
    if (siblings) siblings.push(agent);
    else below.set(parent, [agent]);
  }
  return below;
}

/** Whether its card belongs to the message that its coordinator is working on. */
export function isCurrentWorker(view: View, { card, parentId }: AgentView): boolean {
  const coordinator = parentId === undefined ? view.main : view.agents.get(parentId);
  return card !== undefined && card.group === (coordinator?.messages ?? 0);
}

/** "2 workers: 1 at work, 1 completed". */
export function groupText(agents: readonly AgentView[], labels: Labels = labelsFor({})): string {
  const counts = new Map<string, number>();
  for (const { card } of agents) {
    const status = statusLabel(card?.result?.status ?? "at_work", labels);
    counts.set(status, (counts.get(status) ?? 0) + 1);
  }
  const states = [...counts].map(([status, count]) => `${count} ${status}`);
  return `${agents.length} ${agents.length === 1 ? labels.worker : labels.workers}: ${states.join(", ")}`;
}

/** Agents at work, in the order they were started. Sidekicks are not among them: nobody waits for these. */
export function busyAgents(view: View): readonly AgentView[] {
  return [...view.agents.values()].filter((agent) => agent.kind !== "sidekick" && isBusy(agent));
}

/** The last line that the agent wrote or read, with what is still being written. */
export function currentOutput(agent: AgentView): string {
  const live = agent.streaming?.tail?.text ?? "";
  const line = live.slice(live.trimEnd().lastIndexOf("\n") + 1).trim();
  if (line !== "") return line;
  const [running] = agent.tools.values();
  const tail = running?.output.tail.trimEnd() ?? "";
  return tail.slice(tail.lastIndexOf("\n") + 1).trim() || agent.lastOutput;
}
