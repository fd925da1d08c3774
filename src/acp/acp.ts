/**
 * For editors: the Agent Client Protocol, version 1, JSON-RPC in lines on stdin and stdout. It is a client like every other
 * surface: what an editor asks becomes calls of `sdk`, and what happens in a session becomes updates for the editor.
 */
import type { Readable, Writable } from "node:stream";
import { parseJson } from "../lib/json.ts";
import { RpcError, rpcCodes } from "../protocol/rpc/errors.ts";
import { Peer } from "../protocol/rpc/peer.ts";
import type { Client } from "../sdk/client.ts";
import { EditorSession } from "./editor-session.ts";
import { initializeParams, loadParams, modeParams, newParams, promptParams, sessionParams } from "./params.ts";

export interface AcpOptions {
  readonly client: Client;
  readonly input: Readable;
  readonly output: Writable;
  readonly version: string;
  /** For people, on stderr. */
  say(message: string): void;
}

const PROTOCOL_VERSION = 1;
/** A line that is longer is no message of an editor. */
const MAX_LINE_CHARACTERS = 64 * 1024 * 1024;

/** Serves one editor until it goes away. Its sessions are let go of then, and stay to be loaded again. */
export async function serveEditor(options: AcpOptions): Promise<void> {
  const { client, input, output, say } = options;
  const sessions = new Map<string, EditorSession>();
  const methods = editorMethods(options, sessions, () => peer);
  const peer: Peer = new Peer({
    send: (message) => void output.write(`${JSON.stringify(message)}\n`),
    async handle(method, params) {
      const handler = Object.hasOwn(methods, method) ? methods[method] : undefined;
      if (!handler) throw new RpcError(rpcCodes.methodNotFound, `Method not found: ${method}`);
      return handler(params);
    },
    onNotification(method, params) {
      const parsed = sessionParams().safeParse(params);
      if (method === "session/cancel" && parsed.success) sessions.get(parsed.data.sessionId)?.cancel();
    },
  });
  try {
    for await (const line of linesOf(input)) {
      const parsed = parseJson(line);
      if (parsed.ok) peer.receive({ kind: "message", value: parsed.value });
      else say("a line of the editor is not JSON and was left out");
    }
  } finally {
    peer.close("The editor has gone.");
    await client.stop();
  }
}

type Methods = Readonly<Record<string, (params: unknown) => Promise<unknown>>>;

function editorMethods(options: AcpOptions, sessions: Map<string, EditorSession>, peer: () => Peer): Methods {
  const { client, version } = options;
  const known = (sessionId: string): EditorSession => {
    const session = sessions.get(sessionId);
    if (!session) throw new RpcError(rpcCodes.invalidParams, `There is no session ${sessionId}.`);
    return session;
  };
  const opened = async (session: EditorSession): Promise<EditorSession> => {
    sessions.set(session.sessionId, session);
    return session;
  };
  return {
    async initialize(params) {
      parsed(initializeParams(), params);
      return {
        protocolVersion: PROTOCOL_VERSION,
        agentInfo: { name: "troupe", version },
        agentCapabilities: {
          loadSession: true,
          promptCapabilities: { image: true, embeddedContext: true },
          mcpCapabilities: { http: true, sse: true },
        },
        authMethods: [],
      };
    },
    async "session/new"(params) {
      const session = await opened(await EditorSession.create(client, peer(), parsed(newParams(), params)));
      return { sessionId: session.sessionId, modes: await session.modes() };
    },
    async "session/load"(params) {
      const session = await opened(await EditorSession.load(client, peer(), parsed(loadParams(), params)));
      await session.replay();
      return { modes: await session.modes() };
    },
    async "session/prompt"(params) {
      const { sessionId, prompt } = parsed(promptParams(), params);
      return { stopReason: await known(sessionId).prompt(prompt) };
    },
    async "session/set_mode"(params) {
      const { sessionId, modeId } = parsed(modeParams(), params);
      await known(sessionId).setMode(modeId);
      return {};
    },
  };
}

interface Schema<T> {
  safeParse(value: unknown): { success: true; data: T } | { success: false; error: { message: string } };
}

function parsed<T>(schema: Schema<T>, params: unknown): T {
  const result = schema.safeParse(params);
  if (result.success) return result.data;
  throw new RpcError(rpcCodes.invalidParams, result.error.message);
}

async function* linesOf(input: Readable): AsyncGenerator<string> {
  let rest = "";
  input.setEncoding("utf8");
  for await (const chunk of input) {
    rest += chunk;
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.trim() !== "") yield line;
    if (rest.length > MAX_LINE_CHARACTERS)
      throw new RpcError(rpcCodes.invalidRequest, "A line of the editor is too long.");
  }
}
