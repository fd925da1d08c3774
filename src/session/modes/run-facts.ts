import { defined } from "../../lib/defined.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import { fileEditTools } from "../../protocol/permission.ts";
import type { Outcome } from "../turn/turn-runner.ts";
import type { AutopilotStop, RunFacts } from "./autopilot.ts";

const MAX_COMPARED_CHARACTERS = 200_000;

/** Converts the end of an answer for autopilot. `events`: as for `runFacts`. */
export function stopOf(
  outcome: Outcome,
  seen: { readonly events: readonly SessionEvent[]; readonly pending: boolean; readonly autopilot: boolean },
): AutopilotStop {
  switch (outcome.kind) {
    case "done":
      return { kind: "done", facts: runFacts(seen.events), pending: seen.pending, autopilot: seen.autopilot };
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
 * Extracts the facts of one answer for autopilot. `events` are those since the message that started it, including
 * ephemeral ones. Changes by any agent count; answer and calls are the main agent's.
 */
export function runFacts(events: readonly SessionEvent[]): RunFacts {
  const writing = new Set<string>();
  const calls: string[] = [];
  let answer = "";
  let changed = false;
  let completed: RunFacts["completed"];
  for (const event of events) {
    const isMain = event.agentId === undefined;
    switch (event.type) {
      case "assistant.message":
        if (isMain) answer = event.data.content;
        break;
      case "tool.execution_start":
        // Declaring the task done is not work on it.
        if (isMain && event.data.toolName !== "task_complete")
          calls.push(JSON.stringify([event.data.toolName, event.data.arguments ?? null]));
        if (fileEditTools.has(event.data.toolName)) writing.add(event.data.toolCallId);
        break;
      case "tool.execution_complete":
        changed ||= event.data.success && writing.has(event.data.toolCallId);
        break;
      case "session.todos_changed":
        changed = true;
        break;
      case "session.task_complete": {
        const { summary, success } = event.data;
        if (isMain) completed = success === false ? undefined : summary === undefined ? {} : { summary };
      }
    }
  }
  return {
    ...defined({ completed }),
    answer: answer.trim().slice(0, MAX_COMPARED_CHARACTERS),
    calls: calls.join("\n").slice(0, MAX_COMPARED_CHARACTERS),
    changed,
  };
}
