/**
 * The protocol folder: the events, errors and requests that all parts of troupe share. An event that is emitted,
 * stored, sent to clients and displayed is the same object, in the shape of the wire. `eventDefinitions` lists them
 * all; most are in one file per topic (`task-events.ts`, `request-events.ts`, …). Events that the wire does not define
 * have the prefix `troupe.`; those without a topic are in `own-events.ts`.
 */
import * as z from "zod";
import { canvasEvents } from "./canvas-events.ts";
import { Citations } from "./citations.ts";
import { clientEvents } from "./client-events.ts";
import { contextEvents } from "./context-events.ts";
import { Attachment, barrier, count, ephemeral, event, JsonValue, nothing, Tokens, text } from "./define-event.ts";
import { derivedEvents } from "./derived-events.ts";
import { extensionEvents } from "./extension-events.ts";
import { factoryEvents } from "./factory-events.ts";
import { ownEvents } from "./own-events.ts";
import { requestEvents } from "./request-events.ts";
import { sidekickEvents } from "./sidekick-events.ts";
import { taskEvents } from "./task-events.ts";
import { workspaceEvents } from "./workspace-events.ts";

export type { Attachment } from "./define-event.ts";

export const ToolRequest = z.object({
  toolCallId: text,
  name: text,
  arguments: JsonValue.exactOptional(),
  type: z.enum(["function", "custom"]).exactOptional(),
});

/** A binary stored beside the log and named by its hash, so that a log line stays short. */
const BinaryReference = z.object({
  type: z.enum(["image", "resource"]),
  assetId: text,
  byteLength: count,
  mimeType: text,
  description: text.exactOptional(),
});
export type BinaryReference = z.infer<typeof BinaryReference>;

export const WorkingDirectory = z.object({
  cwd: text,
  gitRoot: text.exactOptional(),
  repository: text.exactOptional(),
  repositoryHost: text.exactOptional(),
  hostType: z.enum(["github", "ado"]).exactOptional(),
  branch: text.exactOptional(),
  headCommit: text.exactOptional(),
  baseCommit: text.exactOptional(),
});
export type WorkingDirectory = z.infer<typeof WorkingDirectory>;

const SessionLimits = z.object({ maxAiCredits: count.exactOptional() });
const Summary = z.enum(["none", "concise", "detailed"]);

/** A step that may solve the problem. Clients can offer it as a button. */
const Remediation = z.enum(["sign_in", "switch_account"]);
const ModelChangeSource = z.enum(["model_command", "model_picker", "startup", "agent", "automatic", "sdk"]);
export type ModelChangeSource = z.infer<typeof ModelChangeSource>;

/** All events of a session. */
export const eventDefinitions = [
  event("session.start", () =>
    z.object({
      sessionId: text,
      version: count,
      producer: text,
      copilotVersion: text,
      startTime: text,
      selectedModel: text.exactOptional(),
      reasoningEffort: text.exactOptional(),
      reasoningSummary: Summary.exactOptional(),
      sessionLimits: SessionLimits.exactOptional(),
      context: WorkingDirectory.exactOptional(),
      detachedFromSpawningParentSessionId: text.exactOptional(),
    }),
  ),
  event("session.resume", () =>
    z.object({
      resumeTime: text,
      eventCount: count,
      eventsFileSizeBytes: count.exactOptional(),
      selectedModel: text.exactOptional(),
      reasoningEffort: text.exactOptional(),
      reasoningSummary: Summary.exactOptional(),
      sessionLimits: SessionLimits.exactOptional(),
      context: WorkingDirectory.exactOptional(),
      alreadyInUse: z.boolean().exactOptional(),
      continuePendingWork: z.boolean().exactOptional(),
      sessionWasActive: z.boolean().exactOptional(),
    }),
  ),
  event("session.info", () => z.object({ infoType: text, message: text, tip: text.exactOptional() })),
  event("session.warning", () => z.object({ warningType: text, message: text })),
  event(
    "session.error",
    () =>
      z.object({
        errorType: text,
        message: text,
        errorCode: text.exactOptional(),
        statusCode: count.exactOptional(),
        /** Another model of the same provider might work. */
        eligibleForAutoSwitch: z.boolean().exactOptional(),
        stack: text.exactOptional(),
        url: text.exactOptional(),
        remediation: Remediation.exactOptional(),
      }),
    barrier,
  ),
  event("session.model_change", () =>
    z.object({
      newModel: text,
      previousModel: text.exactOptional(),
      reasoningEffort: text.exactOptional(),
      previousReasoningEffort: text.exactOptional(),
      reasoningSummary: Summary.exactOptional(),
      previousReasoningSummary: Summary.exactOptional(),
      cause: text.exactOptional(),
      source: ModelChangeSource.exactOptional(),
    }),
  ),
  /** A client no longer offers the model that it had chosen. */
  event("session.model_deselected", () => z.object({ previousModel: text, reason: z.enum(["provider_withdrawn"]) })),
  event("tool_search.activated", () => z.object({ strategy: text, toolNames: z.array(text) })),
  event("session.context_changed", () => WorkingDirectory),
  event("session.title_changed", () => z.object({ title: text }), ephemeral),
  event("session.tools_updated", () => z.object({ model: text }), ephemeral),
  event(
    "session.task_complete",
    () => z.object({ summary: text.exactOptional(), success: z.boolean().exactOptional() }),
    barrier,
  ),
  event(
    "session.idle",
    () => z.object({ aborted: z.boolean().exactOptional(), mode: z.literal("autopilot").exactOptional() }),
    ephemeral,
  ),
  event(
    "session.shutdown",
    () =>
      z.object({
        shutdownType: z.enum(["routine", "error"]),
        errorReason: text.exactOptional(),
        sessionStartTime: count,
        totalApiDurationMs: count,
        currentModel: text.exactOptional(),
        codeChanges: z.object({ filesModified: z.array(text), linesAdded: count, linesRemoved: count }),
        modelMetrics: z.record(
          text,
          z.object({
            requests: z.object({ count: count.exactOptional(), cost: count.exactOptional() }),
            usage: Tokens,
          }),
        ),
      }),
    barrier,
  ),
  event("system.message", () => z.object({ role: z.enum(["system", "developer"]), content: text })),
  event(
    "user.message",
    () =>
      z.object({
        content: text,
        transformedContent: text.exactOptional(),
        attachments: z.array(Attachment).exactOptional(),
        delivery: z.enum(["idle", "steering", "queued"]).exactOptional(),
        source: text.exactOptional(),
        interactionId: text.exactOptional(),
        agentMode: z.enum(["interactive", "plan", "autopilot", "shell"]).exactOptional(),
        /** The id that `send` returned. */
        messageId: text.exactOptional(),
      }),
    barrier,
  ),
  event("pending_messages.modified", () => nothing, ephemeral),
  event("assistant.turn_start", () =>
    z.object({ turnId: text, interactionId: text.exactOptional(), model: text.exactOptional() }),
  ),
  event("assistant.message_start", () => z.object({ messageId: text }), ephemeral),
  event("assistant.message_delta", () => z.object({ messageId: text, deltaContent: text }), ephemeral),
  event("assistant.reasoning_delta", () => z.object({ reasoningId: text, deltaContent: text }), ephemeral),
  event(
    "assistant.tool_call_delta",
    () => z.object({ toolCallId: text, inputDelta: text, toolName: text.exactOptional() }),
    ephemeral,
  ),
  event("assistant.streaming_delta", () => z.object({ totalResponseSizeBytes: count }), ephemeral),
  /** Also stored with the message that it led to. */
  event("assistant.reasoning", () => z.object({ reasoningId: text, content: text }), ephemeral),
  event(
    "assistant.message",
    () =>
      z.object({
        messageId: text,
        content: text,
        toolRequests: z.array(ToolRequest),
        turnId: text.exactOptional(),
        interactionId: text.exactOptional(),
        model: text.exactOptional(),
        /** Id of the message that started the run, as `send` returned it. It is the same for each reply of the run. */
        originatingMessageId: text.exactOptional(),
        outputTokens: count.exactOptional(),
        citations: Citations.exactOptional(),
        phase: text.exactOptional(),
        reasoningText: text.exactOptional(),
        reasoningOpaque: text.exactOptional(),
        reasoningWireField: text.exactOptional(),
      }),
    barrier,
  ),
  event(
    "assistant.usage",
    () =>
      z.object({
        model: text,
        inputTokens: count.exactOptional(),
        outputTokens: count.exactOptional(),
        cacheReadTokens: count.exactOptional(),
        cacheWriteTokens: count.exactOptional(),
        reasoningTokens: count.exactOptional(),
        duration: count.exactOptional(),
        timeToFirstTokenMs: count.exactOptional(),
        outputTtftMs: count.exactOptional(),
        interTokenLatencyMs: count.exactOptional(),
        finishReason: text.exactOptional(),
        apiEndpoint: z.enum(["/chat/completions", "/v1/messages", "/responses", "ws:/responses"]).exactOptional(),
        transport: z.enum(["http", "websocket"]).exactOptional(),
        isByok: z.boolean().exactOptional(),
        initiator: text.exactOptional(),
        interactionType: text.exactOptional(),
        maxOutputTokens: count.exactOptional(),
        maxPromptTokens: count.exactOptional(),
        reasoningEffort: text.exactOptional(),
        reasoningSummary: Summary.exactOptional(),
      }),
    ephemeral,
  ),
  event("assistant.turn_end", () => z.object({ turnId: text, model: text.exactOptional() }), barrier),
  event("assistant.idle", () => z.object({ aborted: z.boolean().exactOptional() }), ephemeral),
  event(
    "model.call_failure",
    () =>
      z.object({
        source: z.enum(["top_level", "subagent", "mcp_sampling"]),
        model: text.exactOptional(),
        errorType: text.exactOptional(),
        errorMessage: text.exactOptional(),
        statusCode: count.exactOptional(),
        durationMs: count.exactOptional(),
      }),
    ephemeral,
  ),
  /** The end of a model call, successful or not. Its duration includes retries, but not the pauses between them. */
  event(
    "model.call_finished",
    () =>
      z.object({
        turnId: text,
        outcome: z.enum(["success", "error", "cancelled", "rejected"]),
        dispatchDurationMs: count,
        editClassifierVersion: count,
        containsBuiltInFileEditRequest: z.boolean().exactOptional(),
      }),
    ephemeral,
  ),
  event(
    "tool.execution_start",
    () =>
      z.object({
        toolCallId: text,
        toolName: text,
        arguments: JsonValue.exactOptional(),
        turnId: text.exactOptional(),
        model: text.exactOptional(),
        mcpServerName: text.exactOptional(),
        mcpToolName: text.exactOptional(),
      }),
    barrier,
  ),
  /** A user ran it: later events with the same id are not results for the model. */
  event("tool.user_requested", () =>
    z.object({ toolCallId: text, toolName: text, arguments: JsonValue.exactOptional() }),
  ),
  event("tool.execution_partial_result", () => z.object({ toolCallId: text, partialOutput: text }), ephemeral),
  event("tool.execution_progress", () => z.object({ toolCallId: text, progressMessage: text }), ephemeral),
  event(
    "tool.execution_complete",
    () =>
      z.object({
        toolCallId: text,
        success: z.boolean(),
        result: z
          .object({
            content: text,
            detailedContent: text.exactOptional(),
            binaryResultsForLlm: z.array(BinaryReference).exactOptional(),
          })
          .exactOptional(),
        error: z.object({ message: text, code: text.exactOptional() }).exactOptional(),
        toolTelemetry: z.record(text, JsonValue).exactOptional(),
        isUserRequested: z.boolean().exactOptional(),
        shellExecution: z.object({ exitCode: count }).exactOptional(),
        turnId: text.exactOptional(),
        model: text.exactOptional(),
      }),
    barrier,
  ),
  event(
    "abort",
    () => z.object({ reason: z.enum(["user_initiated", "remote_command", "user_abort", "autopilot_credit_limit"]) }),
    barrier,
  ),

  ...clientEvents,
  ...derivedEvents,
  ...canvasEvents,
  ...contextEvents,
  ...extensionEvents,
  ...factoryEvents,
  ...requestEvents,
  ...taskEvents,
  ...workspaceEvents,
  ...sidekickEvents,
  ...ownEvents,
] as const;

type Definition = (typeof eventDefinitions)[number];
export type EventType = Definition["type"];
export type EventData<T extends EventType> = z.infer<Extract<Definition, { type: T }>["data"]>;

export interface Envelope {
  id: string;
  /** ISO 8601. */
  timestamp: string;
  /** The previous stored event of the session; null only for the first. */
  parentId: string | null;
  /** Present only on events of a subagent. */
  agentId?: string;
  ephemeral?: boolean;
}
export type EventOf<T extends EventType> = Envelope & { type: T; data: EventData<T> };
/** Distributes over the union, so a `switch` on `type` narrows `data`. */
export type SessionEvent = { [T in EventType]: EventOf<T> }[EventType];

/**
 * Emits an event. Events are ordered by the call. The promise resolves when the event is as durable as its kind
 * demands: synced for barriers, written for the rest. Listeners receive it no earlier. A caller that awaits a later
 * event need not await this one: after a failed write, every later write fails too.
 */
export type Emit = <T extends EventType>(type: T, data: EventData<T>) => Promise<void>;

/** Validates one external event against the table. The error names the invalid field. */
export function checkEvent(value: unknown): { ok: true; event: SessionEvent } | { ok: false; error: string } {
  const envelope = EnvelopeSchema.safeParse(value);
  if (!envelope.success) return { ok: false, error: z.prettifyError(envelope.error) };
  const definition: Definition | undefined = eventDefinitions.find(({ type }) => type === envelope.data.type);
  if (!definition) return { ok: false, error: `unknown event type ${envelope.data.type}` };
  const data = definition.data.safeParse(envelope.data.data);
  if (!data.success) return { ok: false, error: `${envelope.data.type}: ${z.prettifyError(data.error)}` };
  return { ok: true, event: value as SessionEvent };
}

const EnvelopeSchema = z.object({
  id: z.string().min(1),
  timestamp: z.string().min(1),
  parentId: z.string().nullable(),
  agentId: z.string().exactOptional(),
  ephemeral: z.boolean().exactOptional(),
  type: z.string(),
  data: z.object({}).loose(),
});
