/**
 * Answers the commands of the page: JSON-RPC with the methods of the contract, and a few of its own (`web.…`) for what only
 * the dashboard shows. Only the listed methods of the contract can be called.
 */
import { isObject } from "../lib/json.ts";
import { TroupeError, withHint } from "../protocol/errors.ts";
import { rpcCodes } from "../protocol/rpc/errors.ts";
import { isSessionId } from "../store/session-id.ts";
import type { OpenSessions } from "./open-sessions.ts";

export type Params = Readonly<Record<string, unknown>>;
export type OwnMethod = (params: Params) => Promise<unknown>;

export interface CallParts {
  readonly openSessions: OpenSessions;
  /** Calls a method that belongs to no session. */
  request(method: string, params: Params): Promise<unknown>;
  readonly own: Readonly<Record<string, OwnMethod>>;
}

const sessionMethods: ReadonlySet<string> = new Set([
  "session.abort",
  "session.assets.read",
  "session.cancelAllBackgroundAgents",
  "session.commands.list",
  "session.commands.submit",
  "session.history.compact",
  "session.history.listRewindPoints",
  "session.history.previewRewind",
  "session.history.rewind",
  "session.interruptMainTurn",
  "session.mcp.oauth.handlePendingRequest",
  "session.mode.set",
  "session.model.list",
  "session.model.switchTo",
  "session.name.set",
  "session.permissions.handlePendingPermissionRequest",
  "session.permissions.pendingRequests",
  "session.plan.read",
  "session.queue.clear",
  "session.queue.withdrawMessage",
  "session.send",
  "session.tasks.cancel",
  "session.tasks.list",
  "session.tasks.promoteToBackground",
  "session.tasks.sendMessage",
  "session.tasks.startAgent",
  "session.ui.handlePendingElicitation",
  "session.ui.handlePendingExitPlanMode",
  "session.ui.handlePendingSessionLimitsExhausted",
  "session.ui.handlePendingUserInput",
]);
const hostMethods: ReadonlySet<string> = new Set(["models.list", "sessions.fork", "session.delete"]);

const MAX_DEPTH = 64;
const FORBIDDEN = /"(?:__proto__|constructor|prototype)"\s*:/;

/** Returns the response as text, for every body. */
export async function answerCall(body: string, parts: CallParts): Promise<string> {
  const request = parseCall(body);
  if (!request) return failure(null, rpcCodes.parseError, "The request is not valid JSON-RPC.");
  const { id, method, params } = request;
  try {
    return JSON.stringify({ jsonrpc: "2.0", id, result: (await run(method, params, parts)) ?? null });
  } catch (error) {
    if (error instanceof UnknownMethod) return failure(id, rpcCodes.methodNotFound, error.message);
    const message = error instanceof TroupeError ? withHint(error.message, error.hint) : plainMessage(error);
    return failure(id, rpcCodes.internalError, message);
  }
}

class UnknownMethod extends Error {}

async function run(method: string, params: Params, { openSessions, own, request }: CallParts): Promise<unknown> {
  const ownMethod = Object.hasOwn(own, method) ? own[method] : undefined;
  if (ownMethod) return ownMethod(params);
  if (hostMethods.has(method)) return request(method, params);
  if (!sessionMethods.has(method)) throw new UnknownMethod(`Unknown method ${method.slice(0, 100)}.`);
  const { sessionId, ...rest } = params;
  return openSessions.request(requireSessionId(sessionId), method, rest);
}

export function requireSessionId(value: unknown): string {
  if (typeof value === "string" && isSessionId(value)) return value;
  throw new TroupeError("usage", "The request names no valid session.");
}

/** The text of a parameter; throws when there is none. */
export function requireText(params: Params, name: string): string {
  const value = params[name];
  if (typeof value === "string" && value !== "") return value;
  throw new TroupeError("usage", `The request has no ${name}.`);
}

function parseCall(body: string): { id: unknown; method: string; params: Params } | undefined {
  if (FORBIDDEN.test(body) || depthOf(body) > MAX_DEPTH) return undefined;
  try {
    const value: unknown = JSON.parse(body);
    if (!isObject(value) || typeof value.method !== "string") return undefined;
    const { id = null, method, params = {} } = value;
    if (!isObject(params) || !(id === null || typeof id === "number" || typeof id === "string")) return undefined;
    return { id, method, params };
  } catch {
    return undefined;
  }
}

/** Counts brackets before anything is parsed. Those inside texts count too, which only refuses more. */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  let isText = false;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (isText) {
      if (code === 0x5c) index++;
      else if (code === 0x22) isText = false;
    } else if (code === 0x22) isText = true;
    else if (code === 0x5b || code === 0x7b) deepest = Math.max(deepest, ++depth);
    else if (code === 0x5d || code === 0x7d) depth--;
  }
  return deepest;
}

function failure(id: unknown, code: number, message: string): string {
  return JSON.stringify({ jsonrpc: "2.0", id, error: { code, message } });
}

/** Errors of the contract come with the words of the wire around them. */
function plainMessage(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.replace(/^Request [\w.]+ failed with message: /, "");
}
