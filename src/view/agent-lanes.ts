/** Times of agents for a time axis: model calls, tools, waits for a person, and waits for a free slot, told apart. */
import type { SessionEvent } from "../protocol/event.ts";

export type SpanKind = "model" | "tool" | "wait" | "queue";

export interface Span {
  readonly kind: SpanKind;
  readonly title: string;
  readonly from: number;
  /** Undefined while it lasts. */
  to: number | undefined;
  isFailed: boolean;
  /** Number of stored events before it began. */
  readonly sequence: number;
}

/** Folds events into spans by agent. The main agent's id is the empty string. */
export class AgentLanes {
  readonly spans = new Map<string, Span[]>();
  readonly #open = new Map<string, Span>();
  #sequence = 0;
  /** Times of the first and the last event. */
  from: number | undefined;
  to = 0;

  apply(event: SessionEvent): void {
    if (event.ephemeral === true) return;
    const at = Date.parse(event.timestamp);
    this.from ??= at;
    this.to = Math.max(this.to, at);
    this.#fold(event, event.agentId ?? "", at);
    this.#sequence++;
  }

  #fold(event: SessionEvent, agentId: string, at: number): void {
    switch (event.type) {
      case "assistant.turn_start":
        this.#begin(`model ${agentId}`, agentId, { kind: "model", title: event.data.model ?? "model", from: at });
        return;
      case "assistant.message":
      case "assistant.turn_end":
        this.#end(`model ${agentId}`, at);
        return;
      case "tool.execution_start":
        this.#begin(`tool ${event.data.toolCallId}`, agentId, { kind: "tool", title: event.data.toolName, from: at });
        return;
      case "tool.execution_complete":
        this.#end(`tool ${event.data.toolCallId}`, at, !event.data.success);
        return;
      case "permission.requested":
        this.#begin(`wait ${event.data.requestId}`, agentId, { kind: "wait", title: "approval", from: at });
        return;
      case "permission.completed":
        this.#end(`wait ${event.data.requestId}`, at);
        return;
      case "troupe.question":
        this.#begin(`ask ${event.data.toolCallId}`, agentId, { kind: "wait", title: "question", from: at });
        return;
      case "troupe.task_created":
        this.#begin(`queue ${event.data.taskId}`, event.data.taskId, { kind: "queue", title: "queued", from: at });
        return;
      case "troupe.task_state":
        this.#end(`queue ${event.data.taskId}`, at);
        if (event.data.to !== "running" && event.data.to !== "queued") {
          this.#end(`model ${event.data.taskId}`, at, event.data.to === "failed");
        }
        return;
      case "session.error":
      case "abort":
      case "session.shutdown":
        if (agentId === "") this.#end("model ", at, event.type === "session.error");
        return;
      default:
    }
  }

  #begin(key: string, agentId: string, start: Pick<Span, "kind" | "title" | "from">): void {
    const span: Span = { ...start, to: undefined, isFailed: false, sequence: this.#sequence };
    this.#open.set(key, span);
    const lane = this.spans.get(agentId);
    if (lane) lane.push(span);
    else this.spans.set(agentId, [span]);
  }

  #end(key: string, at: number, isFailed = false): void {
    const span = this.#open.get(key);
    this.#open.delete(key);
    if (key.startsWith("tool ")) this.#end(key.replace("tool ", "ask "), at);
    if (!span) return;
    span.to = at;
    span.isFailed = isFailed;
  }
}
