import { defined } from "../lib/defined.ts";
import type { SessionEvent } from "../protocol/event.ts";
import { SessionView } from "../view/session-view.ts";
import type { AgentView } from "../view/view.ts";

export interface AgentNode {
  readonly id: string;
  /** The agent that started it. Absent for agents of the main agent. */
  readonly parentId?: string;
  readonly toolCallId: string;
  readonly name: string;
  readonly displayName: string;
  readonly description: string;
  status: AgentView["status"];
  error?: string;
  startedAt?: Date;
  endedAt?: Date;
  /** Its last tool and its usage. */
  lastTool?: string;
  toolCalls: number;
  tokens: number;
  readonly children: AgentNode[];
}

/**
 * The agents of a session, computed from its events. Pass every event in order, live or from `getEvents`. The same
 * events give the same tree.
 */
export class AgentTree {
  readonly roots: AgentNode[] = [];
  readonly #nodes = new Map<string, AgentNode>();
  readonly #folded = new SessionView();

  get(id: string): AgentNode | undefined {
    return this.#nodes.get(id);
  }

  get all(): readonly AgentNode[] {
    return [...this.#nodes.values()];
  }

  /** Returns the agent that the event is about, or undefined. */
  apply(event: SessionEvent): AgentNode | undefined {
    const agent = this.#folded.apply(event);
    // Discards transcripts, which would grow unused: only the agents are needed.
    this.#folded.drain(event.agentId);
    if (!agent || agent.kind === "main" || agent.kind === "sidekick") return undefined;
    const node = this.#nodes.get(agent.id) ?? this.#add(agent);
    update(node, agent);
    return node;
  }

  #add({ id, parentId, toolCallId = "", name, displayName, description }: AgentView): AgentNode {
    const parent = parentId === undefined ? undefined : this.#nodes.get(parentId);
    const node: AgentNode = {
      id,
      ...defined({ parentId: parent?.id }),
      toolCallId,
      name,
      displayName,
      description,
      status: "queued",
      toolCalls: 0,
      tokens: 0,
      children: [],
    };
    this.#nodes.set(id, node);
    (parent?.children ?? this.roots).push(node);
    return node;
  }
}

function update(node: AgentNode, agent: AgentView): void {
  const { status, error, lastTool, startedAt, endedAt, spent, tools } = agent;
  node.status = status;
  if (error !== undefined) node.error = error;
  if (status === "running") node.startedAt ??= new Date(startedAt);
  if (endedAt !== undefined && status !== "idle") node.endedAt = new Date(endedAt);
  else delete node.endedAt;
  if (lastTool) node.lastTool = lastTool.name;
  node.toolCalls = spent.tools + tools.size;
  node.tokens = spent.inputTokens + spent.outputTokens;
}
