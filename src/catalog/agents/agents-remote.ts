/**
 * Agents of an organisation, from a server: `GET <base>/agents/swe/custom-agents/<owner>/<repository>`. The response is
 * `{"agents": [{"name", "description", "prompt", …}]}` with the fields of a definition, or `{"agents": [{"name",
 * "content"}]}` where `content` is the agent's Markdown. If the server is slow or its response invalid, its agents are
 * left out with a notice.
 */
import type { IncomingMessage } from "node:http";
import type { AgentDefinition } from "../../agents/agent.ts";
import { agentFromObject, type ParsedAgent, parseAgent } from "../../agents/parse-agent.ts";
import { isObject, parseJson } from "../../lib/json.ts";
import { clip, sanitiseLine } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { NoteAgent } from "./agents-notice.ts";

/** Returns the unvalidated response. */
export type FetchRemote = (signal: AbortSignal) => Promise<unknown>;

export interface RemoteServer {
  /** `https:`, or a server on this machine. */
  readonly baseUrl: string;
  readonly token: string;
  /** `owner/name`. */
  readonly repository: string;
}

const TIME_LIMIT_MS = 5_000;
const MAX_BYTES = 1024 * 1024;
const MAX_AGENTS = 100;
const REPOSITORY = /^[\w.-]{1,100}\/[\w.-]{1,100}$/;

/** Throws a `TroupeError` for an address that must not receive the token. */
export function remoteAgents({ baseUrl, token, repository }: RemoteServer): FetchRemote {
  const base = URL.canParse(baseUrl) ? new URL(baseUrl) : null;
  const isSafe = base?.protocol === "https:" || (base?.protocol === "http:" && isLoopback(base.hostname));
  if (base === null || !isSafe || base.username !== "" || base.password !== "") {
    const hint = "Use an https: address without a user name.";
    throw new TroupeError("configuration", "The address for remote agents cannot be used.", { hint });
  }
  if (!REPOSITORY.test(repository) || /(^|\/)\.\.?(\/|$)/.test(repository)) {
    throw new TroupeError("configuration", `"${clip(repository, 80)}" is not an owner/name of a repository.`);
  }
  const url = new URL(`${base.href.replace(/[?#].*$/, "").replace(/\/+$/, "")}/agents/swe/custom-agents/${repository}`);
  return (signal) => getJson(url, token, signal);
}

/** Never throws, and returns within the time limit even if `fetch` hangs. */
export async function loadRemote(
  fetch: FetchRemote,
  { note, signal, withinMs = TIME_LIMIT_MS }: { note: NoteAgent; signal?: AbortSignal; withinMs?: number },
): Promise<AgentDefinition[]> {
  const failed = (why: string): AgentDefinition[] => {
    note({ kind: "remote", path: "remote", message: `Remote agents are not used: ${why}.` });
    return [];
  };
  const controller = new AbortController();
  const both = signal ? AbortSignal.any([controller.signal, signal]) : controller.signal;
  const timer = setTimeout(() => controller.abort(new Error(`no answer within ${withinMs / 1000} s`)), withinMs);
  try {
    const answer = await Promise.race([fetch(both), rejectOnAbort(both)]);
    const listed = isObject(answer) ? answer.agents : answer;
    if (!Array.isArray(listed)) return failed("the answer contains no list of agents");
    if (listed.length > MAX_AGENTS) {
      note({ kind: "limit", path: "remote", message: `Only the first ${MAX_AGENTS} remote agents are used.` });
    }
    const parsed = await Promise.all(listed.slice(0, MAX_AGENTS).map(remoteAgent));
    return parsed.flatMap((one) => {
      if (one.ok) return [one.agent];
      note({ kind: "broken", path: "remote", message: `A remote agent is not used: ${clip(one.message, 300)}.` });
      return [];
    });
  } catch (error) {
    return failed(clip(sanitiseLine(describe(error)), 200));
  } finally {
    clearTimeout(timer);
  }
}

async function remoteAgent(value: unknown): Promise<ParsedAgent> {
  const isMarkdown = isObject(value) && typeof value.content === "string" && typeof value.name === "string";
  if (!isMarkdown) return agentFromObject(value, { source: "remote" });
  return parseAgent(String(value.content), { id: String(value.name).trim(), source: "remote" });
}

/** Does not follow redirects: the token is only for this server. */
async function getJson(url: URL, token: string, signal: AbortSignal): Promise<unknown> {
  const { request } = url.protocol === "https:" ? await import("node:https") : await import("node:http");
  const headers = { accept: "application/json", authorization: `Bearer ${token}`, "user-agent": "troupe" };
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request(url, { agent: false, signal, headers }, resolve).on("error", reject).end();
  });
  if (response.statusCode !== 200) {
    response.destroy();
    throw new Error(`the server answered ${response.statusCode}`);
  }
  const parsed = parseJson(await bodyOf(response));
  if (!parsed.ok) throw new Error("the answer is not JSON");
  return parsed.value;
}

async function bodyOf(response: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  let size = 0;
  try {
    for await (const piece of response) {
      const bytes: Buffer = Buffer.isBuffer(piece) ? piece : Buffer.from(piece);
      size += bytes.length;
      if (size > MAX_BYTES) throw new Error(`the answer is larger than ${MAX_BYTES / 1024} KiB`);
      pieces.push(bytes);
    }
  } finally {
    response.destroy();
  }
  return Buffer.concat(pieces).toString("utf8");
}

function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

/** Prefers network error codes: they say more than messages and never contain a header. */
function describe(error: unknown): string {
  const code: unknown = error instanceof Error && "code" in error ? error.code : undefined;
  if (typeof code === "string") return `the request failed (${code})`;
  return error instanceof Error ? error.message : String(error);
}

const isLoopback = (host: string): boolean => /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/i.test(host);
