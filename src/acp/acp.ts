/**
 * The ACP folder: the Agent Client Protocol for editors, version 1, JSON-RPC in lines on stdin and stdout. It is a
 * client like every other surface: an editor's requests become calls of `sdk`, and a session's events become updates
 * for the editor.
 */
import type { Readable, Writable } from "node:stream";
import type { AgentCapabilities } from "@agentclientprotocol/sdk/unstable";
import * as z from "zod";
import { parseJson } from "../lib/json.ts";
import { RpcError, rpcCodes } from "../protocol/rpc/errors.ts";
import { type IncomingRequest, Peer } from "../protocol/rpc/peer.ts";
import type { Client } from "../sdk/client.ts";
import { abilitiesOf, noAbilities } from "./abilities.ts";
import { EditorSession } from "./editor-session.ts";
import { editorError, noSession } from "./errors.ts";
import {
  authParams,
  configParams,
  initializeParams,
  listParams,
  loadParams,
  modeParams,
  newParams,
  promptParams,
  sessionParams,
} from "./params.ts";
import { sessionPage } from "./session-page.ts";
import { authenticate, authMethods, authStatus, logout } from "./sign-in.ts";

export interface AcpOptions {
  readonly client: Client;
  readonly input: Readable;
  readonly output: Writable;
  readonly version: string;
  /** The command line that starts this program, without arguments of its own. */
  readonly program?: readonly string[];
  /** Writes a message for the user to stderr. */
  say(message: string): void;
}

const PROTOCOL_VERSION = 1;
/** Maximum length of a message. */
const MAX_LINE_CHARACTERS = 64 * 1024 * 1024;

/** Serves one editor until it disconnects. Its sessions are closed then, and can be loaded again. */
export async function serveEditor(options: AcpOptions): Promise<void> {
  const { client, input, output, say } = options;
  const sessions = new Map<string, EditorSession>();
  const methods = editorMethods(options, sessions, () => peer);
  const peer: Peer = new Peer({
    send: (message) => void output.write(`${JSON.stringify(message, wellFormed)}\n`),
    cancellation: { method: "$/cancel_request", idField: "requestId" },
    async handle(method, params, request) {
      const handler = Object.hasOwn(methods, method) ? methods[method] : undefined;
      if (!handler) throw new RpcError(rpcCodes.methodNotFound, `Method not found: ${method}`);
      return handler(params, request).catch((error: unknown) => {
        throw editorError(error);
      });
    },
    onNotification(method, params) {
      const parsed = sessionParams().safeParse(params);
      if (method !== "session/cancel" || !parsed.success) return;
      const { sessionId } = parsed.data;
      [...sessions.values()].find((session) => session.has(sessionId))?.cancel(sessionId);
    },
  });
  try {
    for await (const line of linesOf(input)) {
      const parsed = parseJson(line);
      if (parsed.ok) peer.receive({ kind: "message", value: parsed.value });
      else say("a line from the editor is not JSON and was ignored");
    }
  } finally {
    peer.close("The editor has disconnected.");
    await client.stop();
  }
}

type Methods = Readonly<Record<string, (params: unknown, request: IncomingRequest) => Promise<unknown>>>;

const agentCapabilities: AgentCapabilities = {
  loadSession: true,
  promptCapabilities: { image: true, embeddedContext: true },
  mcpCapabilities: { http: true, sse: true },
  // `fork` is a draft of the protocol; editors that do not support it ignore it.
  sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {}, fork: {}, additionalDirectories: {} },
  // `status` is a draft too.
  auth: { logout: {}, status: {} },
};

/** The state that all methods of one editor share. */
interface Editor {
  readonly client: Client;
  readonly sessions: Map<string, EditorSession>;
  /** The parts of a new session. */
  parts(): SessionParts;
  /** Throws an error for the editor if it has no such session open. */
  known(sessionId: string): EditorSession;
  /** Returns the response to the editor. Further updates follow after the response. */
  opened(session: EditorSession): ReturnType<EditorSession["state"]>;
}

type SessionParts = Parameters<typeof EditorSession.create>[0];

function editorMethods(options: AcpOptions, sessions: Map<string, EditorSession>, peer: () => Peer): Methods {
  const { client, version, program } = options;
  let abilities = noAbilities;
  let isRefused = false;
  const onRefused = (): void => {
    isRefused = true;
  };
  const editor: Editor = {
    client,
    sessions,
    parts: () => ({ client, peer: peer(), abilities, onRefused }),
    known(sessionId) {
      const session = sessions.get(sessionId);
      if (!session) throw noSession(sessionId);
      return session;
    },
    async opened(session) {
      sessions.get(session.sessionId)?.leave();
      sessions.set(session.sessionId, session);
      const state = await session.state();
      setImmediate(() => session.show().catch(() => undefined)); // fails only if the session is gone
      return state;
    },
  };
  return {
    async initialize(params) {
      abilities = abilitiesOf(parseParams(initializeParams(), params));
      return {
        protocolVersion: PROTOCOL_VERSION,
        agentInfo: { name: "troupe", version },
        agentCapabilities,
        authMethods: authMethods(abilities, program),
      };
    },
    async authenticate(params, { id: requestId, signal }) {
      const { methodId } = parseParams(authParams(), params);
      const model = await authenticate(editor.parts(), { methodId, requestId, signal, isRefused });
      isRefused = false;
      if (model !== undefined) for (const session of sessions.values()) await session.useNewKey(model);
      return {};
    },
    async logout() {
      try {
        await logout(client);
      } finally {
        for (const session of sessions.values()) await session.modelsChanged();
      }
      return {};
    },
    "auth/status": async () => authStatus(client),
    ...openingMethods(editor),
    ...sessionMethods(editor),
  };
}

/** Methods that open a session. */
function openingMethods({ client, parts, opened }: Editor): Methods {
  return {
    async "session/new"(params) {
      const session = await EditorSession.create(parts(), parseParams(newParams(), params));
      return { sessionId: session.sessionId, ...(await opened(session)) };
    },
    async "session/load"(params) {
      const session = await EditorSession.resume(parts(), parseParams(loadParams(), params));
      await session.replay();
      return opened(session);
    },
    async "session/resume"(params) {
      const session = await EditorSession.resume(parts(), parseParams(loadParams(), params));
      await session.recallCost();
      return opened(session);
    },
    async "session/fork"(params) {
      const loaded = parseParams(loadParams(), params);
      const { sessionId } = await client.rpc.sessions.fork({ sessionId: loaded.sessionId });
      const session = await EditorSession.resume(parts(), { ...loaded, sessionId });
      await session.recallCost();
      return { sessionId, ...(await opened(session)) };
    },
  };
}

/** Methods about stored and open sessions. */
function sessionMethods({ client, sessions, known }: Editor): Methods {
  return {
    "session/list": async (params) => sessionPage(client, parseParams(listParams(), params)),
    async "session/close"(params) {
      const { sessionId } = parseParams(sessionParams(), params);
      const session = known(sessionId);
      sessions.delete(sessionId);
      await session.close();
      return {};
    },
    async "session/delete"(params) {
      const { sessionId } = parseParams(sessionParams(), params);
      await sessions.get(sessionId)?.close();
      sessions.delete(sessionId);
      await client.deleteSession(sessionId);
      return {};
    },
    async "session/prompt"(params, { signal }) {
      const { sessionId, prompt } = parseParams(promptParams(), params);
      const session = known(sessionId);
      signal.addEventListener("abort", () => session.cancel(), { once: true });
      return { stopReason: await session.prompt(prompt) };
    },
    async "session/set_mode"(params) {
      const { sessionId, modeId } = parseParams(modeParams(), params);
      await known(sessionId).setMode(modeId);
      return {};
    },
    async "session/set_config_option"(params) {
      const { sessionId, configId, value } = parseParams(configParams(), params);
      return { configOptions: await known(sessionId).configure(configId, value) };
    },
  };
}

function parseParams<S extends z.ZodType>(schema: S, params: unknown): z.infer<S> {
  const result = schema.safeParse(params);
  if (result.success) return result.data;
  throw new RpcError(rpcCodes.invalidParams, `The request cannot be read: ${z.prettifyError(result.error)}`);
}

/** Most JSON readers of editors reject half of a surrogate pair, which remains when a text is cut. */
const wellFormed = (_: string, value: unknown): unknown =>
  typeof value === "string" && LONE_SURROGATE.test(value) ? value.replace(LONE_SURROGATES, "\ufffd") : value;
const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;
const LONE_SURROGATES = new RegExp(LONE_SURROGATE, "g");

async function* linesOf(input: Readable): AsyncGenerator<string> {
  let rest = "";
  input.setEncoding("utf8");
  for await (const chunk of input) {
    rest += chunk;
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.trim() !== "") yield line;
    if (rest.length > MAX_LINE_CHARACTERS)
      throw new RpcError(rpcCodes.invalidRequest, "A line from the editor is too long.");
  }
}
