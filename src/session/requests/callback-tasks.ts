/**
 * Tasks that are run by a callback instead of an agent definition. The callback lives as long as the process;
 * afterwards the task can be read but not resumed.
 */
import type { AgentDefinition } from "../../agents/agent.ts";
import type { LimitReached } from "../../loop/run.ts";
import type { AnswerEnd, AnswerPorts } from "../../tasks/ports.ts";
import type { TaskRecord } from "../../tasks/task-record.ts";
import type { MessageReceipt } from "../../tools/agents/task-port.ts";
import type { AgentSetup } from "../agents/agent-run.ts";

export interface CallbackTask {
  /** Runs the task. `asAgent` runs it in the loop, like other agents. */
  run(
    task: TaskRecord,
    io: AnswerPorts,
    asAgent: (agentTask: AgentCallbackTask) => Promise<AnswerEnd>,
  ): Promise<AnswerEnd>;
  /** Accepts messages to the task. Without it, messages are refused. */
  readonly tell?: ((message: string) => Promise<void>) | undefined;
  /** The definition that the task runs; absent for work without one. */
  readonly definition?: AgentDefinition;
}

export interface AgentCallbackTask {
  agentSetup(): Promise<AgentSetup>;
  /** Checked before the budgets. */
  limitReached(): LimitReached | undefined;
}

/** The parent and the call that started the task. Several tasks of one call differ in their display names. */
type CallbackTaskKey = Pick<TaskRecord["spec"], "parentId" | "toolCallId" | "agentDisplayName">;

export class CallbackTasks {
  readonly #callbackTasks = new Map<string, CallbackTask>();

  /**
   * Registers a callback. Call it before creating the task, which may run before its id is known. Returns a function
   * that undoes this.
   */
  add(of: CallbackTaskKey, callbackTask: CallbackTask): () => void {
    const key = keyOf(of);
    this.#callbackTasks.set(key, callbackTask);
    return () => {
      if (this.#callbackTasks.get(key) === callbackTask) this.#callbackTasks.delete(key);
    };
  }

  of({ spec }: Pick<TaskRecord, "spec">): CallbackTask | undefined {
    return this.#callbackTasks.get(keyOf(spec));
  }

  /** Removes the callback of an agent that has ended. */
  removeEnded({ spec }: Pick<TaskRecord, "spec">): void {
    if (this.of({ spec })?.definition) this.#callbackTasks.delete(keyOf(spec));
  }

  /** Passes a message to an MCP task. Returns undefined for other tasks, which receive messages in the usual way. */
  async tell(task: TaskRecord, message: string): Promise<MessageReceipt | undefined> {
    if (task.spec.kind !== "mcp-task") return undefined;
    const { id, status } = task;
    const callbackTask = this.of(task);
    if (!callbackTask?.tell || status !== "running") return { id, outcome: "refused", error: NO_MESSAGES };
    try {
      await callbackTask.tell(message);
      return { id, outcome: "delivered" };
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      return { id, outcome: "refused", error: `The server did not accept the message: ${reason}` };
    }
  }
}

const NO_MESSAGES =
  "It is a task of an MCP server, which takes no messages. Wait for its result (read_agent), or stop it (stop_agent) and call the tool again.";

const keyOf = ({ parentId, toolCallId, agentDisplayName }: CallbackTaskKey): string =>
  JSON.stringify([parentId ?? null, toolCallId, agentDisplayName]);
