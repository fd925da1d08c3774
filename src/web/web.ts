/**
 * The dashboard: a page on this machine that shows every session and lets a person steer them. This folder has its server;
 * `page/` is what runs in the browser. Nothing of it is loaded by other commands.
 *
 * Events of sessions come from their logs (`session-feed.ts`), whichever process writes them. Commands go through the
 * contract that client programs use (`calls.ts`, `open-sessions.ts`). `http.ts` and `access.ts` decide who may talk to it.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Disk } from "../lib/node/disk.ts";
import type { Stamp } from "../lib/stamp.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Client } from "../sdk/client.ts";
import { isSessionId } from "../store/session-id.ts";
import { PageAccess } from "./access.ts";
import { readAssets } from "./assets.ts";
import { answerCall } from "./calls.ts";
import type { WebCluster } from "./cluster/cluster.ts";
import type { RequestListener } from "./cluster/watched-rows.ts";
import { Feeds } from "./feeds.ts";
import { type HttpListener, listen, type Routes, serve } from "./http.ts";
import { OpenSessions } from "./open-sessions.ts";
import { ownMethods } from "./own-methods.ts";
import { SessionLists } from "./session-lists.ts";
import { localLocation, type SessionLocation } from "./session-location.ts";
import { SessionLocator } from "./session-locator.ts";
import { SessionListRows } from "./session-rows.ts";
import { SignIns } from "./sign-ins.ts";
import { serveTab } from "./tab-stream.ts";

export interface WebOptions {
  /** A server in this process. It is stopped with the dashboard. */
  readonly client: Client;
  readonly runtime: Runtime;
  readonly cwd: string;
  readonly disk: Disk;
  readonly stamp: Stamp;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly version: string;
  /** The address of the database of a cluster. */
  readonly database?: string | undefined;
  /** The folder of the page's files. */
  readonly assets: string;
  /** Undefined: the usual port, or another when it is taken. */
  readonly port: number | undefined;
}

export interface Web {
  readonly port: number;
  /** Returns an address that logs a browser in, once. */
  address(): string;
  close(): Promise<void>;
}

const USUAL_PORT = 4270;

export async function startWeb(options: WebOptions): Promise<Web> {
  const { client, runtime } = options;
  const assets = await readAssets(options.assets);
  const cluster = await clusterOf(options, (sessionId, asked) => parts.feeds.announce(sessionId, asked));
  const parts: SessionParts = sessionParts(options, cluster);
  const { feeds, openSessions, signIns, rows } = parts;
  const own = { ...ownMethods({ ...options, ...parts, cluster }), ...cluster?.methods };
  const tabs = { ...parts, onWatch: (sessionId: string) => void openSessions.join(sessionId).catch(() => undefined) };

  const call = (body: string): Promise<string> =>
    answerCall(body, { openSessions, own, request: (method, params) => client.request(method, params) });
  let access: PageAccess | undefined;
  const handle = (incoming: IncomingMessage, response: ServerResponse): void => {
    if (!access) return void response.destroy();
    const stream: Routes["stream"] = (tab, answer, query) =>
      serveTab({ request: tab, response: answer }, watchedBy(tab.headers["last-event-id"], query), tabs);
    void serve({ access, assets, call, stream }, incoming, response);
  };
  const listening = await listenFor(options.port, handle);
  access = new PageAccess(listening.port);

  return {
    port: listening.port,
    address: () => `http://127.0.0.1:${listening.port}/login?code=${access?.newCode() ?? ""}`,
    async close() {
      rows.close();
      signIns.close();
      await listening.close();
      feeds.close();
      await openSessions.close();
      await cluster?.close();
      await runtime.close();
    },
  };
}

interface SessionParts {
  readonly locator: SessionLocator;
  readonly feeds: Feeds;
  readonly openSessions: OpenSessions;
  readonly signIns: SignIns;
  readonly rows: SessionLists;
}

/** Returns the parts that read and steer sessions, which call one another. */
function sessionParts(
  { client, runtime, cwd, environment }: WebOptions,
  cluster: WebCluster | undefined,
): SessionParts {
  const { home, store } = runtime;
  const onLock = (sessionId: string): void => rows.changed(sessionId);
  const locator = new SessionLocator({ home, store, database: cluster?.sessions, onLock });
  const feeds: Feeds = new Feeds((sessionId) => locator.sourceOf(sessionId));
  const openSessions: OpenSessions = new OpenSessions({
    client,
    home,
    cwd,
    database: cluster && {
      has: (sessionId) => locator.isInDatabase(sessionId),
      client: () => cluster.sessions.client(),
    },
    onEvent(sessionId, event) {
      feeds.onEvent(sessionId, event);
      // Sign-ins to the MCP servers of a worker are not for this machine.
      if (!locator.isKnownInDatabase(sessionId)) signIns.onEvent(sessionId, event);
    },
    onOpen(sessionId) {
      feeds.setOpen(sessionId, true);
      rows.changed(sessionId);
    },
    onClose(sessionId) {
      feeds.setOpen(sessionId, false);
      signIns.forget(sessionId);
      rows.changed(sessionId);
    },
  });
  const signIns = new SignIns({
    environment,
    folderOf: async (sessionId) => (await store.list()).find((one) => one.sessionId === sessionId)?.cwd ?? cwd,
    reconnect: (sessionId, serverName) => openSessions.request(sessionId, "session.mcp.restartServer", { serverName }),
    onChange: (sessionId) => rows.changed(sessionId),
  });
  const listOf = (location: SessionLocation): SessionListRows => new SessionListRows({ location, feeds });
  const rows: SessionLists = new SessionLists(
    listOf(localLocation({ store, home, openSessions, signIns })),
    ...(cluster ? [listOf(cluster.location(locator))] : []),
  );
  return { locator, feeds, openSessions, signIns, rows };
}

/** Nothing that talks to a database is loaded without one. */
async function clusterOf(
  { database: url, runtime, disk }: WebOptions,
  onRequests: RequestListener,
): Promise<WebCluster | undefined> {
  if (url === undefined) return undefined;
  const { webCluster } = await import("./cluster/cluster.ts");
  return webCluster({ url, home: runtime.home, disk, onRequests });
}

function listenFor(port: number | undefined, handle: Parameters<typeof listen>[1]): Promise<HttpListener> {
  return port === undefined ? listen(USUAL_PORT, handle).catch(() => listen(0, handle)) : listen(port, handle);
}

/** Which session a tab watches, and from where on. After a lost connection the browser names the last event it has. */
function watchedBy(lastEventId: string | string[] | undefined, query: URLSearchParams) {
  const sessionId = query.get("session") ?? "";
  const after = Number(lastEventId ?? query.get("after") ?? 0);
  return {
    sessionId: isSessionId(sessionId) ? sessionId : undefined,
    after: Number.isSafeInteger(after) && after >= 0 ? after : 0,
    wantsList: query.get("list") !== "0",
  };
}
