/** The memory for an agent's tools. A stored fact is a proposal, unless the user approved this very call. */

import type { Redactor } from "../../lib/redact/redact.ts";
import { plural } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import { contentProblem, plainContent } from "./content.ts";
import {
  type FactContent,
  type MemoryDefinitions,
  type MemoryScope,
  type MemoryStore,
  memoryLimits,
} from "./memory.ts";

export interface AgentMemoryOptions {
  /** Returns the current store for this folder. */
  store(): MemoryStore;
  readonly redactor: Redactor;
  readonly sessionId: string;
  /**
   * Returns true when the user saw this call and approved it. Calls that are allowed by a rule, a mode, a hook or an
   * earlier "for the whole session" do not count: they do not confirm that the fact is true.
   */
  readonly isApproved: (toolCallId: string) => boolean;
  /** The definitions that `recall` returned; `undefined` before that. */
  readonly definitions?: () => MemoryDefinitions | undefined;
  /** Returns why the memory is currently unavailable. */
  readonly missing?: () => string | undefined;
  /** Called when a fact waits for the user's approval. */
  readonly onProposed?: (id: string, fact: string) => void;
}

/** Limits per session, so that one session cannot flood the user with proposals. */
const MAX_STORES = 20;
const MAX_VOTES = 50;

/** Implements the port of the tools `store_memory` and `vote_memory`. Counts stores and votes for the whole session. */
export function agentMemory(options: AgentMemoryOptions) {
  const { redactor, sessionId } = options;
  const spent = { stores: 0, votes: 0 };
  const definitions = (): MemoryDefinitions | undefined => options.definitions?.();
  return {
    limits: memoryLimits,
    get scopes(): readonly MemoryScope[] {
      const { scopes } = options.store();
      return definitions()?.store?.scopes?.filter((scope) => scopes.includes(scope)) ?? scopes;
    },
    get canVote(): boolean {
      const said = definitions();
      return options.store().hasVotes && (said === undefined || said.vote !== undefined);
    },
    get descriptions() {
      const { store, vote, storeInstructions } = definitions() ?? {};
      return {
        ...(store?.description && { store: store.description }),
        ...(storeInstructions && { instructions: storeInstructions }),
        ...(vote?.description && { vote: vote.description }),
      };
    },
    filter: <T>(value: T): T => redactor.json(value),
    missing: () => options.missing?.(),
    async store(memory: FactContent & { scope: MemoryScope }, call: { toolCallId: string; signal: AbortSignal }) {
      const content = plainContent(memory);
      const problem = contentProblem(content, redactor);
      if (problem !== undefined) throw new TroupeError("usage", `Invalid inputs: ${problem}.`);
      if (spent.stores >= MAX_STORES) throw tooMany(plural(MAX_STORES, "fact"));
      spent.stores++;
      const status = options.isApproved(call.toolCallId) ? ("accepted" as const) : ("proposed" as const);
      const source = { kind: "tool" as const, detail: sessionId };
      const draft = { ...content, scope: memory.scope, author: "agent" as const, source, status };
      const stored = await options.store().store(draft, call.signal);
      if (stored.outcome === "proposed") options.onProposed?.(stored.id, content.fact);
      return stored;
    },
    async vote(
      vote: { fact: string; direction: "upvote" | "downvote"; reason: string },
      call: { toolCallId: string; signal: AbortSignal },
    ) {
      if (spent.votes >= MAX_VOTES) throw tooMany(plural(MAX_VOTES, "vote"));
      spent.votes++;
      await options.store().vote({ ...vote, voter: `agent:${sessionId}` }, call.signal);
    },
  };
}

export interface PersonApprovals {
  /** Must receive every event of the session. */
  onEvent(event: SessionEvent): void;
  /** For `AgentMemoryOptions`. Returns true once per approved call. */
  isApproved(toolCallId: string): boolean;
}

const MAX_PENDING = 100;

/** Collects the calls that the user saw and approved, from the session's permission events. */
export function personApprovals(): PersonApprovals {
  const approved = new Set<string>();
  return {
    onEvent(event) {
      if (event.type !== "troupe.permission" || event.agentId !== undefined) return;
      const { toolCallId, kind, decision, by } = event.data;
      if (kind !== "memory" || decision !== "allowed" || by !== "person") return;
      approved.add(toolCallId);
      const [oldest] = approved;
      if (approved.size > MAX_PENDING && oldest !== undefined) approved.delete(oldest);
    },
    isApproved: (toolCallId) => approved.delete(toolCallId),
  };
}

function tooMany(what: string): TroupeError {
  return new TroupeError("limit", `A session can add ${what} to the memory at most.`);
}
