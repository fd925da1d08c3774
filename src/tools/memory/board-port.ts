/** The port through which tools use the context board. */

/** The board of a session, as one of its agents may use it. Throws `TroupeError`s with messages for the caller. */
export interface BoardPort {
  /**
   * `direct`: written immediately, with permission. `draft`: written together at the end of the work, or not at all.
   * `never`: read-only.
   */
  readonly writes: "direct" | "draft" | "never";
  /** Returns the list of items for the model, or undefined when the board is empty. */
  table(): Promise<string | undefined>;
  /** Returns the text of one item and counts the read; undefined when there is no such item. */
  read(src: "agent" | "user", name: string): Promise<string | undefined>;
  add(item: BoardPortText): Promise<"added" | "replaced" | "unchanged">;
  /** Removes an item that an agent wrote. Returns false when there is none. */
  prune(name: string): Promise<boolean>;
}

interface BoardPortText {
  readonly name: string;
  readonly description: string;
  readonly content: string;
}
