/**
 * A page on this machine where the user enters the key of a model provider. The key goes from the browser to this
 * process: the editor sees only the address of the page, which works for one key and a few minutes.
 */

import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { deferred } from "../lib/deferred.ts";
import { isSameSecret } from "../lib/node/same-secret.ts";
import { clip, sanitise } from "../lib/text.ts";

export interface KeyPage {
  readonly url: string;
  /** Resolves with the model that answered with the new key. Rejects on a timeout and when the page is closed. */
  readonly stored: Promise<string>;
  close(reason: Error): void;
}

export interface KeyPageOptions {
  readonly providers: readonly {
    readonly id: string;
    readonly name: string;
    /** Receives the key. */
    readonly host: string;
    readonly hasKey: boolean;
  }[];
  /**
   * Tests and stores a key; resolves with the model that answered. Rejects with a message for the user. `signal` aborts
   * when the page is closed: nothing may be stored from then on.
   */
  store(provider: string, apiKey: string, signal: AbortSignal): Promise<string>;
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 10 * 60_000;
const MAX_BODY_BYTES = 16 * 1024;

export async function openKeyPage(options: KeyPageOptions): Promise<KeyPage> {
  const { timeoutMs = TIMEOUT_MS } = options;
  const path = `/${randomBytes(24).toString("base64url")}`;
  const stored = deferred<string>();
  const closed = new AbortController();
  stored.promise.catch(() => undefined); // prevents an unhandled rejection before a caller waits
  const server = createServer({ requestTimeout: 10_000, headersTimeout: 10_000 }, (request, response) => {
    visit({ request, response, path, port: portOf(server), signal: closed.signal }, options).then(
      (model) => model !== undefined && stored.resolve(model),
      () => response.destroy(),
    );
  });
  server.maxConnections = 20;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host: "127.0.0.1", port: 0 }, resolve);
  });
  const close = (reason: Error): void => {
    stored.reject(reason);
    closed.abort(reason);
  };
  const limit = setTimeout(() => close(new Error("No key was entered in time.")), timeoutMs);
  const end = (): void => {
    clearTimeout(limit);
    server.close();
    setTimeout(() => server.closeAllConnections(), 200).unref(); // so that the last page still arrives
  };
  stored.promise.then(end, end);
  return {
    url: `http://127.0.0.1:${portOf(server)}${path}`,
    stored: stored.promise,
    close,
  };
}

interface Visit {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  readonly port: number;
  readonly signal: AbortSignal;
}

/** Resolves with a model when the visit brought a key that works. */
async function visit(given: Visit, { providers, store }: KeyPageOptions): Promise<string | undefined> {
  const { request, response } = given;
  const refusal = refusalOf(given);
  if (refusal !== undefined) {
    reply(response, refusal, page("<p>Nothing here.</p>"));
    return undefined;
  }
  if (request.method === "GET") {
    // Another program may have had this port before: its worker must not see the form with the key.
    response.setHeader("clear-site-data", '"storage"');
    reply(response, 200, form(providers, {}));
    return undefined;
  }
  const body = await bodyOf(request);
  const fields = new URLSearchParams(body);
  const provider = fields.get("provider") ?? "";
  try {
    const model = await store(provider, fields.get("key") ?? "", given.signal);
    reply(response, 200, page(`<p>Stored. ${escaped(model)} answers. You can close this window.</p>`));
    return model;
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    reply(response, 200, form(providers, { provider, problem }));
    return undefined;
  }
}

/** Only the browser that was sent here knows the path, and only this page may send the form. */
function refusalOf({ request, path, port }: Visit): number | undefined {
  const { host, origin } = request.headers;
  const own = `127.0.0.1:${port}`;
  if (host !== own) return 421;
  if (!isSameSecret(request.url ?? "", path)) return 404;
  if (request.method === "GET") return undefined;
  if (request.method !== "POST") return 405;
  // Browsers send "null" for a page without a referrer. The secret path protects the form then.
  return origin === undefined || origin === "null" || origin === `http://${own}` ? undefined : 403;
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_BODY_BYTES) throw new Error("The form is too large.");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function form(
  providers: KeyPageOptions["providers"],
  { provider: chosen, problem }: { readonly provider?: string; readonly problem?: string },
): string {
  const options = providers.map(({ id, name, host, hasKey }) => {
    const note = escaped(` at ${host}`) + (hasKey ? " (replaces the current key)" : "");
    return `<option value="${escaped(id)}"${id === chosen ? " selected" : ""}>${escaped(name)}${note}</option>`;
  });
  return page(`<p>troupe sends one short request with the key to the host shown here, then stores it in providers.json in your state folder.</p>
${problem === undefined ? "" : `<p role="alert"><strong>${escaped(problem)}</strong></p>`}
<form method="post" autocomplete="off">
<p><label>Provider <select name="provider">${options.join("")}</select></label></p>
<p><label>Key <input name="key" type="password" required autofocus size="60"></label></p>
<p><button>Test and store</button></p>
</form>`);
}

const page = (body: string): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>troupe: key of a model provider</title>
<h1>Key of a model provider</h1>
${body}
</html>
`;

function reply(response: ServerResponse, status: number, content: string): void {
  response.writeHead(status, {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    connection: "close",
  });
  response.end(content);
}

const MAX_TEXT_CHARACTERS = 500;
const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escaped = (text: string): string =>
  clip(sanitise(text), MAX_TEXT_CHARACTERS).replace(/[&<>"]/g, (character) => entities[character] ?? "");

const portOf = (server: Server): number => (server.address() as AddressInfo | null)?.port ?? 0;
