/**
 * The HTTP proxy through which the sandbox reaches allowed hosts. This folder contains the network of sandboxed
 * commands. A name is resolved once, and the checked address is dialled. So a name cannot point to this machine or its
 * network, whatever its owner configures.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { addressKind, parseAddress, refusalOf } from "../../../lib/address.ts";
import type { HostRule } from "../../../lib/host-rule.ts";
import { isOwnAddress } from "../../../lib/node/own-address.ts";
import { clip, sanitise } from "../../../lib/text.ts";
import { allows, names } from "./network-rules.ts";

export interface ProxyOptions {
  readonly rules: readonly HostRule[];
  /** True when a host that a rule names in full may be in a private network or on this machine. */
  readonly localNetwork?: boolean;
  /** Called with each refusal, in one line. */
  onRefused(message: string): void;
  /** Resolves a name to addresses; replaced only in tests. */
  resolve?(host: string): Promise<readonly string[]>;
  /** Replaced only in tests. */
  dial?(address: string, port: number): Socket;
}

export interface NetworkProxy {
  accept(connection: Duplex): void;
}

const CONNECT_TIMEOUT_MS = 15_000;
const IDLE_MS = 120_000;
const MAX_HOST_CHARACTERS = 253;
const HOP_BY_HOP = /^(?:connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/i;

export async function createNetworkProxy(options: ProxyOptions): Promise<NetworkProxy> {
  const http = await import("node:http");
  const server: Server = http.createServer({ maxHeaderSize: 16 * 1024 });
  server.on("connect", (request: IncomingMessage, client: Duplex, head: Buffer) => {
    void tunnel(options, { request, client, head }).catch(() => client.destroy());
  });
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    void forward(options, http.request, { request, response }).catch(() => response.destroy());
  });
  server.on("clientError", (_, client: Duplex) => client.destroy());
  return {
    accept(connection) {
      endWhenIdle(connection);
      server.emit("connection", connection);
    },
  };
}

/** Handles CONNECT host:port. */
async function tunnel(
  options: ProxyOptions,
  { request, client, head }: { request: IncomingMessage; client: Duplex; head: Buffer },
): Promise<void> {
  client.on("error", () => client.destroy());
  const [, host = "", port = ""] = /^\[?([^\]/@]+?)\]?:(\d{1,5})$/.exec(request.url ?? "") ?? [];
  const target = await allowedTarget(options, host, Number(port));
  if (typeof target === "string")
    return void client.end(`HTTP/1.1 403 Forbidden\r\nConnection: close\r\n\r\n${target}\n`);
  const upstream = dialTarget(options, target.address, target.port);
  upstream.once("connect", () => {
    client.write("HTTP/1.1 200 Connection established\r\n\r\n");
    if (head.length > 0) upstream.write(head);
    client.pipe(upstream).pipe(client);
  });
  upstream.on("error", () => client.destroy()).on("close", () => client.destroy());
  client.on("close", () => upstream.destroy());
}

/** Handles GET http://host/path. */
async function forward(
  options: ProxyOptions,
  send: typeof import("node:http").request,
  { request, response }: { request: IncomingMessage; response: ServerResponse },
): Promise<void> {
  const url = URL.canParse(request.url ?? "") ? new URL(request.url ?? "") : undefined;
  if (url?.protocol !== "http:") return void response.writeHead(400).end("This is a proxy for http and CONNECT.\n");
  const target = await allowedTarget(options, url.hostname.replace(/^\[(.*)\]$/, "$1"), Number(url.port || 80));
  if (typeof target === "string") return void response.writeHead(403).end(`${target}\n`);
  const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => !HOP_BY_HOP.test(name)));
  const onward = send({
    method: request.method ?? "GET",
    path: `${url.pathname}${url.search}`,
    headers: { ...headers, host: url.host, connection: "close" },
    createConnection: () => dialTarget(options, target.address, target.port),
  });
  onward.on("response", (answer) => {
    const kept = Object.entries(answer.headers).filter(([name]) => !HOP_BY_HOP.test(name));
    response.writeHead(answer.statusCode ?? 502, Object.fromEntries(kept));
    answer.pipe(response);
  });
  onward.on("error", () => (response.headersSent ? response.destroy() : response.writeHead(502).end("No answer.\n")));
  response.on("close", () => onward.destroy());
  request.pipe(onward);
}

/** Returns the address to dial, or why the target is refused. */
async function allowedTarget(
  options: ProxyOptions,
  host: string,
  port: number,
): Promise<{ readonly address: string; readonly port: number } | string> {
  const refuse = (reason: string): string => {
    const name = clip(sanitise(`${host}:${port}`).replace(/\s/g, " "), 100);
    options.onRefused(`The sandbox refused a connection to ${name}: ${reason}.`);
    return `Refused by the sandbox: ${reason}.`;
  };
  if (host === "" || host.length > MAX_HOST_CHARACTERS) return refuse("not a host");
  if (!allows(options.rules, host, port)) return refuse("it is not among the allowed hosts");
  const addresses = parseAddress(host) ? [host] : await (options.resolve ?? systemResolve)(host).catch(() => []);
  const [address] = addresses;
  if (address === undefined) return refuse("its name could not be resolved");
  const isLocalAllowed = options.localNetwork === true && names(options.rules, host, port);
  for (const one of addresses) {
    if (isLocalAllowed && /^(?:private|loopback)$/.test(addressKind(one))) continue;
    const reason = refusalOf(one) ?? (isOwnAddress(one) && !isLocalAllowed ? "an address of this machine" : undefined);
    if (reason !== undefined) return refuse(`it is ${reason}`);
  }
  return { address, port };
}

async function systemResolve(host: string): Promise<readonly string[]> {
  const { lookup } = await import("node:dns/promises");
  return (await lookup(host, { all: true })).map(({ address }) => address);
}

function dialTarget({ dial }: ProxyOptions, address: string, port: number): Socket {
  const socket = dial ? dial(address, port) : connect({ host: address, port });
  const limit = setTimeout(() => socket.destroy(new Error("no connection in time")), CONNECT_TIMEOUT_MS);
  socket.once("connect", () => clearTimeout(limit)).once("close", () => clearTimeout(limit));
  return socket;
}

function endWhenIdle(connection: Duplex): void {
  let timer = setTimeout(() => undefined, 0);
  const touch = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => connection.destroy(), IDLE_MS);
    timer.unref();
  };
  touch();
  const write = connection.write.bind(connection);
  // Both directions count as activity. A `data` listener would consume the data.
  connection.write = ((...given: Parameters<typeof write>) => {
    touch();
    return write(...given);
  }) as typeof connection.write;
  const push = connection.push.bind(connection);
  connection.push = (chunk, encoding) => {
    touch();
    return push(chunk, encoding);
  };
  connection.once("close", () => clearTimeout(timer));
}
