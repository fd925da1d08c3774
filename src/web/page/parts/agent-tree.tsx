/** The agents of a session as a tree. The selection is the page's: lanes and transcript follow it. */
import type { JSX } from "preact";
import { sanitise } from "../../../lib/text.ts";
import { agentRows, currentOutput, groupText } from "../../../view/agent-rows.ts";
import type { AgentView, View } from "../../../view/view.ts";
import { openAttention, waitChain, waitText } from "../../../view/waits.ts";
import { money } from "../format.ts";
import { StateLabel } from "./labels.tsx";
import { VirtualList } from "./virtual-list.tsx";

export interface TreeProps {
  readonly view: View;
  readonly selected: string;
  /** The view changes in place; a new number draws it again. */
  readonly revision: number;
  onSelect(id: string): void;
}

interface Entry {
  readonly key: string;
  readonly agent: AgentView | undefined;
  readonly text: string;
  readonly depth: number;
}

export function AgentTree({ view, selected, revision, onSelect }: TreeProps): JSX.Element {
  const entries = treeEntries(view);
  return (
    <VirtualList
      class="tree"
      label="Agents"
      items={entries}
      guess={46}
      focusKey={`agent ${selected}`}
      keyOf={({ key }) => key}
      render={({ agent, text, depth }) =>
        agent ? (
          <AgentRow
            agent={agent}
            view={view}
            depth={depth}
            isSelected={agent.id === selected}
            revision={revision}
            onSelect={onSelect}
          />
        ) : (
          <div class="group" style={{ paddingLeft: `${8 + depth * 14}px` }}>
            {text}
          </div>
        )
      }
    />
  );
}

/** The agent's state; an agent at work that asked a person needs that person. */
export function stateOf(view: View, agent: AgentView): AgentView["status"] | "waiting" {
  const isAsking = openAttention(view).some(({ agentId = "" }) => agentId === agent.id);
  return agent.status === "running" && isAsking ? "waiting" : agent.status;
}

export function treeEntries(view: View): Entry[] {
  const rows = agentRows(view);
  return [
    { key: "agent ", agent: view.main, text: "", depth: 0 },
    ...rows.map(
      (row, index): Entry =>
        row.kind === "agent"
          ? { key: `agent ${row.agent.id}`, agent: row.agent, text: "", depth: row.depth + 1 }
          : { key: `group ${index}`, agent: undefined, text: groupText(row.agents), depth: row.depth + 1 },
    ),
  ];
}

interface RowProps {
  readonly agent: AgentView;
  readonly view: View;
  readonly depth: number;
  readonly isSelected: boolean;
  readonly revision: number;
  onSelect(id: string): void;
}

function AgentRow({ agent, view, depth, isSelected, onSelect }: RowProps): JSX.Element {
  const isMain = agent.kind === "main";
  const chain = waitChain(view, isMain ? undefined : agent.id);
  const about = chain.length > 0 ? `waits: ${waitText(chain)}` : currentOutput(agent) || agent.description;
  return (
    <button
      type="button"
      class={`agent-row ${isSelected ? "selected" : ""}`}
      aria-current={isSelected}
      style={{ paddingLeft: `${8 + depth * 14}px` }}
      onClick={() => onSelect(agent.id)}
    >
      <span class="top">
        <span class="name">{isMain ? "main agent" : sanitise(agent.id)}</span>
        {!isMain && <span class="type">{sanitise(agent.name)}</span>}
        <StateLabel state={stateOf(view, agent)} />
        {agent.subtree.requests > 0 && (
          <span class="cost">{money(agent.subtree.costUsd, agent.subtree.isCostKnown)}</span>
        )}
      </span>
      <span class={`about ${chain.length > 0 ? "waits" : ""}`}>{sanitise(about)}</span>
    </button>
  );
}
