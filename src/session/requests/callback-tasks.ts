/**
 * Tasks that no definition of an agent says how to run: whoever starts one brings what runs it. It lives as long as the
 * process; after that such a task can be read and not continued.
 */
import type { AgentDefinition } from "../../agents/agent.ts";
import type { LimitReached } from "../../loop/run.ts";
import type { TurnEnd, TurnPorts } from "../../tasks/ports.ts";
import type { TaskRecord } from "../../tasks/task-record.ts";
import type { MessageReceipt } from "../../tools/agents/tasks.ts";
import type { AgentSetup } from "../agents/agent-run.ts";

export interface CallbackTask {
  /** `asAgent` runs it in the loop, with all that agents have around them. */
  run(task: TaskRecord, io: TurnPorts, asAgent: (how: AgentCallbackTask) => Promise<TurnEnd>): Promise<TurnEnd>;
  /** Takes what is written to it; without this, messages come back. */
  readonly tell?: ((message: string) => Promise<void>) | undefined;
  /** The definition that the errand runs; absent for work that no definition describes. */
  readonly definition?: AgentDefinition;
}

export interface AgentCallbackTask {
  outfit(): Promise<AgentSetup>;
  /** Asked before the budgets around it are. */
  limitReached(): LimitReached | undefined;
}

/** Whose it is and by which call; several of one call are told apart by the names they are shown with. */
type CallbackTaskKey = Pick<TaskRecord["spec"], "parentId" | "toolCallId" | "agentDisplayName">;

export class CallbackTasks {
  readonly #errands = new Map<string, CallbackTask>();

  /** Before the task is created, since it may run before its id is known. Undone by what is returned. */
  add(of: CallbackTaskKey, errand: CallbackTask): () => void {
    const key = keyOf(of);
    this.#errands.set(key, errand);
    return () => {
      if (this.#errands.get(key) === errand) this.#errands.delete(key);
    };
  }

  of({ spec }: Pick<TaskRecord, "spec">): CallbackTask | undefined {
    return this.#errands.get(keyOf(spec));
  }

  /** Forgets the executor of an agent that has ended. */
  ended({ spec }: Pick<TaskRecord, "spec">): void {
    if (this.of({ spec })?.definition) this.#errands.delete(keyOf(spec));
  }

  /** Undefined for a task that is told things in the usual way. */
  async tell(task: TaskRecord, message: string): Promise<MessageReceipt | undefined> {
    if (task.spec.kind !== "mcp-task") return undefined;
    const { id, status } = task;
    const errand = this.of(task);
    if (!errand?.tell || status !== "running") return { id, outcome: "refused", error: NO_MESSAGES };
    try {
      await errand.tell(message);
      return { id, outcome: "delivered" };
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      return { id, outcome: "refused", error: `The server did not take the message: ${reason}` };
    }
  }
}

const NO_MESSAGES =
  "It is a task of an MCP server, which takes no messages. Wait for its result (read_agent), or stop it (stop_agent) and call the tool again.";

const keyOf = ({ parentId, toolCallId, agentDisplayName }: CallbackTaskKey): string =>
  JSON.stringify([parentId ?? null, toolCallId, agentDisplayName]);
