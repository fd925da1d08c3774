import type { SessionEvent } from "../protocol/event.ts";

export interface AgentNode {
  readonly id: string;
  /** Who started it; absent for those of the main agent. */
  readonly parentId?: string;
  readonly toolCallId: string;
  readonly name: string;
  readonly displayName: string;
  readonly description: string;
  status: "queued" | "running" | "idle" | "completed" | "failed" | "cancelled";
  error?: string;
  startedAt?: Date;
  endedAt?: Date;
  /** What it did last, and how much it has used. */
  lastTool?: string;
  toolCalls: number;
  tokens: number;
  readonly children: AgentNode[];
}

/**
 * The agents of a session, folded from its events: give it every event, in order, live or from `getEvents`. Reading it
 * costs nothing, and the same events give the same tree.
 */
export class AgentTree {
  readonly roots: AgentNode[] = [];
  readonly #nodes = new Map<string, AgentNode>();
  /** Agents whose every state is told by `troupe.task_state`. */
  readonly #tracked = new Set<string>();

  get(id: string): AgentNode | undefined {
    return this.#nodes.get(id);
  }

  get all(): readonly AgentNode[] {
    return [...this.#nodes.values()];
  }

  /** Returns the agent that changed, if one did. */
  apply(event: SessionEvent): AgentNode | undefined {
    switch (event.type) {
      case "troupe.task_created":
        this.#tracked.add(event.data.taskId);
        return this.#add(event.data.taskId, { ...event.data, status: "queued" });
      case "troupe.task_state":
        return this.#change(event.data.taskId, (node) => {
          node.status = event.data.to;
          if (event.data.error !== undefined) node.error = event.data.error;
          if (isOver(event.data.to)) node.endedAt = new Date(event.timestamp);
          else delete node.endedAt;
        });
      case "subagent.started": {
        const id = event.agentId ?? event.data.toolCallId;
        const node =
          this.#nodes.get(id) ??
          this.#add(id, { ...event.data, description: event.data.agentDescription, status: "running" });
        if (!this.#tracked.has(id)) node.status = "running";
        node.startedAt ??= new Date(event.timestamp);
        return node;
      }
      case "subagent.completed":
      case "subagent.failed": {
        const id = event.agentId ?? event.data.toolCallId;
        // An agent can rest between two messages, or outlive the process: its task states say so.
        if (this.#tracked.has(id)) return undefined;
        return this.#change(id, (node) => {
          node.status = event.type === "subagent.failed" ? "failed" : event.data.cancelled ? "cancelled" : "completed";
          if (event.type === "subagent.failed") node.error = event.data.error;
          node.endedAt = new Date(event.timestamp);
        });
      }
      case "tool.execution_start":
        return this.#change(event.agentId, (node) => {
          node.lastTool = event.data.toolName;
          node.toolCalls++;
        });
      case "troupe.usage":
        return this.#change(event.agentId, (node) => {
          node.tokens += event.data.inputTokens + event.data.outputTokens;
        });
      default:
        return undefined;
    }
  }

  #add(
    id: string,
    about: {
      readonly parentId?: string;
      readonly toolCallId: string;
      readonly agentName: string;
      readonly agentDisplayName: string;
      readonly description: string;
      readonly status: AgentNode["status"];
    },
  ): AgentNode {
    const parent = about.parentId === undefined ? undefined : this.#nodes.get(about.parentId);
    const node: AgentNode = {
      id,
      ...(parent && { parentId: parent.id }),
      toolCallId: about.toolCallId,
      name: about.agentName,
      displayName: about.agentDisplayName,
      description: about.description,
      status: about.status,
      toolCalls: 0,
      tokens: 0,
      children: [],
    };
    this.#nodes.set(id, node);
    (parent?.children ?? this.roots).push(node);
    return node;
  }

  #change(id: string | undefined, change: (node: AgentNode) => void): AgentNode | undefined {
    const node = id === undefined ? undefined : this.#nodes.get(id);
    if (node) change(node);
    return node;
  }
}

const isOver = (status: AgentNode["status"]): boolean =>
  status === "completed" || status === "failed" || status === "cancelled";
