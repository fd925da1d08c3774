import { visible } from "./text.ts";

/** Executable or security-relevant configuration, as the user approves it and as the approval is stored. */
export interface PinnedItem<Kind extends PinnedKind = PinnedKind> {
  readonly kind: Kind;
  /** Identifies the item among those of its kind in its folder. Stays the same while the content changes. */
  readonly id: string;
  /** SHA-256 of the whole content, as hexadecimal digits: any change needs a new approval. */
  readonly digest: string;
  /** Shown to the user in full before approval; without secret values. */
  readonly shown: string;
}

export type PinnedKind = "hook" | "mcp" | "skill" | "plugin" | "settings" | "environment" | "sidekick" | "extension";

/** The approval state of an item: "untrusted" if the user was never asked about its folder. */
export type ItemTrust = "approved" | "changed" | "new" | "untrusted";

/** The most that a user can be expected to read of one definition. A longer one cannot be approved. */
export const MAX_SHOWN_CHARACTERS = 16 * 1024;

/** Formats one fact per line. Further lines of the same fact are marked, so that no fact can imitate another. */
export function shownFacts(facts: readonly string[]): string {
  return facts.map((fact) => visible(fact).replaceAll("\n", "\n    ⏎ ")).join("\n");
}
