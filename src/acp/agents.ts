import { basename, isAbsolute, join, relative } from "node:path";
import type { ContentBlock, StateUpdate } from "@agentclientprotocol/sdk/unstable";
import { defined } from "../lib/defined.ts";
import type { EventData, SessionEvent } from "../protocol/event.ts";
import { type AgentNode, AgentTree } from "../sdk/agent-tree.ts";
import { textBlock } from "./content.ts";
import type { Update } from "./update.ts";

/** The session in which an agent's events are shown, and the ids of its calls there. */
export interface Stage {
  readonly sessionId: string;
  /** The agent's working directory. */
  readonly cwd: string;
  /** Absent for the main agent, and for an agent with a session of its own. */
  readonly agent?: AgentNode;
  idOf(toolCallId: string): string;
}

/**
 * The subagents as an editor shows them. Editors that support the subagents draft get a session for each agent. All
 * others see the agents' calls among those of the main agent, with the agent's name.
 */
export class EditorAgents {
  readonly #sessionId: string;
  readonly #cwd: string;
  readonly #haveSessions: boolean;
  readonly #tree = new AgentTree();
  /** The last state that the editor was sent, by agent. */
  readonly #states = new Map<string, string>();
  readonly #notAgents = new Set<string>();
  /** The working directories of agents with a work tree of their own. */
  readonly #folders = new Map<string, string>();
  /** The session's working directory within its repository. */
  #prefix = "";

  constructor(parts: { readonly sessionId: string; readonly cwd: string; readonly haveSessions: boolean }) {
    this.#sessionId = parts.sessionId;
    this.#cwd = parts.cwd;
    this.#haveSessions = parts.haveSessions;
  }

  /** Returns the updates about the agents themselves. Pass every event in order. */
  apply(event: SessionEvent): readonly Update[] {
    this.#locate(event);
    const changed = this.#tree.apply(event);
    if (!this.#haveSessions) return [];
    if (event.type === "troupe.task_message") return this.#message(event.data);
    const updates = changed && !this.#notAgents.has(changed.id) ? this.#told(changed) : [];
    if (event.type !== "troupe.task_created" || !changed || updates.length === 0) return updates;
    const { taskId, prompt: content } = event.data;
    return [...updates, ...this.#message({ taskId, messageId: `${taskId}-prompt`, content })];
  }

  /** Returns undefined for agents that the user did not ask for. */
  stageOf(agentId: string | undefined): Stage | undefined {
    if (agentId === undefined) return { sessionId: this.#sessionId, cwd: this.#cwd, idOf: (id) => id };
    const agent = this.#tree.get(agentId);
    if (!agent || this.#notAgents.has(agentId)) return undefined;
    const cwd = this.#folders.get(agentId) ?? this.#cwd;
    if (this.#haveSessions) return { sessionId: this.#sessionOf(agentId), cwd, idOf: (id) => id };
    // Models number their calls, so calls of two agents may have the same id.
    return { sessionId: this.#sessionId, cwd, agent, idOf: (id) => `${agentId}:${id}` };
  }

  /** Returns the agent that has this session. */
  agentOf(sessionId: string): string | undefined {
    const prefix = this.#sessionOf("");
    const id = sessionId.startsWith(prefix) ? sessionId.slice(prefix.length) : undefined;
    return id !== undefined && this.#haveSessions && this.#tree.get(id) ? id : undefined;
  }

  /** Records whether the agent waits for the user, and returns the updates. */
  waits(agentId: string | undefined, isWaiting: boolean): readonly Update[] {
    const agent = agentId === undefined ? undefined : this.#tree.get(agentId);
    if (!agent || !this.#haveSessions) return [];
    return this.#told(agent, isWaiting ? { state: "requires_action" } : stateOf(agent));
  }

  /** Records the agents' working directories, and the tasks that are not agents. */
  #locate({ type, data }: SessionEvent): void {
    if (type === "session.start" || type === "session.resume") {
      const { gitRoot, cwd } = data.context ?? {};
      const inside = gitRoot === undefined || cwd === undefined ? "" : relative(gitRoot, cwd);
      this.#prefix = isAbsolute(inside) || inside.startsWith("..") ? "" : inside;
    }
    if (type !== "troupe.task_created") return;
    const { taskId, kind, worktree } = data;
    if (kind !== "agent") this.#notAgents.add(taskId);
    if (worktree === undefined) return;
    // The folder of all work trees, or the tree of the agent's parent.
    const root = basename(worktree) === "worktrees" ? join(worktree, taskId) : worktree;
    this.#folders.set(taskId, join(root, this.#prefix));
  }

  #told(agent: AgentNode, state: StateUpdate | undefined = stateOf(agent)): readonly Update[] {
    const known = this.#states.get(agent.id);
    const now = JSON.stringify(state ?? null);
    if (known === now) return [];
    this.#states.set(agent.id, now);
    const { displayName: title, description } = agent;
    const cwd = this.#folders.get(agent.id);
    const about = known === undefined && {
      title,
      description,
      capabilities: { cancel: {} },
      ...defined({ cwd }),
    };
    return [
      {
        sessionId: agent.parentId === undefined ? this.#sessionId : this.#sessionOf(agent.parentId),
        update: {
          sessionUpdate: "subagent_update",
          sessionId: this.#sessionOf(agent.id),
          ...about,
          ...defined({ state }),
        },
      },
    ];
  }

  /** Both sessions show the message, each under an id of its own. */
  #message(data: Pick<EventData<"troupe.task_message">, "taskId" | "messageId" | "content" | "from">): Update[] {
    const { taskId, messageId, content, from = this.#tree.get(taskId)?.parentId } = data;
    if (this.#notAgents.has(taskId) || !this.#tree.get(taskId)) return [];
    const isAgent = from !== undefined && this.#tree.get(from) !== undefined;
    const sender = isAgent ? this.#sessionOf(from) : this.#sessionId;
    const recipient = this.#sessionOf(taskId);
    const blocks: ContentBlock[] = [textBlock(content)];
    const update = {
      sessionUpdate: "session_message" as const,
      senderSessionId: sender,
      recipientSessionId: recipient,
      content: blocks,
    };
    const [sent, received] = [`${messageId}-sent`, `${messageId}-received`];
    return [
      { sessionId: sender, update: { ...update, messageId: sent, recipientMessageId: received } },
      { sessionId: recipient, update: { ...update, messageId: received, senderMessageId: sent } },
    ];
  }

  #sessionOf(agentId: string): string {
    return `${this.#sessionId}/agents/${agentId}`;
  }
}

const INTERNAL_ERROR = -32603;

function stateOf({ status, error = "The agent failed." }: AgentNode): StateUpdate | undefined {
  switch (status) {
    case "queued":
      return undefined;
    case "running":
      return { state: "running" };
    case "idle":
    case "completed":
      return { state: "idle", stopReason: "end_turn" };
    case "cancelled":
      return { state: "idle", stopReason: "cancelled" };
    case "failed":
      return { state: "idle", stopReason: "error", error: { code: INTERNAL_ERROR, message: error } };
  }
}
