/** The context board as tools use it. */

/** The board of a session, as one of its agents may use it. Failures are `TroupeError`s, worded for who asked. */
export interface BoardPort {
  /**
   * `direct`: at once, with permission. `draft`: together with everything else when the work is done, or not at all.
   * `never`: for those who only read.
   */
  readonly writes: "direct" | "draft" | "never";
  /** The list for a model; undefined when there is nothing on it. */
  table(): Promise<string | undefined>;
  /** The text of one item for a model, counted as a reading; undefined when there is none. */
  read(src: "agent" | "user", name: string): Promise<string | undefined>;
  add(item: BoardPortText): Promise<"added" | "replaced" | "unchanged">;
  /** Of an agent; false when there is none. */
  prune(name: string): Promise<boolean>;
}

interface BoardPortText {
  readonly name: string;
  readonly description: string;
  readonly content: string;
}
