/**
 * Answers requests of MCP servers during a tool call. Elicitation is passed to the session's clients as a request of
 * kind "elicitation". Sampling requires a permission and runs on the session's model, within its budget.
 */
import { defined } from "../../lib/defined.ts";
import { clip } from "../../lib/text.ts";
import { decide } from "../../permissions/decide.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { Access } from "../../protocol/permission.ts";
import {
  type McpAnswerers,
  type McpElicitation,
  type McpSampling,
  readSampling,
  sampleMessage,
} from "../../tools/mcp/requests.ts";
import type { Session } from "../session.ts";
import { callModelOnce } from "../turn/single-call.ts";
import { permitOutsideCall } from "./permit-outside-call.ts";
import type { RequestData } from "./requests.ts";

/** Returns the answers that this session can currently give. The server is not offered missing ones. */
export function mcpAnswerers(session: Session, serverName: string): McpAnswerers {
  const canElicit = session.requests.canAnswer("elicitation");
  return {
    ...(canElicit && { elicit: (request, signal) => elicit(session, request, signal) }),
    ...(maySample(session, { serverName, canElicit }) && {
      sample: (request, signal) => sample(session, request, signal),
    }),
  };
}

/** Whether a rule or mode allows sampling, or a user can be asked. */
function maySample(session: Session, request: { serverName: string; canElicit: boolean }): boolean {
  const { policy, grants } = session.permissions;
  const { cwd } = session.workspace;
  const access: Access = { kind: "mcp-sampling", serverName: request.serverName };
  const known = { ...policy, sessionApprovals: grants.sessionApprovals, locationApprovals: grants.locationApprovals };
  const { decision } = decide(known, { access, toolName: access.kind, cwd });
  return decision === "allow" || (decision === "ask" && request.canElicit && session.requests.canAnswer("permission"));
}

async function elicit(
  session: Session,
  request: McpElicitation,
  signal: AbortSignal,
): ReturnType<NonNullable<McpAnswerers["elicit"]>> {
  const { serverName, toolCallId, message } = request;
  const data: RequestData<"elicitation"> = {
    message,
    elicitationSource: serverName,
    ...defined({ toolCallId }),
    ...(request.mode === "url"
      ? { mode: "url", url: request.url }
      : { mode: "form", requestedSchema: request.requestedSchema }),
  };
  const answer = await session.requests.request("elicitation", data, { signal });
  if (typeof answer === "string") return { action: "cancel" };
  return { action: answer.action, content: fieldsOf(answer.content ?? {}) };
}

type Field = string | number | boolean | string[];

/** Drops values that the protocol does not support. */
function fieldsOf(content: Readonly<Record<string, unknown>>): Record<string, Field> {
  const isField = (value: unknown): value is Field =>
    ["string", "number", "boolean"].includes(typeof value) ||
    (Array.isArray(value) && value.every((item) => typeof item === "string"));
  const fields = Object.entries(content).filter((entry): entry is [string, Field] => isField(entry[1]));
  return Object.fromEntries(fields);
}

const MAX_SHOWN_CHARACTERS = 8_000;

/** Runs a sampling request that a client passes on. Takes and returns the forms of `sampling/createMessage`. */
export async function executeSampling(
  session: Session,
  { serverName, params }: { readonly serverName: string; readonly params: unknown },
  signal: AbortSignal,
): Promise<object> {
  const request = readSampling(params, serverName);
  if (typeof request === "string") throw new TroupeError("usage", request);
  return sampleMessage(await sample(session, request, signal));
}

async function sample(
  session: Session,
  request: McpSampling,
  signal: AbortSignal,
): ReturnType<NonNullable<McpAnswerers["sample"]>> {
  const { serverName, systemPrompt = "", messages, maxTokens } = request;
  const shown = messages.map(({ role, text }) => `${role}: ${text}`).join("\n\n");
  const access: Access = {
    kind: "mcp-sampling",
    serverName,
    args: {
      ...(systemPrompt !== "" && { systemPrompt: clip(systemPrompt, MAX_SHOWN_CHARACTERS) }),
      messages: clip(shown, MAX_SHOWN_CHARACTERS),
      maxTokens,
    },
  };
  if (!(await permitOutsideCall(session, access, signal)))
    throw new Error("The user did not allow this sampling request.");
  const call = { turnId: "mcp-sampling", system: systemPrompt, tools: [], maxOutputTokens: maxTokens };
  const { text, stop } = await callModelOnce(session, { ...call, messages: messages.map(asMessage) }, signal).catch(
    (error: unknown) => {
      // The reason is for the user; the server learns only that there is no answer.
      const reason = error instanceof Error ? error.message : String(error);
      session.record.warn("mcp", `The sampling request of the MCP server ${serverName} failed: ${reason}`);
      throw new TroupeError("failed", "The model gave no answer.", { cause: error });
    },
  );
  return { model: session.mainAgent.model.model, text, stopReason: stop === "length" ? "maxTokens" : "endTurn" };
}

const asMessage = ({ role, text }: McpSampling["messages"][number]) =>
  role === "user" ? { role, content: text } : { role, content: text, calls: [] };
