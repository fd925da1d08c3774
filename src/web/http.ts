/** The HTTP server of the dashboard: four routes on both loopback addresses. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { TroupeError } from "../protocol/errors.ts";
import type { AccessRefusal, PageAccess } from "./access.ts";
import type { PageFile } from "./assets.ts";

export interface Routes {
  readonly access: PageAccess;
  readonly assets: ReadonlyMap<string, PageFile>;
  /** Answers a JSON-RPC request, given as text. Resolves with the response as text. */
  call(body: string): Promise<string>;
  /** Serves the event stream of a tab. */
  stream(request: IncomingMessage, response: ServerResponse, query: URLSearchParams): void;
}

const SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "worker-src 'none'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join("; ");

const HEADERS = {
  "Content-Security-Policy": SECURITY_POLICY,
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
  "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
};

const MAX_BODY_BYTES = 1024 * 1024;
const MAX_ADDRESS = 2_048;
const MAX_CONNECTIONS = 256;

/** Serves one request. Never rejects. */
export async function serve(routes: Routes, request: IncomingMessage, response: ServerResponse): Promise<void> {
  for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
  response.setHeader("Cache-Control", "no-store");
  try {
    const refusal = routes.access.refusal(request.headers);
    if (refusal && !isLoginOf(routes.access, request)) refuse(response, refusal);
    else if (refusal) loginAgain(request, response);
    else await answer(routes, request, response);
  } catch {
    if (!response.headersSent) refuse(response, { status: 500, message: "The request failed." });
    else response.destroy();
  }
}

async function answer(routes: Routes, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method, headers, url = "/" } = request;
  if (url.length > MAX_ADDRESS) return refuse(response, { status: 414, message: "The address is too long." });
  const { pathname, searchParams } = new URL(url, "http://loopback");
  const { access } = routes;
  if (method === "GET" && pathname === "/login") {
    if (access.isScripted(headers)) return refuse(response, { status: 403, message: "Open this address in a tab." });
    return logIn(access, searchParams, response);
  }
  if (method === "GET" && pathname === "/events") {
    if (!access.isKnown(headers)) return refuse(response, unknown);
    return routes.stream(request, response, searchParams);
  }
  if (pathname === "/rpc") {
    if (method !== "POST") return refuse(response, { status: 405, message: "Use POST." });
    const refusal = access.changeRefusal(headers) ?? (access.isKnown(headers) ? undefined : unknown);
    if (refusal) return refuse(response, refusal);
    const body = await readBody(request);
    if (body === undefined) return refuse(response, { status: 413, message: "The request is too large." });
    return send(response, 200, "application/json", await routes.call(body));
  }
  const asset = routes.assets.get(pathname);
  if (!asset) return refuse(response, { status: 404, message: "Not found." });
  if (method !== "GET" && method !== "HEAD") return refuse(response, { status: 405, message: "Use GET." });
  sendAsset(request, response, asset);
}

const unknown: AccessRefusal = {
  status: 401,
  message: "Open the address that troupe web prints. It works once; press Enter there for a new one.",
};

function isLoginOf(access: PageAccess, { method, headers, url = "" }: IncomingMessage): boolean {
  return method === "GET" && /^\/login\?code=[\w-]{1,100}$/.test(url) && access.isLedHere(headers);
}

/** Asks the tab for the same address again. That request is of our own origin, and its code is looked at then. */
function loginAgain({ url = "" }: IncomingMessage, response: ServerResponse): void {
  response.setHeader("Refresh", `0; url=${url}`);
  send(response, 200, "text/plain; charset=utf-8", "Opening the dashboard.\n");
}

function logIn(access: PageAccess, query: URLSearchParams, response: ServerResponse): void {
  const login = access.exchange(query.get("code") ?? "");
  if (!login) {
    refuse(response, unknown);
    return;
  }
  // Another program may have had this port before: its workers and data must not be there when the page opens.
  const clear = { "Clear-Site-Data": '"storage"' };
  // Browsers send no server what is behind "#".
  response.writeHead(303, { ...clear, "Set-Cookie": login.cookie, Location: `/#token=${login.token}` });
  response.end();
}

function sendAsset({ method, headers }: IncomingMessage, response: ServerResponse, asset: PageFile): void {
  const isZipped = /\bgzip\b/.test(String(headers["accept-encoding"] ?? ""));
  if (asset.isHashed) response.setHeader("Cache-Control", "private, max-age=31536000, immutable");
  if (isZipped) response.setHeader("Content-Encoding", "gzip");
  const bytes = isZipped ? asset.gzipped : asset.plain;
  response.writeHead(200, { "Content-Type": asset.type, "Content-Length": bytes.length });
  response.end(method === "HEAD" ? undefined : bytes);
}

function refuse(response: ServerResponse, { status, message }: AccessRefusal): void {
  response.setHeader("Connection", "close");
  send(response, status, "text/plain; charset=utf-8", `${message}\n`);
}

function send(response: ServerResponse, status: number, type: string, body: string): void {
  const bytes = Buffer.from(body);
  response.writeHead(status, { "Content-Type": type, "Content-Length": bytes.length });
  response.end(bytes);
}

/** Returns undefined when the body is too large. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  if (Number(request.headers["content-length"] ?? 0) > MAX_BODY_BYTES) return undefined;
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of request) {
    size += (piece as Buffer).length;
    if (size > MAX_BODY_BYTES) return undefined;
    pieces.push(piece as Buffer);
  }
  return Buffer.concat(pieces).toString("utf8");
}

export interface HttpListener {
  readonly port: number;
  close(): Promise<void>;
}

/** Listens on 127.0.0.1 and, where there is one, ::1. Throws when the port is taken. */
export async function listen(
  port: number,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<HttpListener> {
  const first = await listenAt("127.0.0.1", port, handle);
  const { port: chosen } = first.address() as AddressInfo;
  const second = await listenAt("::1", chosen, handle).catch(() => undefined);
  return {
    port: chosen,
    async close() {
      for (const server of [first, second]) {
        if (!server) continue;
        server.closeAllConnections();
        await new Promise<void>((resolve) => server.close(() => resolve()));
      }
    },
  };
}

function listenAt(
  host: string,
  port: number,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<Server> {
  const server = createServer({ headersTimeout: 10_000, requestTimeout: 30_000, maxHeaderSize: 16_384 }, handle);
  server.maxConnections = MAX_CONNECTIONS;
  return new Promise((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => {
      const why = cause.code === "EADDRINUSE" ? "another program has it" : cause.message;
      const hint = "Name another with --port, or leave --port out.";
      reject(new TroupeError("usage", `Cannot listen on port ${port}: ${why}.`, { hint, cause }));
    });
    server.listen({ host, port, exclusive: true }, () => resolve(server));
  });
}
