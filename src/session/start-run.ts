import type { Stamp } from "../lib/stamp.ts";
import type { ModelCall, Run } from "../loop/run.ts";
import type { Provider, Usage } from "../model/provider.ts";
import type { Approval } from "../permissions/approvals.ts";
import type { Policy } from "../permissions/policy.ts";
import type { BinaryReference, Emit } from "../protocol/event.ts";
import type { Image } from "../protocol/message.ts";
import type { SessionLog } from "../store/store.ts";
import type { Tool, ToolPorts } from "../tools/tool.ts";
import type { Broker } from "./broker.ts";
import type { Budget, Limits } from "./budget.ts";
import type { History } from "./history.ts";
import type { Inbox } from "./inbox.ts";
import { boundOutput, LARGE_OUTPUT_BYTES } from "./large-output.ts";
import { permitter } from "./permit.ts";

/** The model a session speaks to, with retries and limits already around it. */
export interface SessionModel {
  readonly provider: Provider;
  readonly providerId: string;
  readonly model: string;
  readonly contextWindow?: number;
  readonly maxOutputTokens?: number;
  /** Null when the price is not known. */
  costOf(usage: Usage): number | null;
}

/** What a session is given once and every run of it uses. */
export interface RunSettings {
  readonly log: SessionLog;
  readonly stamp: Stamp;
  readonly model: SessionModel;
  readonly system: string;
  readonly tools: readonly Tool[];
  readonly cwd: string;
  /** Folders the tools may touch; empty = no limit. */
  readonly roots: readonly string[];
  /** What may be touched without asking, and what never. */
  readonly policy: Policy;
  /** What its tools reach beyond their calls. */
  readonly ports: ToolPorts;
  readonly limits?: Limits;
  /** Say the words as they arrive. */
  readonly streaming?: boolean;
  readonly largeOutputBytes?: number;
  readonly reasoningEffort?: NonNullable<Run["request"]["reasoningEffort"]>;
}

/** What belongs to one run. */
interface RunParts extends RunSettings {
  readonly emit: Emit;
  readonly history: History;
  readonly budget: Budget;
  readonly inbox: Inbox;
  readonly broker: Broker;
  readonly approvals: Approval[];
  readonly signal: AbortSignal;
}

const ASSUMED_CONTEXT_WINDOW = 128_000;

/** Agent, model, tools and context become one Run: the only place where the loop's ports are filled. */
export function startRun(parts: RunParts): Run {
  const { log, model, emit, budget, history, limits = {} } = parts;
  let turns = 0;
  return {
    provider: model.provider,
    model: model.model,
    system: parts.system,
    tools: parts.tools,
    cwd: parts.cwd,
    roots: parts.roots,
    signal: parts.signal,
    stamp: parts.stamp,
    streaming: parts.streaming ?? false,
    source: "top_level",
    request: {
      stream: true,
      cacheKey: log.sessionId,
      ...(model.maxOutputTokens !== undefined && { maxOutputTokens: model.maxOutputTokens }),
      ...(parts.reasoningEffort !== undefined && { reasoningEffort: parts.reasoningEffort }),
    },
    emit,
    inbox: parts.inbox,
    nextTurnId: () => String(turns++),
    history: () => history.messages(),
    permit: permitter(parts),
    ports: parts.ports,
    usageInfo: () => ({
      currentTokens: Math.ceil((parts.system.length + history.characters) / 4),
      messagesLength: history.length,
      tokenLimit: model.contextWindow ?? ASSUMED_CONTEXT_WINDOW,
    }),
    beforeModelCall: async () => budget.reached(limits),
    beforeStopping: async () => "stop",
    spent: (call) => reportUsage(call, model, emit),
    bound: (content, toolName) =>
      boundOutput({ content, toolName, maxBytes: parts.largeOutputBytes ?? LARGE_OUTPUT_BYTES, log }),
    keepImages: (images) => keepImages(images, log),
  };
}

async function reportUsage(call: ModelCall, model: SessionModel, emit: Emit): Promise<void> {
  const { turnId, usage, durationMs, attempts, estimated, timeToFirstTokenMs, finishReason } = call;
  void emit("assistant.usage", {
    model: model.model,
    ...usage,
    duration: Math.round(durationMs),
    ...(timeToFirstTokenMs !== undefined && { timeToFirstTokenMs: Math.round(timeToFirstTokenMs) }),
    finishReason,
  });
  // Not awaited: the reply that follows it in the log is.
  void emit("troupe.usage", {
    turnId,
    provider: model.providerId,
    model: model.model,
    ...usage,
    costUsd: model.costOf(usage),
    durationMs: Math.round(durationMs),
    attempts,
    ...(estimated && { estimated }),
  });
}

async function keepImages(images: readonly Image[], log: SessionLog): Promise<BinaryReference[]> {
  const kept: BinaryReference[] = [];
  for (const { data, mimeType, description } of images) {
    const bytes = Buffer.from(data, "base64");
    const { assetId } = await log.writeAsset(bytes, mimeType.split("/")[1] ?? "bin");
    kept.push({
      type: "image",
      assetId,
      byteLength: bytes.length,
      mimeType,
      ...(description !== undefined && { description }),
    });
  }
  return kept;
}
