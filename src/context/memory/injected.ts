/** A memory provided by the host program, for tests and hosts. Uses no files and no network. */
import type { FactDraft, MemoryStore, VoteRequest } from "./memory.ts";
import { serviceSection } from "./section.ts";

export interface InjectedMemory extends MemoryStore {
  readonly kind: "injected";
  readonly stored: readonly FactDraft[];
  readonly votes: readonly VoteRequest[];
}

export function injectedMemory(options: { readonly text?: string; readonly hasVotes?: boolean } = {}): InjectedMemory {
  const stored: FactDraft[] = [];
  const votes: VoteRequest[] = [];
  return {
    kind: "injected",
    scopes: ["repository", "user"],
    hasVotes: options.hasVotes ?? false,
    stored,
    votes,
    recall: async () => ({
      ...(options.text && { text: serviceSection(options.text) }),
      ids: [],
      count: options.text ? 1 : 0,
      notices: [],
    }),
    async store(draft) {
      stored.push(draft);
      return { id: `injected-${stored.length}`, outcome: draft.status };
    },
    vote: async (vote) => void votes.push(vote),
    used: async () => undefined,
    close: async () => undefined,
  };
}
