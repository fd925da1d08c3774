/** The tools of the server and of a session. */

import * as z from "zod";
import { defined } from "../../../lib/defined.ts";
import { TroupeError } from "../../../protocol/errors.ts";
import type { Session } from "../../../session/session.ts";
import { ToolDefinition } from "../../sessions/session-options.ts";
import { type MethodTable, method, nothing, sessionMethod } from "../method.ts";

export const toolsMethods: MethodTable = {
  "tools.list": method(
    () => z.object({ model: z.string().optional() }),
    ({ model: _ }, { server }) => ({
      tools: server.runtime.tools.map(({ name, description, parameters }) => ({ name, description, parameters })),
    }),
  ),
  "session.tools.set": sessionMethod(
    () => ({ tools: z.array(ToolDefinition()).max(1000) }),
    ({ tools }, { hosted, connection }) => {
      hosted.clients.setTools(connection, tools);
      return {};
    },
  ),
  "session.tools.execute": sessionMethod(
    () => ({ name: z.string().min(1), arguments: z.json(), toolCallId: z.string().min(1).max(200).optional() }),
    async ({ name, arguments: given, toolCallId }, { session, signal }) => {
      const call = { toolCallId: newCallId(session, toolCallId), name, arguments: given };
      const ended = AbortSignal.any([signal, session.queue.closed]);
      return resultOf(await session.mainAgent.callTool(call, ended), session);
    },
  ),
  "session.tools.getBuiltinDescriptors": sessionMethod(nothing, (_, { server }) => ({
    tools: server.runtime.tools.map(descriptorOf),
  })),
  "session.tools.taskCompleteEventData": sessionMethod(
    () => ({ toolArgs: z.unknown().optional(), finalResult: z.looseObject({ resultType: z.string().optional() }) }),
    ({ toolArgs, finalResult }) => {
      const { summary } = z.object({ summary: z.string().optional() }).catch({}).parse(toolArgs);
      const success = (finalResult.resultType ?? "success") === "success";
      return { ...defined({ summary }), success, outcome: success ? "completed" : "continue" };
    },
  ),
  "session.tools.initializeAndValidate": sessionMethod(nothing, async (_, { session, signal }) => {
    await session.mainAgent.prompt.ready?.(signal);
    return {};
  }),
  // Before the first turn, no tools were offered to a model.
  "session.tools.getCurrentMetadata": sessionMethod(nothing, (_, { session }) => ({
    tools: hadTurn(session) ? session.mainAgent.prompt.tools.map(metadataOf) : null,
  })),
  "session.tools.updateSubagentSettings": sessionMethod(
    () => ({ subagents: Subagents().nullish() }),
    ({ subagents }, { hosted }) => {
      hosted.giveSubagents(subagents ?? {});
      return {};
    },
  ),
};

const ofAgent = () =>
  z.object({ model: z.string().min(1).max(200).exactOptional(), effortLevel: z.string().max(40).exactOptional() });

/** Some clients put agents beside the other fields instead of into `agents`. */
const Subagents = () =>
  z
    .object({
      agents: z.record(z.string(), ofAgent()).optional(),
      disabledSubagents: z.array(z.string().max(200)).max(1000).exactOptional(),
      maxConcurrency: z.int().min(1).exactOptional(),
      maxDepth: z.int().min(1).exactOptional(),
    })
    .catchall(ofAgent())
    .transform(({ agents = {}, disabledSubagents, maxConcurrency, maxDepth, ...named }) => ({
      agents: { ...named, ...agents },
      ...defined({ disabledSubagents, maxConcurrency, maxDepth }),
    }));

const hadTurn = (session: Session): boolean => session.events.some(({ type }) => type === "assistant.turn_start");

type Tool = Session["mainAgent"]["prompt"]["tools"][number];

function metadataOf(tool: Tool): object {
  const { name, description, parameters } = tool;
  return { name, description, input_schema: parameters };
}

function descriptorOf({ name, description, parameters, endsAnswer }: Tool): object {
  return {
    name,
    title: null,
    description,
    inputSchema: parameters,
    instructions: null,
    type: "function",
    format: null,
    safeForTelemetry: true,
    isTerminal: endsAnswer,
    hasSummariseIntention: false,
  };
}

/** Throws if a call of the session has this id: events of the two calls would be ambiguous. */
function newCallId(session: Session, wanted: string | undefined): string {
  if (wanted === undefined) return session.record.stamp.id("call");
  const isUsed = session.events.some(
    (event) =>
      (event.type === "tool.execution_start" && event.data.toolCallId === wanted) ||
      (event.type === "assistant.message" && event.data.toolRequests.some(({ toolCallId }) => toolCallId === wanted)),
  );
  if (!isUsed) return wanted;
  throw new TroupeError("usage", `A call with the id ${wanted} exists in this session.`, {
    hint: "Leave toolCallId out, or choose another one.",
  });
}

const resultTypes: Readonly<Record<string, string>> = { denied: "denied", rejected: "rejected", timeout: "timeout" };

/** Returns the result of a requested call in the form of the wire. */
function resultOf({ data, value }: Awaited<ReturnType<Session["mainAgent"]["callTool"]>>, session: Session): object {
  const clean = (text: string): string => session.record.redactor?.text(text) ?? text;
  if (!data.success) {
    const { message = "", code = "" } = data.error ?? {};
    return { textResultForLlm: clean(message), resultType: resultTypes[code] ?? "failure", error: clean(message) };
  }
  const { images = [], messages = [], toolReferences } = value ?? {};
  const { content = "", detailedContent } = data.result ?? {};
  return {
    textResultForLlm: clean(content),
    resultType: "success",
    ...(detailedContent !== undefined && { sessionLog: clean(detailedContent) }),
    ...(images.length > 0 && {
      binaryResultsForLlm: images.map(({ data: bytes, mimeType }) => ({ data: bytes, mimeType, type: "image" })),
    }),
    ...(messages.length > 0 && { newMessages: messages.map((one) => ({ ...one, content: clean(one.content) })) }),
    ...defined({ toolReferences }),
  };
}
