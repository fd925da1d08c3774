import { defined } from "../../lib/defined.ts";
import { parseJson } from "../../lib/json.ts";
import { clip, sanitise } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { RequestOrigin } from "../provider.ts";
import type { ModelFetch } from "../wire/endpoint.ts";

export interface GetOptions {
  readonly token: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly fetch?: ModelFetch | undefined;
  readonly origin?: RequestOrigin | undefined;
}

const WITHIN_MS = 30_000;
const MAX_CHARACTERS = 16 * 1024 * 1024;

/**
 * Sends one authenticated GET and returns the parsed JSON. Throws an error that names the URL and the status. Its kind
 * is `provider` if a later attempt may succeed.
 */
export async function getJson(url: string, options: GetOptions): Promise<unknown> {
  const { token, headers, fetch = globalThis.fetch, origin } = options;
  const signal = AbortSignal.timeout(WITHIN_MS);
  try {
    const response = await fetch(url, {
      // A redirect could send the token elsewhere.
      signal,
      redirect: "error",
      headers: { accept: "application/json", ...headers, authorization: `Bearer ${token}` },
      ...defined({ origin }),
    });
    const text = await boundedText(response);
    if (!response.ok) throw statusError(url, response.status, text);
    const parsed = parseJson(text);
    if (!parsed.ok) throw connectionError(url, "the answer is not JSON");
    return parsed.value;
  } catch (cause) {
    if (cause instanceof TroupeError) throw cause;
    throw connectionError(url, signal.aborted ? `no answer within ${WITHIN_MS / 1000} s` : reasonOf(cause), cause);
  }
}

function statusError(url: string, status: number, text: string): TroupeError {
  const parsed = parseJson(text);
  const hasMessage = parsed.ok && parsed.value && typeof parsed.value === "object" && "message" in parsed.value;
  const why = hasMessage
    ? clip(sanitise(String((parsed.value as { message: unknown }).message)), 200)
    : "no reason given";
  const name = status === 401 ? "401 Unauthorized" : String(status);
  const isPassing = status >= 500 || status === 429;
  return new TroupeError(isPassing ? "provider" : "configuration", `${hostAndPath(url)} answered ${name}: ${why}`, {
    ...(status === 401 && { hint: "Check the GitHub token." }),
  });
}

function connectionError(url: string, why: string, cause?: unknown): TroupeError {
  return new TroupeError("provider", `${hostAndPath(url)} could not be reached: ${why}`, { cause });
}

const hostAndPath = (url: string): string => (URL.canParse(url) ? `${new URL(url).host}${new URL(url).pathname}` : url);

function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  return cause.cause instanceof Error ? cause.cause.message : cause.message;
}

async function boundedText(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > MAX_CHARACTERS) throw new Error("the answer is too long");
  }
  return text + decoder.decode();
}
