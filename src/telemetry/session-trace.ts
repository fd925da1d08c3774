/**
 * Converts the events of one session to spans. A run of an agent is `invoke_agent`; below it, each model call is `chat`
 * and each tool call `execute_tool`. The run of a subagent is below the call that started it. It only listens: it
 * ignores unknown events, and nothing waits for it.
 */
import { defined } from "../lib/defined.ts";
import { readTraceContext, type SpanContext, type TraceContext, writeTraceContext } from "../lib/trace-context.ts";
import type { EventOf, EventType, SessionEvent } from "../protocol/event.ts";
import { AgentTrace, failing, seconds, type TracePorts } from "./agent-trace.ts";
import { clippedText, noticeSaid, toolSaid, userSaid } from "./content.ts";
import { type Attributes, childOf } from "./span.ts";

interface OpenCall {
  readonly context: SpanContext;
  readonly parentSpanId: string | undefined;
  /** Set when the call has started. */
  started?: EventOf<"tool.execution_start">;
}

const MAIN_NAME = "troupe";
/** Maximum number of entries that last as long as the session. The oldest are dropped. */
const MAX_REMEMBERED = 10_000;

export class SessionTrace {
  readonly #ports: TracePorts;
  readonly #main: AgentTrace;
  readonly #agents = new Map<string, AgentTrace>();
  readonly #calls = new Map<string, OpenCall>();
  /** The parent spans of tasks: the calls that started them. */
  readonly #parents = new Map<string, SpanContext>();
  readonly #expected = new Map<string, SpanContext>();
  readonly #parent: SpanContext | undefined;

  /** `parent`: the runs of the main agent belong to it unless their message names another trace. */
  constructor(ports: TracePorts, parent?: SpanContext) {
    this.#ports = ports;
    this.#parent = parent;
    this.#main = new AgentTrace(ports, { id: undefined, name: MAIN_NAME });
  }

  /** Puts the answer to this message into a client's trace. */
  expect(messageId: string, given: TraceContext): void {
    const context = readTraceContext(given);
    if (context) remember(this.#expected, messageId, context);
  }

  /** Returns the trace context for a tool call that runs elsewhere, also before its start event. */
  ofCall(toolCallId: string, agentId: string | undefined): TraceContext | undefined {
    if (!this.#agentOf(agentId).context) return undefined;
    return writeTraceContext(this.#callOf(toolCallId, agentId).context);
  }

  onEvent(event: SessionEvent): void {
    const handler = handlers[event.type] as ((trace: HandlerContext, event: SessionEvent) => void) | undefined;
    if (handler) handler(this.#contextOf(event), event);
  }

  /** Ends all open spans. No further events are expected. */
  close(time: number): void {
    for (const agent of this.#agents.values()) agent.end(time);
    this.#main.end(time);
    this.#agents.clear();
    this.#calls.clear();
  }

  #contextOf(event: SessionEvent): HandlerContext {
    const { agentId } = event;
    return {
      time: Date.parse(event.timestamp),
      agent: this.#agentOf(agentId),
      main: this.#main,
      isMain: agentId === undefined,
      captureContent: this.#ports.captureContent,
      meter: this.#ports.meter,
      takeExpected: (messageId) => {
        const context = this.#expected.get(messageId);
        this.#expected.delete(messageId);
        return context ?? this.#parent;
      },
      parent: this.#parent,
      known: (id) => this.#agents.get(id),
      parentOf: (id) => this.#parents.get(id),
      created: ({ taskId, parentId, toolCallId }) => {
        const context = this.#calls.get(keyOf(toolCallId, parentId))?.context ?? this.#agentOf(parentId).context;
        if (context) remember(this.#parents, taskId, context);
      },
      forget: () => agentId !== undefined && this.#agents.delete(agentId),
      callStarted: (start) => {
        this.#callOf(start.data.toolCallId, agentId).started = start;
      },
      callEnded: (end) => this.#callEnded(end),
      closeAll: (time) => this.close(time),
    };
  }

  #agentOf(agentId: string | undefined): AgentTrace {
    if (agentId === undefined) return this.#main;
    const known = this.#agents.get(agentId);
    if (known) return known;
    const agent = new AgentTrace(this.#ports, { id: agentId, name: agentId });
    remember(this.#agents, agentId, agent);
    return agent;
  }

  #callOf(toolCallId: string, agentId: string | undefined): OpenCall {
    const key = keyOf(toolCallId, agentId);
    const known = this.#calls.get(key);
    if (known) return known;
    const parent = this.#agentOf(agentId).context;
    const call: OpenCall = { context: childOf(parent, this.#ports.newId), parentSpanId: parent?.spanId };
    remember(this.#calls, key, call);
    return call;
  }

  #callEnded(event: EventOf<"tool.execution_complete">): void {
    const { data, agentId } = event;
    const key = keyOf(data.toolCallId, agentId);
    const call = this.#calls.get(key);
    this.#calls.delete(key);
    if (!call?.started) return;
    const { toolName, arguments: given, mcpServerName } = call.started.data;
    const [start, end] = [Date.parse(call.started.timestamp), Date.parse(event.timestamp)];
    const error = data.success ? undefined : (data.error?.code ?? "error");
    const about = { "gen_ai.tool.name": toolName, ...(mcpServerName && { "mcp.server.name": mcpServerName }) };
    const { meter, captureContent, sessionId } = this.#ports;
    meter.record("toolCalls", 1, { "gen_ai.tool.name": toolName, success: data.success });
    meter.record("toolDuration", seconds(end - start), failing({ "gen_ai.tool.name": toolName }, error));
    const attributes: Attributes = {
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.conversation.id": sessionId,
      "gen_ai.agent.name": this.#agentOf(agentId).name,
      ...about,
      "gen_ai.tool.type": "function",
      "gen_ai.tool.call.id": data.toolCallId,
      ...(captureContent && {
        "gen_ai.tool.call.arguments": clippedText(JSON.stringify(given ?? {})),
        "gen_ai.tool.call.result": clippedText(data.result?.content ?? data.error?.message ?? ""),
      }),
    };
    const { context, parentSpanId } = call;
    const span = { name: `execute_tool ${toolName}`, kind: "internal", context, parentSpanId } as const;
    this.#ports.emit({ ...span, start, end, attributes: failing(attributes, error), events: [], error });
  }
}

/** Context of a handler: the agent that the event belongs to, and its session. */
interface HandlerContext {
  readonly time: number;
  readonly agent: AgentTrace;
  readonly main: AgentTrace;
  readonly isMain: boolean;
  readonly captureContent: boolean;
  readonly meter: TracePorts["meter"];
  takeExpected(messageId: string): SpanContext | undefined;
  readonly parent: SpanContext | undefined;
  /** Returns the trace of an agent that had an event before. */
  known(agentId: string): AgentTrace | undefined;
  parentOf(taskId: string): SpanContext | undefined;
  created(task: EventOf<"troupe.task_created">["data"]): void;
  forget(): void;
  callStarted(event: EventOf<"tool.execution_start">): void;
  callEnded(event: EventOf<"tool.execution_complete">): void;
  closeAll(time: number): void;
}

type Handlers = { readonly [T in EventType]?: (context: HandlerContext, event: EventOf<T>) => void };

const handlers: Handlers = {
  "user.message": ({ agent, isMain, time, takeExpected }, { data }) => {
    // Messages to a busy agent and messages of hooks belong to the current run.
    if (isMain && (data.delivery === "idle" || data.delivery === "queued")) {
      agent.begin(time, takeExpected(data.interactionId ?? ""));
    }
    agent.addInput(userSaid(data));
  },
  "system.notification": ({ agent, isMain, time, parent }, { data }) => {
    // The notice woke the agent: the new run continues the trace of the last one.
    if (isMain && !agent.context) agent.begin(time, agent.lastContext ?? parent);
    agent.addInput(noticeSaid(data.content));
  },
  "system.message": ({ agent }, { data }) => agent.setInstructions(data.content),
  "assistant.turn_start": ({ agent, time, main, parent }) => {
    if (!agent.context) agent.begin(time, agent.lastContext ?? main.context ?? parent);
  },
  "assistant.usage": ({ agent }, { data }) => agent.setTiming(data),
  "troupe.usage": ({ agent, time }, { data }) => agent.called(data, time),
  "assistant.message": ({ agent }, { data }) => agent.answered(data),
  "model.call_failure": ({ agent, time }, { data }) => agent.addFailure(data, time),
  "tool.execution_start": ({ callStarted }, event) => callStarted(event),
  "tool.execution_complete": ({ agent, callEnded }, event) => {
    callEnded(event);
    if (!event.data.isUserRequested) agent.addInput(toolSaid(event.data));
  },
  "assistant.idle": ({ agent, time }) => agent.end(time),
  "session.error": ({ agent }, { data }) => agent.fail(data.errorType),

  "troupe.task_created": ({ created }, { data }) => created(data),
  // An agent can be idle between two messages. Each of its runs has its own span.
  "troupe.task_state": ({ known, time, parentOf, main }, { data: { taskId, to, reason } }) => {
    const agent = known(taskId);
    if (to === "running" && agent && !agent.context) agent.begin(time, parentOf(taskId) ?? main.context);
    if (to === "queued" || to === "running") return;
    if (to === "failed" || (to === "idle" && reason === "error")) agent?.fail("failed");
    agent?.end(time);
  },
  // Events of a subagent name that subagent, not the main agent.
  "subagent.selected": ({ main, isMain }, { data }) => {
    if (isMain) main.name = data.agentName;
  },
  "subagent.deselected": ({ main, isMain }) => {
    if (isMain) main.name = MAIN_NAME;
  },
  "subagent.started": ({ agent, time, parentOf, main }, { agentId, data }) => {
    if (agentId === undefined) return;
    agent.name = data.agentName;
    if (!agent.context) agent.begin(time, parentOf(agentId) ?? main.context);
  },
  "subagent.completed": ({ agent, time, forget }) => {
    agent.end(time);
    forget();
  },
  "subagent.failed": ({ agent, time, forget }) => {
    agent.fail("failed");
    agent.end(time);
    forget();
  },
  "troupe.sidekick_triggered": ({ agent, isMain, time, main }, { data }) => {
    if (isMain) return;
    agent.name = data.name;
    agent.begin(time, main.context ?? main.lastContext);
  },
  "troupe.sidekick_ended": ({ agent, isMain, time, forget }, { data }) => {
    if (isMain) return;
    if (data.reason === "error") agent.fail("error");
    agent.end(time);
    forget();
  },

  "hook.start": ({ agent, time }, { data }) => agent.note("github.copilot.hook.start", time, hookAttributes(data)),
  "hook.end": ({ agent, time }, { data }) => {
    const name = data.success ? "github.copilot.hook.end" : "github.copilot.hook.error";
    agent.note(name, time, hookAttributes(data));
  },
  "skill.invoked": ({ agent, time }, { data }) =>
    agent.note("github.copilot.skill.invoked", time, { "github.copilot.skill.name": data.name }),
  "session.truncation": ({ agent, time }, { data }) =>
    agent.note("github.copilot.session.truncation", time, {
      "github.copilot.tokens_removed": data.tokensRemovedDuringTruncation,
      "github.copilot.messages_removed": data.messagesRemovedDuringTruncation,
    }),
  "session.compaction_start": ({ agent, time }, { data }) =>
    agent.note("github.copilot.session.compaction_start", time, defined({ trigger: data.trigger })),
  "session.compaction_complete": ({ agent, time }, { data }) =>
    agent.note("github.copilot.session.compaction_complete", time, {
      success: data.success,
      ...defined({
        "github.copilot.tokens_removed": data.tokensRemoved,
        "github.copilot.messages_removed": data.messagesRemoved,
      }),
    }),
  "troupe.memory_recalled": ({ agent, meter, time }, { data: { store, count } }) => {
    agent.note("troupe.memory.recalled", time, { store, count });
    meter.record("memories", count, { store });
  },
  "troupe.shutdown_consolidation": ({ main, meter, time }, { data: { outcome } }) => {
    main.note("troupe.memory.shutdown_consolidation", time, { outcome });
    meter.record("shutdownConsolidations", 1, { outcome });
  },
  "troupe.limit_reached": ({ agent, time }, { data }) =>
    agent.note("troupe.limit_reached", time, {
      limit: data.limit,
      allowed: { double: data.allowed },
      used: { double: data.used },
    }),
  abort: ({ agent, time }, { data }) => agent.note("github.copilot.abort", time, { reason: data.reason }),
  "session.shutdown": ({ main, time, closeAll }, { data }) => {
    main.note("github.copilot.session.shutdown", time, { shutdown_type: data.shutdownType });
    closeAll(time);
  },
};

function hookAttributes(data: { readonly hookType: string; readonly hookInvocationId: string }): Attributes {
  return { "github.copilot.hook.type": data.hookType, "github.copilot.hook.invocation_id": data.hookInvocationId };
}

const keyOf = (toolCallId: string, agentId: string | undefined): string => `${agentId ?? ""}/${toolCallId}`;

function remember<V>(map: Map<string, V>, key: string, value: V): void {
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= MAX_REMEMBERED) break;
    map.delete(oldest);
  }
}
