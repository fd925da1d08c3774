/** The redirect target of a sign-in: one loopback address, used once, for a few minutes. */

import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { deferred } from "../../../lib/deferred.ts";
import { isSameSecret } from "../../../lib/node/same-secret.ts";
import { clip, sanitise } from "../../../lib/text.ts";
import { TroupeError } from "../../../protocol/errors.ts";

export interface RedirectListener {
  readonly url: string;
  /** Resolves with the code. Rejects on a refusal or a timeout. */
  readonly arrival: Promise<{ readonly code: string; readonly iss?: string }>;
  close(): void;
}

const PATH = "/callback";
/** Limit for requests of other programs on this machine; the browser needs one. */
const MAX_STRANGERS = 50;

export async function listenForRedirect(options: { state: string; timeoutMs: number }): Promise<RedirectListener> {
  const { createServer } = await import("node:http");
  const arrival = deferred<{ code: string; iss?: string }>();
  arrival.promise.catch(() => undefined); // prevents an unhandled rejection before a caller waits
  let strangers = 0;
  const server = createServer({ requestTimeout: 10_000, headersTimeout: 10_000 }, (request, response) => {
    const visit = judge(request, options.state, `127.0.0.1:${portOf(server)}`);
    reply(response, visit);
    if (visit.kind === "stranger") {
      if (++strangers > MAX_STRANGERS) arrival.reject(failure("too many requests that did not come from the browser"));
    } else if (visit.kind === "code") arrival.resolve(visit.brought);
    else arrival.reject(failure(`the server answered: ${visit.reason}`));
  });
  server.maxConnections = 20;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host: "127.0.0.1", port: 0 }, resolve);
  });
  const minutes = Math.round(options.timeoutMs / 60_000);
  const limit = setTimeout(
    () => arrival.reject(failure(`the sign-in was not completed within ${minutes} minutes`)),
    options.timeoutMs,
  );
  const close = (): void => {
    clearTimeout(limit);
    server.close();
    setTimeout(() => server.closeAllConnections(), 200).unref(); // so that the page still arrives
  };
  arrival.promise.then(close, close);
  return { url: `http://127.0.0.1:${portOf(server)}${PATH}`, arrival: arrival.promise, close };
}

type Visit =
  | { readonly kind: "code"; readonly brought: { readonly code: string; readonly iss?: string } }
  | { readonly kind: "refusal"; readonly reason: string }
  | { readonly kind: "stranger"; readonly status: number };

/**
 * Only the browser that we sent knows the state. A request with a wrong one neither ends the wait nor learns anything.
 */
function judge(request: IncomingMessage, state: string, host: string): Visit {
  if (request.headers.host !== host) return { kind: "stranger", status: 421 };
  if (request.method !== "GET") return { kind: "stranger", status: 405 };
  const url = URL.canParse(request.url ?? "", `http://${host}`)
    ? new URL(request.url ?? "", `http://${host}`)
    : undefined;
  if (url?.pathname !== PATH) return { kind: "stranger", status: 404 };
  const { searchParams } = url;
  if (!isSameSecret(searchParams.get("state") ?? "", state)) return { kind: "stranger", status: 400 };
  const error = searchParams.get("error");
  const code = searchParams.get("code");
  if (error !== null || !code) {
    const words = [error ?? "no code", searchParams.get("error_description") ?? ""].filter(Boolean).join(": ");
    return { kind: "refusal", reason: clip(sanitise(words).replace(/\s+/g, " "), 300) };
  }
  const iss = searchParams.get("iss");
  return { kind: "code", brought: { code, ...(iss !== null && { iss }) } };
}

function reply(response: ServerResponse, visit: Visit): void {
  const status = visit.kind === "stranger" ? visit.status : 200;
  const words = {
    code: "Signed in. You can close this window and go back to the terminal.",
    refusal: "The sign-in failed. The terminal shows the reason.",
    stranger: "Nothing here.",
  }[visit.kind];
  response.writeHead(status, {
    "content-type": "text/plain; charset=utf-8",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    connection: "close",
  });
  response.end(`${words}\n`);
}

const portOf = (server: Server): number => (server.address() as AddressInfo | null)?.port ?? 0;

const failure = (why: string): TroupeError => new TroupeError("failed", `The sign-in failed: ${why}.`);
