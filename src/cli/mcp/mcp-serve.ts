/** `troupe mcp serve`: an MCP server over stdin and stdout whose tools run sessions. stdout carries messages only. */
import { once } from "node:events";
import type { McpServer } from "@modelcontextprotocol/server";
import * as z from "zod";
import { version } from "../../runtime/version.ts";
import { createClient } from "../../sdk/sdk.ts";
import { inProcess } from "../../server/in-process.ts";
import { type Arguments, usage } from "../args.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { Launcher } from "../launcher.ts";
import { sayLines } from "../output/print-message.ts";
import { sessionRequest } from "../prompt-mode.ts";
import { onInterrupt } from "../signals.ts";
import { ServedSessions, type ServedSessionView } from "./served-sessions.ts";

export async function mcpServeCommand(given: Arguments, launcher: Launcher): Promise<ExitCode> {
  if (given.words.length > 2) throw usage("troupe mcp serve takes flags only.");
  for (const name of ["log", "info", "debug", "dir", "table"] as const) console[name] = console.error;
  const { cwd, ...defaults } = sessionRequest(given, "json");
  const environment = { ...process.env };
  const connection = inProcess({
    environment,
    cwd,
    say: sayLines,
    importModule: launcher.importModule,
    defaults: { ...defaults, tools: { ...defaults.tools, waitForServers: true } },
  });
  const client = await createClient({ connection });
  const sessions = new ServedSessions({ client, cwd, folders: defaults.permissions?.paths ?? [] });
  const { serveStdio } = await import("@modelcontextprotocol/server/stdio");
  const { McpServer: Server } = await import("@modelcontextprotocol/server");
  const ended = once(process.stdin, "close");
  const handle = serveStdio(
    () => withTools(new Server({ name: "troupe", version }, { instructions: INSTRUCTIONS }), sessions),
    { onerror: (error) => sayLines(`mcp serve: ${error.message}`) },
  );
  onInterrupt(() => process.stdin.destroy());
  await ended;
  await handle.close();
  await client.stop();
  return exitCodes.done;
}

const INSTRUCTIONS =
  "Each session is a coding agent that works by itself in a folder. Start one with start_session, then call " +
  "wait_for_session until its status is no longer working. send_message continues it. " +
  "Actions that the server was not started to allow are denied and listed in denied.";

const sessionId = z.string().describe("The sessionId that start_session returned.");
const view = z.object({
  sessionId: z.string(),
  status: z.enum(["working", "idle", "failed"]),
  cwd: z.string(),
  name: z.string().optional(),
  answer: z.string().optional(),
  error: z.string().optional(),
  activity: z.string().optional(),
  denied: z.array(z.string()).optional(),
});
const DEFAULT_WAIT_SECONDS = 50;
const MAX_WAIT_SECONDS = 3600;
const seconds = z.number().min(0).max(MAX_WAIT_SECONDS);
const PROGRESS_MS = 5_000;

/** The part of a tool's context that is used here. */
interface Context {
  readonly mcpReq: {
    readonly signal: AbortSignal;
    readonly _meta?: { readonly progressToken?: string | number | undefined } | undefined;
    notify(notification: { method: string; params: Record<string, unknown> }): Promise<void>;
  };
}

function withTools(server: McpServer, sessions: ServedSessions): McpServer {
  const wait = async (id: string, waitSeconds: number, context: Context) => {
    const stop = reportProgress(() => sessions.view(id), context);
    const timeoutMs = waitSeconds * 1000;
    return sessions.wait(id, { timeoutMs, signal: context.mcpReq.signal }).finally(stop);
  };
  server.registerTool(
    "start_session",
    {
      description: "Starts an agent on a prompt in a new session. Returns at once unless waitSeconds is given.",
      inputSchema: z.object({
        prompt: z.string().min(1),
        cwd: z.string().optional().describe("The folder to work in; the server's own unless given."),
        model: z.string().optional(),
        agent: z.string().optional().describe("The name of a custom agent to use as the main agent."),
        name: z.string().max(200).optional().describe("A label for list_sessions."),
        waitSeconds: seconds.default(0).describe("How long to wait for the answer."),
      }),
      outputSchema: view,
    },
    async ({ waitSeconds, ...request }, context) => {
      const { sessionId: id } = await sessions.start(request);
      return shownSession(await wait(id, waitSeconds, context));
    },
  );
  server.registerTool(
    "send_message",
    {
      description:
        "Sends another message to a session. A session that works answers it afterwards, or is steered by it.",
      inputSchema: z.object({
        sessionId,
        message: z.string().min(1),
        mode: z.enum(["enqueue", "immediate"]).default("enqueue").describe("immediate steers the work under way."),
        waitSeconds: seconds.default(0).describe("How long to wait for the answer."),
      }),
      outputSchema: view,
    },
    async ({ sessionId: id, message, mode, waitSeconds }, context) => {
      await sessions.send(id, message, mode);
      return shownSession(await wait(id, waitSeconds, context));
    },
  );
  server.registerTool(
    "wait_for_session",
    {
      description: "Waits until a session has finished its work, and returns its answer. Waiting again is free.",
      inputSchema: z.object({ sessionId, timeoutSeconds: seconds.default(DEFAULT_WAIT_SECONDS) }),
      outputSchema: view,
      annotations: { readOnlyHint: true },
    },
    async ({ sessionId: id, timeoutSeconds }, context) => shownSession(await wait(id, timeoutSeconds, context)),
  );
  registerLooks(server, sessions);
  return server;
}

function registerLooks(server: McpServer, sessions: ServedSessions): void {
  server.registerTool(
    "get_session",
    {
      description: "Returns the status and the last answer of a session without waiting.",
      inputSchema: z.object({ sessionId }),
      outputSchema: view,
      annotations: { readOnlyHint: true },
    },
    async ({ sessionId: id }) => shownSession(sessions.view(id)),
  );
  server.registerTool(
    "list_sessions",
    {
      description: "Lists the open sessions of this server.",
      inputSchema: z.object({}),
      outputSchema: z.object({ sessions: z.array(view) }),
      annotations: { readOnlyHint: true },
    },
    async () => {
      const all = { sessions: sessions.list() };
      return { content: [{ type: "text", text: JSON.stringify(all) }], structuredContent: all };
    },
  );
  server.registerTool(
    "stop_session",
    {
      description: "Stops the work of a session. With close: true the session is closed too; it stays on disk.",
      inputSchema: z.object({ sessionId, close: z.boolean().default(false) }),
      outputSchema: view,
    },
    async ({ sessionId: id, close }) => shownSession(await sessions.stop(id, { close })),
  );
}

const shownSession = (session: ServedSessionView) => ({
  content: [{ type: "text" as const, text: JSON.stringify(session) }],
  structuredContent: { ...session },
});

/** Reports progress to a client that asked for it, so that the client's own timeout starts again. */
function reportProgress(look: () => ServedSessionView, { mcpReq }: Context): () => void {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return () => undefined;
  let progress = 0;
  const timer = setInterval(() => {
    const { status, activity } = look();
    const message = activity === undefined ? status : `${status}: ${activity}`;
    const params = { progressToken, progress: ++progress, message };
    mcpReq.notify({ method: "notifications/progress", params }).catch(() => undefined);
  }, PROGRESS_MS);
  return () => clearInterval(timer);
}
