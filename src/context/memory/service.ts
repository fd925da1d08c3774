/**
 * A memory shared by several users, behind a small HTTP contract (docs/how-to/memory.md). It is queried once per
 * repository. A failure costs only this session's memory.
 */

import * as z from "zod";
import { defined } from "../../lib/defined.ts";
import type { Redactor } from "../../lib/redact/redact.ts";
import type { Stamp } from "../../lib/stamp.ts";
import { clip } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { requireContent } from "./content.ts";
import { messageOf } from "./failure.ts";
import { type FactDraft, type MemoryScope, type MemoryStore, memoryScopes, type Recall } from "./memory.ts";
import { serviceSection } from "./section.ts";
import { requestService, type ServiceReply, serviceAddress } from "./service-http.ts";

export interface ServiceOptions {
  readonly url: string;
  readonly token?: string;
  /** `owner/name`; `undefined` if unknown. */
  readonly repository?: string;
  /** Whether the service also stores facts about the user, and is so useful without a repository. */
  readonly hasUserScope?: boolean;
  /** Without a repository the service is never queried, whatever the scopes. */
  readonly needsRepository?: boolean;
  readonly timeoutMs?: number;
  readonly stamp: Stamp;
  readonly redactor: Redactor;
  /** A shared cache of replies. */
  readonly prompts?: ServicePrompts;
}

/** Caches replies of services for all sessions of a process. Concurrent queries share one request. */
export type ServicePrompts = Map<string, KnownPrompt>;

interface KnownPrompt {
  /** The reply, or the reason for the failure. */
  readonly reply: Promise<PromptReply | string>;
  staleAt: number;
}

/** Maximum time that the first turn waits for the service. */
const TIMEOUT_MS = 3_000;
const WRITE_TIMEOUT_MS = 10_000;
/** A failed service is not queried again for this long, so that users do not wait repeatedly. */
const REST_MS = 60_000;
/** After this time the service is queried again, because others may have added facts. */
const FRESH_MS = 5 * 60_000;
const MAX_PROMPTS = 100;
/** HTTP status for a call that uses an old tool definition. */
const OUTDATED = 412;
const MAX_TEXT = 64 * 1024;

const definition = {
  version: z.union([z.string(), z.number()]).exactOptional(),
  description: z.string().max(MAX_TEXT).exactOptional(),
};
const PromptReply = z.lazy(() =>
  z.object({
    memoriesContext: z.string().max(MAX_TEXT).exactOptional(),
    memoryCount: z.int().nonnegative(),
    storeDefinition: z.object({ ...definition, scopes: z.array(z.enum(memoryScopes)).exactOptional() }).exactOptional(),
    voteDefinition: z.object(definition).exactOptional(),
    storeInstructions: z.string().max(MAX_TEXT).exactOptional(),
  }),
);
type PromptReply = z.infer<typeof PromptReply>;
const StoreReply = z.lazy(() =>
  z.object({ id: z.string().min(1).max(100), status: z.enum(["accepted", "proposed", "known"]) }),
);

export function serviceMemory(options: ServiceOptions): MemoryStore {
  const { repository, hasUserScope = false, needsRepository = false, redactor } = options;
  const send = sender(options);
  const scope = repository === undefined ? "user" : "repository";
  const prompt = knownPrompt(options, scope, () => fetchPrompt(send, { scope, repository }));
  let known: PromptReply | undefined;
  let isOutdated = false;
  /** The definition version that the caller has seen. The service refuses outdated versions. */
  const versionOf = (tool: "storeDefinition" | "voteDefinition"): { definitionVersion?: string | number } => {
    const version = known?.[tool]?.version;
    return version === undefined ? {} : { definitionVersion: version };
  };
  const requireGood = (reply: ServiceReply): void => {
    if (isGood(reply)) return;
    if (reply.status === OUTDATED) {
      isOutdated = true;
      prompt.forget();
    }
    throw refusal(reply.status, repository);
  };
  return {
    kind: "service",
    get isOutdated() {
      return isOutdated;
    },
    scopes: hasUserScope ? memoryScopes : ["repository"],
    hasVotes: true,
    async recall() {
      if (repository === undefined && (!hasUserScope || needsRepository)) return nothing([]);
      const reply = await prompt.get();
      isOutdated = false;
      if (typeof reply !== "string") {
        known = reply;
        return recallOf(reply, redactor);
      }
      return nothing([`There is no memory in this session: the memory service failed, ${reply}.`]);
    },
    async store(draft, signal) {
      const body = { ...factBody(draft, options), ...versionOf("storeDefinition") };
      const reply = await send("/memory", { body, signal }).catch(unreachable);
      requireGood(reply);
      const parsed = StoreReply.safeParse(reply.json);
      if (!parsed.success) throw refusal(reply.status, repository);
      prompt.forget();
      return { id: clip(parsed.data.id, 64), outcome: parsed.data.status };
    },
    async vote({ fact, direction, reason, voter }, signal) {
      const safe = requireContent({ subject: "vote", fact, citations: "", reason }, redactor);
      const about = { ...(repository && { repo: repository }), ...versionOf("voteDefinition") };
      const body = { fact: safe.fact, direction, reason: safe.reason, voter, ...about };
      const reply = await send("/memory/votes", { body, signal }).catch(unreachable);
      requireGood(reply);
      prompt.forget();
    },
    used: async () => undefined,
    close: async () => undefined,
  };
}

function factBody(draft: FactDraft, { repository, redactor }: ServiceOptions): object {
  const { scope, status, author, source } = draft;
  const content = requireContent(draft, redactor);
  return { ...content, scope, status, author, source, ...repositoryPart(draft, repository) };
}

type Send = (path: string, request?: { body?: object; signal?: AbortSignal | undefined }) => Promise<ServiceReply>;

function sender({ url, token, timeoutMs }: ServiceOptions): Send {
  const base = serviceAddress(url).href.replace(/\/$/, "");
  return (path, { body, signal } = {}) =>
    requestService({
      method: body === undefined ? "GET" : "POST",
      url: new URL(`${base}${path}`),
      ...(token && { token }),
      ...(body && { body }),
      timeoutMs: timeoutMs ?? (body === undefined ? TIMEOUT_MS : WRITE_TIMEOUT_MS),
      ...defined({ signal }),
    });
}

/** Shares one query among all waiting callers. A failure is cached too, for `REST_MS`. */
function knownPrompt(
  { url, token = "", repository = "", stamp, prompts = new Map() }: ServiceOptions,
  scope: MemoryScope,
  ask: () => Promise<PromptReply>,
) {
  const key = JSON.stringify([url, token, scope, repository]);
  return {
    forget: () => void prompts.delete(key),
    get(): Promise<PromptReply | string> {
      const known = prompts.get(key);
      if (known && stamp.monotonic() < known.staleAt) return known.reply;
      const fresh: KnownPrompt = {
        staleAt: stamp.monotonic() + FRESH_MS,
        reply: ask().catch((error: unknown) => {
          fresh.staleAt = stamp.monotonic() + REST_MS;
          return messageOf(error);
        }),
      };
      prompts.delete(key);
      prompts.set(key, fresh);
      const [oldest] = prompts.keys();
      if (prompts.size > MAX_PROMPTS && oldest !== undefined) prompts.delete(oldest);
      return fresh.reply;
    },
  };
}

async function fetchPrompt(
  send: Send,
  { scope, repository }: { scope: MemoryScope; repository: string | undefined },
): Promise<PromptReply> {
  const query = new URLSearchParams({ scope, ...defined({ repo: repository }) });
  const { status, json } = await send(`/memory/prompt?${query}`);
  if (status !== 200) throw new Error(`it answered with status ${status}`);
  const reply = PromptReply.safeParse(json);
  if (!reply.success) throw new Error("its answer does not follow the contract");
  return reply.data;
}

const isGood = ({ status }: ServiceReply): boolean => status >= 200 && status <= 299;

function recallOf(reply: PromptReply, redactor: Redactor): Recall {
  const { memoriesContext, memoryCount, storeDefinition, voteDefinition, storeInstructions } = reply;
  const about = (given: { description?: string } | undefined) =>
    given?.description === undefined ? {} : { description: redactor.text(given.description) };
  return {
    ...(memoriesContext?.trim() && { text: serviceSection(redactor.text(memoriesContext)) }),
    ids: [],
    count: memoryCount,
    notices: [],
    definitions: {
      ...(storeDefinition && {
        store: { ...about(storeDefinition), ...defined({ scopes: storeDefinition.scopes }) },
      }),
      ...(voteDefinition && { vote: about(voteDefinition) }),
      ...(storeInstructions && { storeInstructions: redactor.text(storeInstructions) }),
    },
  };
}

const nothing = (notices: readonly string[]): Recall => ({ ids: [], count: 0, notices });

function repositoryPart({ scope }: FactDraft, repository: string | undefined): { repo?: string } {
  if (scope === "user") return {};
  if (repository !== undefined) return { repo: repository };
  throw new TroupeError("failed", "The memory service stores facts by repository, and this folder is not in one.");
}

function unreachable(error: unknown): never {
  if (error instanceof Error && error.name === "AbortError") throw error;
  throw new TroupeError("failed", `The memory service could not be reached: ${messageOf(error)}.`, { cause: error });
}

function refusal(status: number, repository: string | undefined): TroupeError {
  const where = repository ?? "this user";
  const reasons: Record<number, string> = {
    401: `The memory service did not accept your credentials; nothing was stored for ${where}.`,
    403: `You may not write to the memory of ${where}.`,
    404: `The memory service knows no such repository or fact (${where}).`,
    409: "The fact or the vote is already stored.",
    [OUTDATED]:
      "The memory service has a newer definition of this tool. Nothing was stored. Call the tool again as newly described.",
    413: "The memory service refused this as too long.",
    507: "The memory service is full.",
  };
  return new TroupeError("failed", reasons[status] ?? `The memory service answered with status ${status}.`);
}
