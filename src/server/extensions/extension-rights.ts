/**
 * The methods that an extension may call: fewer than a client that a user started. It has one session and sees the
 * events that it receives anyway. It may send messages and provide what a client may provide. It may not change
 * permissions or session options, run commands through the server, or access other sessions.
 */
import { isObject } from "../../lib/json.ts";
import { RpcError, rpcCodes } from "../../protocol/rpc/errors.ts";
import type { ClientConnection } from "../connection.ts";

const ofServer: ReadonlySet<string> = new Set(["connect", "ping", "status.get"]);

const factoryNames = [
  ...["run", "resume", "pause", "pauseAtCheckpoint", "cancel", "getRun", "listRuns", "getRunDetail", "getRunProgress"],
  ...["log", "agent", "journal.get", "journal.put"],
];

const ofSession: ReadonlySet<string> = new Set([
  ...["resume", "destroy", "detach", "send", "abort", "getMessages", "log"].map((name) => `session.${name}`),
  ...["read", "tail", "registerInterest", "releaseInterest"].map((name) => `session.eventLog.${name}`),
  ...["list", "handlePendingCommand"].map((name) => `session.commands.${name}`),
  ...["list", "sendAttachmentsToMessage"].map((name) => `session.extensions.${name}`),
  ...["list", "listOpen", "open", "close", "action.invoke"].map((name) => `session.canvas.${name}`),
  ...["getWorkspace", "listFiles", "readFile", "createFile", "listCheckpoints", "readCheckpoint"].map(
    (name) => `session.workspaces.${name}`,
  ),
  ...["list", "getProgress"].map((name) => `session.tasks.${name}`),
  ...["read", "readSqlTodos", "readSqlTodosWithDependencies"].map((name) => `session.plan.${name}`),
  ...["elicitation", "ephemeralQuery"].map((name) => `session.ui.${name}`),
  ...["factory", "workflow"].flatMap((family) => factoryNames.map((name) => `session.${family}.${name}`)),
  "session.tools.handlePendingToolCall",
  "session.tools.getCurrentMetadata",
  "session.permissions.pendingRequests",
  "session.mode.get",
  "session.model.getCurrent",
  "session.model.list",
  "session.name.get",
  "session.name.set",
  "session.agent.list",
  "session.agent.getCurrent",
  "session.skills.list",
  "session.skills.getInvoked",
  "session.mcp.list",
  "session.mcp.listTools",
  "session.plugins.list",
  "session.instructions.getSources",
  "session.schedule.list",
  "session.queue.pendingItems",
  "session.usage.getMetrics",
  "session.metadata.snapshot",
  "session.metadata.activity",
  "session.metadata.isProcessing",
  "session.metadata.contextInfo",
]);

/** Requests that a client can offer to answer for the user. An extension may answer them only if the user agrees. */
const inPlaceOfPerson = [
  {
    asked: "requestPermission",
    method: "session.permissions.handlePendingPermissionRequest",
    words: "answer permission requests in your place",
  },
  {
    asked: "requestUserInput",
    method: "session.ui.handlePendingUserInput",
    words: "answer questions in your place",
  },
  {
    asked: "requestElicitation",
    method: "session.ui.handlePendingElicitation",
    words: "fill in forms in your place",
  },
  {
    asked: "requestExitPlanMode",
    method: "session.ui.handlePendingExitPlanMode",
    words: "decide about plans in your place",
  },
  {
    asked: "requestAutoModeSwitch",
    method: "session.ui.handlePendingAutoModeSwitch",
    words: "switch to another model in your place",
  },
] as const;

const answering: ReadonlySet<string> = new Set(inPlaceOfPerson.map(({ method }) => method));

type Offers = { readonly [K in (typeof inPlaceOfPerson)[number]["asked"]]?: boolean | undefined };

/** Returns the requests that it offers to answer. */
export const answersOf = (offers: Offers) => inPlaceOfPerson.filter(({ asked }) => offers[asked] === true);

/** Throws if an extension calls a method that it may not call. Other clients may call every method. */
export function requireRight({ extension }: ClientConnection, method: string, params: unknown): void {
  if (!extension || ofServer.has(method)) return;
  const refuse = (why: string): never => {
    throw new RpcError(rpcCodes.refused, `The extension ${extension.name} may not call ${method}: ${why}`);
  };
  if (!ofSession.has(method) && !answering.has(method)) refuse("only clients that the user has started may do this.");
  const given = Array.isArray(params) ? params[0] : params;
  const sessionId = isObject(given) ? given.sessionId : undefined;
  if (sessionId !== extension.sessionId) refuse("it belongs to another session.");
  if (answering.has(method) && !extension.answers?.has(method))
    refuse("the user has not allowed it to answer in their place.");
  if (method === "session.eventLog.registerInterest" && isObject(given) && given.eventType === "mcp.oauth_required") {
    refuse("only clients that the user has started may provide tokens.");
  }
}

/** Filters the result of an extension's hook: it may deny permission requests of extensions, but not allow them. */
export function extensionsWord(
  said: unknown,
  { hookType, input }: { readonly hookType: string; readonly input: Readonly<Record<string, unknown>> },
): unknown {
  const isOfExtensions = hookType === "permissionRequest" && String(input.toolName).startsWith("extension-");
  return isOfExtensions && isObject(said) && said.behavior === "allow" ? undefined : said;
}
