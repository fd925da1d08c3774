import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import { createRuntime } from "../../src/runtime/runtime.ts";
import type { Client } from "../../src/sdk/client.ts";
import { createClient } from "../../src/sdk/sdk.ts";
import { inProcess } from "../../src/server/in-process.ts";
import type { HttpStep } from "../../src/testing/http-reply.ts";
import { modelServer } from "../../src/testing/model-server.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { startWeb, type Web } from "../../src/web/web.ts";

export interface WebStage extends AsyncDisposable {
  readonly web: Web;
  readonly home: string;
  readonly cwd: string;
  readonly origin: string;
  readonly environment: Readonly<Record<string, string>>;
  /** A client of another process, in effect: it has a server of its own. */
  other(): Promise<Client>;
  /** Logs in. Returns the headers that a page sends from then on. */
  login(): Promise<PageHeaders>;
  /** Calls a method as the page does. */
  call<T = unknown>(method: string, params?: Readonly<Record<string, unknown>>): Promise<T>;
  /** Stops the server and starts it again on the same port. */
  restart(): Promise<void>;
  /** Cuts the connections of all event streams, as a sleeping laptop does. Returns their number. */
  cutStreams(): number;
}

export interface PageHeaders {
  readonly cookie: string;
  readonly "x-troupe-token": string;
}

export interface WebStageOptions {
  readonly steps?: readonly HttpStep[];
  readonly files?: Readonly<Record<string, string>>;
  readonly assets?: string;
  /** Any that is free unless given. */
  readonly port?: number;
  /** The address of the database of a cluster. */
  readonly database?: string;
}

/** The dashboard's server in this process, with a model over HTTP and the page of the build. */
export async function webStage(options: WebStageOptions = {}): Promise<WebStage> {
  const folder = await tempFolder({ "work/readme.md": "hello\n", ...options.files });
  const model = await modelServer({ steps: options.steps ?? [] });
  const [home, cwd] = [folder.at("home"), folder.at("work")];
  const environment = {
    PATH: process.env.PATH ?? "",
    HOME: home,
    TROUPE_HOME: home,
    TROUPE_BASE_URL: model.baseUrl,
    TROUPE_MODEL: "scripted",
    TROUPE_NO_DISCOVERY: "1",
    TROUPE_SANDBOX: "off",
  };
  const connect = () => createClient({ connection: inProcess({ environment, cwd }) });
  const start = async (port: number): Promise<Web> =>
    startWeb({
      client: await connect(),
      runtime: createRuntime({ environment }),
      ...{ cwd, port, disk: nodeDisk, stamp: systemStamp, environment, version: "0.0.0" },
      database: options.database,
      assets: options.assets ?? join(import.meta.dirname, "../../dist/web"),
    });
  let web = await start(options.port ?? 0);
  const streams = new Set<Socket>();
  const onRequest = (message: unknown): void => {
    const { request, socket } = message as { request: IncomingMessage; socket: Socket };
    if (!request.url?.startsWith("/events") || socket.localPort !== web.port) return;
    streams.add(socket);
    socket.once("close", () => streams.delete(socket));
  };
  subscribe("http.server.request.start", onRequest);
  const others: Client[] = [];
  const origin = `http://127.0.0.1:${web.port}`;
  const login = async (): Promise<PageHeaders> => {
    const enter = (): Promise<Response> => fetch(web.address(), { redirect: "manual" });
    // The server may have closed a connection that is used again after the event loop was blocked.
    const { headers } = await enter().catch(enter);
    return {
      cookie: (headers.get("set-cookie") ?? "").split(";")[0] ?? "",
      "x-troupe-token": (headers.get("location") ?? "").replace("/#token=", ""),
    };
  };
  return {
    get web() {
      return web;
    },
    ...{ home, cwd, origin, login, environment },
    async other() {
      const client = await connect();
      others.push(client);
      return client;
    },
    async call<T>(method: string, params: Readonly<Record<string, unknown>> = {}) {
      const response = await fetch(`${origin}/rpc`, {
        method: "POST",
        headers: { "content-type": "application/json", origin, ...(await login()) },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
      });
      const { result, error } = (await response.json()) as { result: T; error?: { message: string } };
      if (error) throw new Error(error.message);
      return result;
    },
    async restart() {
      const { port } = web;
      await web.close();
      web = await start(port);
    },
    cutStreams() {
      const { size } = streams;
      for (const socket of streams) socket.destroy();
      return size;
    },
    async [Symbol.asyncDispose]() {
      unsubscribe("http.server.request.start", onRequest);
      await Promise.allSettled(others.map((client) => client.stop()));
      await web.close();
      await model[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find((path) => existsSync(path));

/** Why browser tests are skipped here; undefined where they run. */
export const noBrowser = CHROMIUM === undefined ? "chromium is not installed" : undefined;

export interface Tab extends AsyncDisposable {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Errors, violations of the security policy, and requests to other hosts. */
  readonly trouble: string[];
  /** Addresses of all requests. */
  readonly requests: string[];
}

const FLAGS = [
  ...["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
  ...["--disable-background-networking", "--disable-component-update", "--disable-sync"],
];

/** A browser with an empty profile, logged in at the stage. */
export async function openBrowser(): Promise<{ readonly browser: Browser } & AsyncDisposable> {
  const profile = await mkdtemp(join(tmpdir(), "troupe-browser-"));
  const browser = await chromium.launch({
    executablePath: CHROMIUM ?? "",
    args: FLAGS,
    env: { ...process.env, HOME: profile },
  });
  return {
    browser,
    async [Symbol.asyncDispose]() {
      await browser.close();
      await rm(profile, { recursive: true, force: true });
    },
  };
}

export async function openTab(
  browser: Browser,
  stage: WebStage,
  options: {
    readonly hash?: string;
    readonly isLoggedIn?: boolean;
    readonly scheme?: "light" | "dark";
    readonly size?: { width: number; height: number };
  } = {},
): Promise<Tab> {
  const { scheme = "light", size = { width: 1280, height: 800 } } = options;
  const context = await browser.newContext({ colorScheme: scheme, viewport: size });
  // For what never comes. On a busy machine a step takes long.
  context.setDefaultTimeout(100_000);
  const page = await context.newPage();
  const trouble: string[] = [];
  const requests: string[] = [];
  page.on("pageerror", (error) => trouble.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (/Content Security Policy|Trusted/i.test(message.text())) trouble.push(`policy: ${message.text()}`);
  });
  page.on("dialog", (dialog) => {
    trouble.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("request", (request) => {
    requests.push(request.url());
    if (!request.url().startsWith(stage.origin) && !request.url().startsWith("data:"))
      trouble.push(`request: ${request.url()}`);
  });
  await page.goto(options.isLoggedIn === false ? stage.origin : stage.web.address());
  if (options.hash !== undefined) await page.goto(`${stage.origin}/${options.hash}`);
  return { page, context, trouble, requests, [Symbol.asyncDispose]: () => context.close() };
}
