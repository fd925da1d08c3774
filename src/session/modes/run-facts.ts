import { defined } from "../../lib/defined.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import { fileEditTools } from "../../protocol/permission.ts";
import type { Outcome } from "../turn/answer-runner.ts";
import type { AutopilotStop, RunFacts } from "./autopilot.ts";

const MAX_COMPARED_CHARACTERS = 200_000;

/** Converts the end of an answer for autopilot. */
export function stopOf(
  outcome: Outcome,
  seen: { readonly facts: RunFacts; readonly pending: boolean; readonly autopilot: boolean },
): AutopilotStop {
  switch (outcome.kind) {
    case "done":
      return { kind: "done", ...seen };
    case "aborted":
      return { kind: "aborted" };
    case "limit":
      return { kind: "limit", message: outcome.reached.message };
    case "error":
    case "failed":
      return { kind: "error", message: outcome.error.message };
  }
}

/**
 * Folds the events of an answer, including ephemeral ones, into facts for autopilot. Changes by any agent count; answer
 * and calls are the main agent's. Answers can last for days, so it holds no events.
 */
export class RunFactsFold {
  /** Calls of writing tools that have not ended. */
  readonly #writing = new Set<string>();
  #calls = "";
  #answer = "";
  #changed = false;
  #completed: RunFacts["completed"];

  apply(event: SessionEvent): void {
    const isMain = event.agentId === undefined;
    switch (event.type) {
      case "assistant.message":
        if (isMain) this.#answer = event.data.content;
        break;
      case "tool.execution_start":
        // Declaring the task done is not work on it.
        if (isMain && event.data.toolName !== "task_complete")
          this.#addCall(JSON.stringify([event.data.toolName, event.data.arguments ?? null]));
        if (fileEditTools.has(event.data.toolName)) this.#writing.add(event.data.toolCallId);
        break;
      case "tool.execution_complete":
        if (this.#writing.delete(event.data.toolCallId)) this.#changed ||= event.data.success;
        break;
      case "session.todos_changed":
        this.#changed = true;
        break;
      case "session.task_complete": {
        const { summary, success } = event.data;
        if (isMain) this.#completed = success === false ? undefined : defined({ summary });
      }
    }
  }

  #addCall(call: string): void {
    if (this.#calls.length >= MAX_COMPARED_CHARACTERS) return;
    this.#calls = [...(this.#calls === "" ? [] : [this.#calls]), call].join("\n").slice(0, MAX_COMPARED_CHARACTERS);
  }

  /** Returns the facts since the last call, and starts anew. */
  take(): RunFacts {
    const facts = {
      ...defined({ completed: this.#completed }),
      answer: this.#answer.trim().slice(0, MAX_COMPARED_CHARACTERS),
      calls: this.#calls,
      changed: this.#changed,
    };
    this.#writing.clear();
    [this.#calls, this.#answer, this.#changed, this.#completed] = ["", "", false, undefined];
    return facts;
  }
}
