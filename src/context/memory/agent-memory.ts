/** The memory as an agent reaches it. What it wants to keep is a proposal, unless a person said yes to this very call. */

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
  /** Where facts of this folder are kept at present. */
  store(): MemoryStore;
  readonly redactor: Redactor;
  readonly sessionId: string;
  /**
   * True when a person was shown this call and agreed to it. A rule, a mode, a hook and an earlier "for the whole session"
   * let the call happen; they do not make what it says true.
   */
  readonly isApproved: (toolCallId: string) => boolean;
  /** What `recall` brought, once it has. */
  readonly definitions?: () => MemoryDefinitions | undefined;
  /** Why the memory cannot be used at present. */
  readonly missing?: () => string | undefined;
  /** A fact waits for a person. */
  readonly onProposed?: (id: string, fact: string) => void;
}

/** So that one session cannot bury a person in proposals. */
const MAX_STORES = 20;
const MAX_VOTES = 50;

/** Fits the port of the tools `store_memory` and `vote_memory`. What it has given out is counted for the whole session. */
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
  /** Every event of the session, as it happens. */
  hear(event: SessionEvent): void;
  /** For `AgentMemoryOptions`; true once for each call. */
  isApproved(toolCallId: string): boolean;
}

const MAX_PENDING = 100;

/** Which calls a person was shown and agreed to, from the verdicts that the session tells. */
export function personApprovals(): PersonApprovals {
  const approved = new Set<string>();
  return {
    hear(event) {
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
  return new TroupeError("limit", `A session can give the memory ${what} at most.`);
}
