/** The tools there are, of the server and of a session. */
import * as z from "zod";
import type { Session } from "../../session/session.ts";
import { ToolDefinition } from "../session-options.ts";
import { type MethodTable, method, nothing, sessionMethod } from "./method.ts";

export const toolsMethods: MethodTable = {
  "tools.list": method(
    () => z.object({ model: z.string().optional() }),
    ({ model: _ }, { server }) => ({
      tools: server.runtime.tools.map(({ name, description, parameters }) => ({ name, description, parameters })),
    }),
  ),
  "session.tools.set": sessionMethod(
    () => ({ tools: z.array(ToolDefinition()).max(1000) }),
    ({ tools }, { live, connection }) => {
      live.clients.setTools(connection, tools);
      return {};
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
      return { ...(summary !== undefined && { summary }), success, outcome: success ? "completed" : "continue" };
    },
  ),
  "session.tools.initializeAndValidate": sessionMethod(nothing, async (_, { session, signal }) => {
    await session.settings.offer.ready?.(signal);
    return {};
  }),
  // Before the first turn a session has offered nothing to anybody.
  "session.tools.getCurrentMetadata": sessionMethod(nothing, (_, { session }) => ({
    tools: hadTurn(session) ? session.settings.offer.tools.map(metadataOf) : null,
  })),
  "session.tools.updateSubagentSettings": sessionMethod(
    () => ({ subagents: Subagents().nullish() }),
    ({ subagents }, { live }) => {
      live.giveSubagents(subagents ?? {});
      return {};
    },
  ),
};

const ofAgent = () =>
  z.object({ model: z.string().min(1).max(200).exactOptional(), effortLevel: z.string().max(40).exactOptional() });

/** Some clients name agents beside the rest instead of in `agents`. */
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
      ...(disabledSubagents && { disabledSubagents }),
      ...(maxConcurrency !== undefined && { maxConcurrency }),
      ...(maxDepth !== undefined && { maxDepth }),
    }));

const hadTurn = (session: Session): boolean => session.events.some(({ type }) => type === "assistant.turn_start");

type Tool = Session["settings"]["offer"]["tools"][number];

function metadataOf(tool: Tool): object {
  const { name, description, parameters } = tool;
  return { name, description, input_schema: parameters };
}

function descriptorOf({ name, description, parameters, terminal }: Tool): object {
  return {
    ...{ name, title: null, description, inputSchema: parameters, instructions: null, type: "function", format: null },
    ...{ safeForTelemetry: true, isTerminal: terminal, hasSummariseIntention: false },
  };
}
