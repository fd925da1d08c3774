/** Fetches one page over HTTP. Every redirect is checked like the first URL, and time and size are limited. */
import type { IncomingMessage, RequestOptions } from "node:http";
import { lookupOnly, type ResolvedAddress } from "../../lib/node/checked-dial.ts";
import { rejectWhenAborted } from "../../lib/until-aborted.ts";
import { ToolError } from "../tool-error.ts";
import { readBody } from "./body.ts";
import { allowedAddresses, checkedUrl } from "./target.ts";
import type { WebAccess } from "./web-access.ts";

export type Fetched =
  | {
      readonly kind: "page";
      readonly url: URL;
      readonly status: number;
      readonly contentType: string;
      readonly bytes: Buffer;
      /** True when the body was longer than the limit. */
      readonly isCut: boolean;
    }
  /** Redirects to another origin, which is not permitted yet. */
  | { readonly kind: "elsewhere"; readonly url: URL; readonly target: URL };

const MAX_REDIRECTS = 10;
const TIMEOUT_MS = 60_000;

export async function fetchPage(first: URL, access: WebAccess, signal: AbortSignal): Promise<Fetched> {
  const timeoutMs = access.timeoutMs ?? TIMEOUT_MS;
  const deadline = new ToolError(`${first.href} did not answer in full within ${timeoutMs / 1000} s.`, {
    code: "timeout",
  });
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(deadline), timeoutMs);
  const both = AbortSignal.any([signal, stop.signal]);
  try {
    return await Promise.race([follow(first, access, both), rejectWhenAborted(both)]);
  } finally {
    clearTimeout(timer);
    stop.abort();
  }
}

async function follow(first: URL, access: WebAccess, signal: AbortSignal): Promise<Fetched> {
  let url = first;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const addresses = await allowedAddresses(url, access);
    signal.throwIfAborted();
    const response = await get(url, { addresses, access, signal });
    const location = isRedirect(response) ? response.headers.location : undefined;
    if (location === undefined) {
      const { bytes, isCut } = await readBody(response, signal).catch((cause: unknown) =>
        throwFetchError(url, cause, signal),
      );
      const contentType = response.headers["content-type"] ?? "";
      return { kind: "page", url, status: response.statusCode ?? 0, contentType, bytes, isCut };
    }
    response.destroy();
    const target = checkedUrl(location, url);
    if (target.origin !== url.origin) return { kind: "elsewhere", url, target };
    url = target;
  }
  throw new ToolError(`${first.href} redirects more than ${MAX_REDIRECTS} times.`);
}

const isRedirect = ({ statusCode = 0 }: IncomingMessage): boolean => [301, 302, 303, 307, 308].includes(statusCode);

interface Dial {
  readonly addresses: readonly ResolvedAddress[];
  readonly access: WebAccess;
  readonly signal: AbortSignal;
}

async function get(url: URL, { addresses, access, signal }: Dial): Promise<IncomingMessage> {
  const { request } = url.protocol === "https:" ? await import("node:https") : await import("node:http");
  const options: RequestOptions = {
    agent: false,
    lookup: lookupOnly(addresses),
    signal,
    headers: {
      "user-agent": access.userAgent ?? "troupe",
      accept: "text/html, application/xhtml+xml, text/markdown, text/plain, application/json, */*;q=0.5",
      "accept-encoding": "gzip, br, deflate",
    },
  };
  return new Promise<IncomingMessage>((resolve, reject) => {
    request(url, options, resolve).on("error", reject).end();
  }).catch((cause: unknown) => throwFetchError(url, cause, signal));
}

function throwFetchError(url: URL, cause: unknown, signal: AbortSignal): never {
  if (signal.aborted) throw signal.reason;
  if (cause instanceof ToolError) throw cause;
  const detail = cause instanceof Error ? ("code" in cause && String(cause.code)) || cause.message : String(cause);
  throw new ToolError(`Fetching ${url.href} failed: ${detail}.`, { cause });
}
