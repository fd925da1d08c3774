import { visible } from "./text.ts";

/** Executable or deciding configuration as a person is asked about it, and as the answer is kept. */
export interface PinnedItem<Kind extends PinnedKind = PinnedKind> {
  readonly kind: Kind;
  /** Names the item among those of its kind in its folder; stays the same while the content changes. */
  readonly id: string;
  /** SHA-256 over the whole of it, as hexadecimal digits: any change asks again. */
  readonly digest: string;
  /** Shown to a person in full before it is approved; without secret values. */
  readonly shown: string;
}

export type PinnedKind = "hook" | "mcp" | "skill" | "plugin" | "settings" | "environment" | "sidekick" | "extension";

/** What is known of an item: "untrusted" when nobody was asked about its folder. */
export type ItemTrust = "approved" | "changed" | "new" | "untrusted";

/** The most that a person can be expected to read of one definition. A longer one cannot be approved. */
export const MAX_SHOWN_CHARACTERS = 16 * 1024;

/** One fact a line. Further lines of the same fact are marked, so that no fact can pass for another. */
export function shownFacts(facts: readonly string[]): string {
  return facts.map((fact) => visible(fact).replaceAll("\n", "\n    ⏎ ")).join("\n");
}
