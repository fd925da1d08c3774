/**
 * Session telemetry for clients that asked for it (`gitHubTelemetry.event`). It is sent to these clients only: troupe
 * sends none of it elsewhere. It contains no content: no prompts, answers, arguments, paths or error messages, and only
 * the names of built-in tools.
 */
import { release } from "node:os";
import type { EventOf, EventType, SessionEvent } from "../protocol/event.ts";
import { encodeFrame } from "../protocol/rpc/frame.ts";
import { version } from "../runtime/version.ts";
import type { Session } from "../session/session.ts";
import type { Clients } from "./clients/clients.ts";
import type { ClientConnection } from "./connection.ts";
import type { OptionsOfSession } from "./sessions/session-options.ts";

interface Figures {
  readonly kind: string;
  readonly properties?: Readonly<Record<string, string | boolean | undefined>>;
  readonly metrics?: Readonly<Record<string, number | undefined>>;
}

/** The session that the telemetry is about. */
interface EventContext {
  readonly session: Session;
  readonly clients: Pick<Clients, "wantsTelemetry">;
  readonly options: OptionsOfSession;
}

type Reader<T extends EventType> = (
  event: EventOf<T>,
  session: Session,
  telemetry: GithubTelemetry,
) => Figures | undefined;

/** One instance per session. */
export class GithubTelemetry {
  /** Running calls, by id. */
  readonly calls = new Map<string, { readonly name: string; readonly startedAt: number }>();

  /**
   * Sends an event's telemetry to clients that asked for it. Sessions with their own provider, or that opted out, send
   * none.
   */
  tell(event: SessionEvent, of: EventContext, connections: Iterable<ClientConnection>): void {
    const { session, clients, options } = of;
    if (options.enableSessionTelemetry === false || options.provider !== undefined) return;
    const wanting = [...connections].filter(
      (one) => one.isAdmitted && (one.wantsTelemetry || clients.wantsTelemetry(one)),
    );
    const frame = wanting.length > 0 ? this.#frame(event, session) : undefined;
    if (frame) for (const connection of wanting) connection.hint(frame, { mustArrive: false });
  }

  /** Returns the notification for an event, or undefined if the event has no telemetry. */
  #frame(event: SessionEvent, session: Session): Uint8Array | undefined {
    // The table pairs each reader with its event type; the compiler cannot infer that from a look-up.
    const read = readers[event.type] as Reader<EventType> | undefined;
    const figures = read?.(event, session, this);
    if (!figures) return undefined;
    const { kind, properties = {}, metrics = {} } = figures;
    const known = { event_id: event.id, producer: "troupe", troupe_version: version, ...properties };
    const told = {
      kind,
      created_at: event.timestamp,
      session_id: session.id,
      properties: Object.fromEntries(present(known).map(([name, value]) => [name, String(value)])),
      metrics: Object.fromEntries(present(metrics)),
      client: {
        cli_version: version,
        node_version: process.version,
        os_platform: process.platform,
        os_version: release(),
        os_arch: process.arch,
      },
    };
    const params = { sessionId: session.id, restricted: false, event: told };
    return encodeFrame({ jsonrpc: "2.0", method: "gitHubTelemetry.event", params });
  }
}

/** Bounds the number of calls that never end. */
const MAX_CALLS = 1000;

const readers: { readonly [T in EventType]?: Reader<T> } = {
  "session.start": ({ data }) => ({
    kind: "session_start",
    properties: {
      model: data.selectedModel,
      reasoning_effort: data.reasoningEffort,
      is_git_repo: data.context?.gitRoot !== undefined,
      is_github_repo: data.context?.hostType === "github",
    },
  }),
  "session.resume": ({ data }) => ({
    kind: "session_resume",
    properties: { model: data.selectedModel, was_active: data.sessionWasActive },
    metrics: { event_count: data.eventCount },
  }),
  "session.shutdown": ({ data }) => ({
    kind: "session_shutdown",
    properties: { shutdown_type: data.shutdownType, model: data.currentModel },
    metrics: { total_api_duration_ms: data.totalApiDurationMs },
  }),
  "session.error": ({ data }) => ({
    kind: "session_error",
    properties: { error_type: wordOf(data.errorType) },
    metrics: { status_code: data.statusCode },
  }),
  "session.model_change": ({ data }) => ({
    kind: "model_change",
    properties: { model: data.newModel, previous_model: data.previousModel },
  }),
  "session.compaction_complete": ({ data }) => ({
    kind: "compaction",
    properties: { success: data.success },
    metrics: { tokens_before: data.preCompactionTokens, tokens_after: data.postCompactionTokens },
  }),
  "user.message": ({ data }) => ({ kind: "user_message", metrics: { attachments: data.attachments?.length ?? 0 } }),
  "assistant.usage": ({ data, agentId }) => ({
    kind: "get_completion_with_tools_turn",
    properties: { model: data.model, is_subagent: agentId !== undefined },
    metrics: {
      input_tokens: data.inputTokens,
      output_tokens: data.outputTokens,
      reasoning_tokens: data.reasoningTokens,
      cache_read_tokens: data.cacheReadTokens,
      cache_write_tokens: data.cacheWriteTokens,
      duration_ms: data.duration,
      time_to_first_token_ms: data.timeToFirstTokenMs,
    },
  }),
  "tool.execution_start": ({ data, timestamp }, { mainAgent }, { calls }) => {
    const isOurs = mainAgent.prompt.tools.some(({ name, origin }) => name === data.toolName && origin === undefined);
    const name = isOurs ? data.toolName : data.mcpServerName === undefined ? "(other)" : "(mcp)";
    if (calls.size < MAX_CALLS) calls.set(data.toolCallId, { name, startedAt: Date.parse(timestamp) });
    return undefined;
  },
  "tool.execution_complete": ({ data, timestamp, agentId }, _, { calls }) => {
    const call = calls.get(data.toolCallId);
    calls.delete(data.toolCallId);
    return {
      kind: "tool_call_executed",
      properties: { tool_name: call?.name ?? "(other)", success: data.success, is_subagent: agentId !== undefined },
      metrics: { duration_ms: call && Date.parse(timestamp) - call.startedAt },
    };
  },
  "subagent.completed": ({ data }) => ({
    kind: "subagent_end",
    properties: { success: true, cancelled: data.cancelled },
    metrics: { duration_ms: data.durationMs, total_tokens: data.totalTokens, tool_calls: data.totalToolCalls },
  }),
  "subagent.failed": ({ data }) => ({
    kind: "subagent_end",
    properties: { success: false },
    metrics: { duration_ms: data.durationMs, total_tokens: data.totalTokens, tool_calls: data.totalToolCalls },
  }),
  abort: ({ data }) => ({ kind: "abort", properties: { reason: data.reason } }),
};

/** Error kinds are identifiers of this program. Free text becomes "other". */
const wordOf = (text: string): string => (/^[a-z_]{1,40}$/.test(text) ? text : "other");

function present<T>(values: Readonly<Record<string, T>>): [string, Exclude<T, undefined>][] {
  return Object.entries(values).filter((entry): entry is [string, Exclude<T, undefined>] => entry[1] !== undefined);
}
