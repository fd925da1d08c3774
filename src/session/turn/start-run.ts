import { defined } from "../../lib/defined.ts";
import type { Redactor } from "../../lib/redact/redact.ts";
import { readTraceContext, type TraceContext } from "../../lib/trace-context.ts";
import { RepeatedFailures } from "../../loop/repeated-failures.ts";
import type { LimitReached, Run } from "../../loop/run.ts";
import type { ModelRequest, RequestOrigin } from "../../model/provider.ts";
import type { BinaryReference, Emit } from "../../protocol/event.ts";
import type { Image } from "../../protocol/message.ts";
import type { SessionLog } from "../../store/store.ts";
import type { RunExternal, Tool } from "../../tools/tool.ts";
import { reportUsage } from "../budget/report-usage.ts";
import type { Expected } from "../budget/reservations.ts";
import type { AgentContext } from "../compaction/agent-context.ts";
import { ContextMeter } from "../compaction/context-usage.ts";
import type { History } from "../history.ts";
import type { Broker } from "../requests/broker.ts";
import { brokerUser } from "../requests/broker-user.ts";
import { type PermitOptions, permitter } from "../requests/permit.ts";
import { readGuard } from "../requests/read-guard.ts";
import { requestOrigin } from "../requests/request-origin.ts";
import type { RunSettings } from "../run-settings.ts";
import type { PromptAndTools } from "../session-model.ts";
import { isStreamed } from "../session-model.ts";
import { expectedCall } from "./expected-call.ts";
import { type BoundHooks, hookedCalls, hookedMcpCalls, hookVerdict } from "./hooked-calls.ts";
import { boundOutput, LARGE_OUTPUT_BYTES } from "./large-output.ts";
import type { LimitedTools } from "./limited-tools.ts";
import { type ModelSearch, modelSearch } from "./model-search.ts";
import type { AnswerFormat } from "./pending-messages.ts";
import { imageRemover } from "./without-images.ts";

type Shown = Pick<PromptAndTools, "system" | "tools">;

/** The parts of one run, of the main agent or any other. */
interface RunParts extends RunSettings {
  readonly emit: Emit;
  readonly history: History;
  readonly pendingMessages: Run["pendingMessages"];
  readonly broker: Broker;
  readonly signal: AbortSignal;
  readonly hooks: BoundHooks | undefined;
  readonly source: Run["source"];
  /** Lets the requests of one agent share a cache. */
  readonly cacheKey: string;
  /** The agent that runs; absent for the main agent. */
  readonly agent?: NonNullable<ModelRequest["agent"]> & { readonly parentId?: string | undefined };
  /** The trace of the message's sender. */
  readonly trace?: TraceContext | undefined;
  /** Sent with each model request of this run. */
  readonly requestHeaders?: Readonly<Record<string, string>> | undefined;
  /** The required form of its replies' text. */
  readonly responseFormat?: AnswerFormat | undefined;
  readonly priority?: NonNullable<ModelRequest["priority"]>;
  /** The id of the message that started the run. */
  readonly originatingMessageId?: string | undefined;
  /** Returns the limit that rules out another model call. Otherwise reserves its expected usage until `usageCounted`. */
  limitReached(expected: Expected): LimitReached | undefined;
  /** Called when the call has ended and its usage is counted. */
  usageCounted(): void;
  readonly beforeStopping: Run["beforeStopping"];
  readonly clientCalls?: NonNullable<Run["clientCalls"]>;
  /** The number of turns of the answer before this run. */
  readonly turnsBefore?: number | undefined;
  /** Limits the tools for this run. */
  readonly limitedTools?: LimitedTools | undefined;
}

/** Builds a `Run` from an agent, model, tools and context. This is the only place that fills the loop's ports. */
export function startRun(parts: RunParts): Run {
  const { model, promptAndTools, emit, pendingMessages } = parts;
  const hooks = hookedCalls(parts.hooks);
  const hookDecision = hookVerdict(parts.hooks);
  const shown = shownPrompt(parts);
  const origin = requestOrigin(parts.log.sessionId, parts.agent);
  const context = parts.compactions?.of({ ...parts, shown, origin });
  const request = requestOf(parts, origin);
  const failures = new RepeatedFailures();
  let turns = parts.turnsBefore ?? 0;
  return {
    provider: context?.provider ?? model.provider,
    whileModelWorks: () => parts.ports.shells?.expectCommand?.(),
    model: model.model,
    get system() {
      return shown.system;
    },
    get tools() {
      return shown.tools;
    },
    // A limited run has no other tools.
    ...(promptAndTools.find && !parts.limitedTools && { findTool: (name) => promptAndTools.find?.(name) }),
    showTools: (names) => {
      for (const name of names.slice(0, MAX_SHOWN)) promptAndTools.find?.(name);
    },
    cwd: parts.cwd,
    roots: parts.roots,
    signal: parts.signal,
    stamp: parts.stamp,
    streaming: parts.streaming ?? false,
    source: parts.source,
    ...defined({ originatingMessageId: parts.originatingMessageId }),
    request,
    emit,
    pendingMessages: {
      deliver: (say) => {
        const emitMessage = resettingOnMessage(say, failures);
        return pendingMessages.deliver(parts.limitedTools?.withoutAdvice(emitMessage) ?? emitMessage);
      },
    },
    failures,
    nextTurnId: () => String(turns++),
    ...conversationPorts(parts, { context, shown, failures }),
    permit: permitter({ ...parts, ...defined({ hookDecision }), reasonToRefuse: refusals(parts) }),
    ...defined({ hooks, clientCalls: parts.clientCalls, effectGuard: parts.effectGuard }),
    ports: toolPorts(parts, request),
    beforeStopping: parts.beforeStopping,
    limitOutput: outputLimiter(parts, shown),
    storeBinaries: ({ images, resources }) => storeBinaries(images, resources, parts.log),
  };
}

/** Returns the ports of a run that read and measure the conversation, before and after each model call. */
function conversationPorts(
  parts: RunParts,
  shared: { context: AgentContext | undefined; shown: Shown; failures: RepeatedFailures },
): Pick<Run, "history" | "usageInfo" | "beforeModelCall" | "spent"> {
  const { model, promptAndTools, history, emit } = parts;
  const { context, shown, failures } = shared;
  const withoutImages = model.vision === false ? imageRemover() : undefined;
  const meter = parts.compactions?.meter ?? new ContextMeter();
  return {
    history: async () => {
      const messages = await (context?.messages() ?? history.messages());
      return withoutImages?.(messages) ?? messages;
    },
    usageInfo: () => {
      const usage = context?.usage() ?? meter.measure({ model, promptAndTools: shown, history });
      context?.sent(usage);
      return usage;
    },
    async beforeModelCall() {
      const stopped = failures.nextTurn();
      if (stopped) return stopped;
      await context?.beforeModelCall(parts.signal);
      await history.messages(); // so that its length is known
      const tools = parts.limitedTools?.of(promptAndTools.tools) ?? promptAndTools.tools;
      const expected = expectedCall({ model, system: promptAndTools.system, tools, characters: history.characters });
      return parts.limitReached(context?.withPending(expected) ?? expected);
    },
    async spent(call) {
      if (!call.estimated) context?.counted(call.usage);
      await reportUsage(call, model, emit);
      parts.usageCounted();
    },
  };
}

function toolPorts(parts: RunParts, request: Run["request"]): Run["ports"] {
  const searchModel = parts.searchModel?.();
  return {
    ...parts.ports,
    reading: readGuard(parts.policy, parts.cwd),
    user: brokerUser(parts.broker, parts.plan ?? { content: async () => "" }),
    external: externalCalls(parts),
    ...hookedMcpCalls(parts.hooks),
    ...(searchModel && { webSearch: modelSearch({ ...parts, request: searchRequest(request), model: searchModel }) }),
  };
}

/** Writes output above the limit to a file. Files are not redacted by the event log, so it happens here. */
function outputLimiter(parts: RunParts, shown: Shown): Run["limitOutput"] {
  const maxBytes = parts.largeOutputBytes ?? LARGE_OUTPUT_BYTES;
  const log = parts.storeOutput ? { writeFile: parts.storeOutput } : parts.log;
  return (content, toolName) =>
    boundOutput({
      content: parts.redactor?.text(content) ?? content,
      toolName,
      maxBytes,
      log,
      readers: shown.tools.map(({ name }) => name),
      onFile: (path) => parts.limitedTools?.addOutput(toolName, path),
    });
}

/** A user who writes to a working agent may want it to repeat a call, so the count starts again. */
function resettingOnMessage(emit: Emit, failures: RepeatedFailures): Emit {
  return (type, data) => {
    if (type === "user.message") failures.reset();
    return emit(type, data);
  };
}

/** The maximum number of tools that one result can add. */
const MAX_SHOWN = 100;

/** Returns the parts that all requests of a run share. */
function requestOf(parts: RunParts, origin: RequestOrigin): Run["request"] {
  const { model, agent, priority, requestHeaders, reasoningEffort, reasoningSummary } = parts;
  return {
    stream: isStreamed(parts),
    cacheKey: parts.cacheKey,
    origin,
    ...(agent && { agent: { id: agent.id, name: agent.name } }),
    ...defined({
      priority,
      maxOutputTokens: model.maxOutputTokens,
      reasoningEffort,
      reasoningSummary,
      headers: requestHeaders,
      responseFormat: parts.responseFormat,
    }),
    ...(parts.citations && { citations: true }),
  };
}

/** Returns the parts that a model search shares with the run's other requests. */
function searchRequest({ stream, origin, agent, priority }: Run["request"]): ModelSearch["request"] {
  return { stream, ...defined({ origin, agent, priority }) };
}

/** Runs calls of client tools, emitted as those of the calling agent. */
function externalCalls(parts: RunParts): RunExternal {
  const { broker, emit, log, cwd: workingDirectory, tracing, trace, agent } = parts;
  const { sessionId } = log;
  return (call, signal) => {
    // Without tracing here, pass on the client's own trace.
    const senderTrace = trace && readTraceContext(trace) ? trace : undefined;
    const context = tracing?.ofCall(call.toolCallId, agent?.id) ?? senderTrace;
    return broker.request("external_tool", { ...call, sessionId, workingDirectory, ...context }, { signal, emit });
  };
}

/** Returns the current system prompt and tools of the model. */
function shownPrompt({ promptAndTools, limitedTools, broker }: RunParts): Shown {
  return {
    get system() {
      return promptAndTools.system;
    },
    get tools() {
      return answerable(limitedTools?.of(promptAndTools.tools) ?? promptAndTools.tools, broker);
    },
  };
}

function refusals({ redactor, reasonToRefuse }: RunSettings): NonNullable<PermitOptions["reasonToRefuse"]> {
  const secret = redactor && carriesSecret(redactor);
  return (question) => reasonToRefuse?.(question) ?? secret?.(question);
}

/** Denies URLs, commands and server calls that contain a known secret, whatever the permissions. */
function carriesSecret(redactor: Redactor): NonNullable<PermitOptions["reasonToRefuse"]> {
  return ({ access }) => {
    const outgoing =
      access.kind === "url"
        ? access.url
        : access.kind === "shell"
          ? access.command
          : access.kind === "mcp"
            ? JSON.stringify(access.args ?? {})
            : "";
    return redactor.holdsSecret(outgoing) ? "it would carry a secret value out" : undefined;
  };
}

/** Removes tools that ask questions which no attached client can answer. */
function answerable(tools: readonly Tool[], broker: Broker): readonly Tool[] {
  const cannot = tools.some(({ needs }) => needs && !broker.canAnswer(needs));
  return cannot ? tools.filter(({ needs }) => !needs || broker.canAnswer(needs)) : tools;
}

async function storeBinaries(
  images: readonly Image[],
  resources: readonly Image[],
  log: SessionLog,
): Promise<BinaryReference[]> {
  const stored: BinaryReference[] = [];
  for (const binary of [...images, ...resources]) {
    const { data, mimeType, description } = binary;
    const bytes = Buffer.from(data, "base64");
    const { assetId } = await log.writeAsset(bytes, mimeType.split("/")[1] ?? "bin");
    stored.push({
      type: resources.includes(binary) ? "resource" : "image",
      assetId,
      byteLength: bytes.length,
      mimeType,
      ...defined({ description }),
    });
  }
  return stored;
}
