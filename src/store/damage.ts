/** Damage found in a log. */

/** One place in a log that could not be used. The bytes are kept, the rest of the log is usable. */
export interface Damage {
  readonly kind: "torn_tail" | "null_bytes" | "checksum" | "not_json" | "joined" | "sequence" | "too_long";
  /** 1-based line of the file. */
  readonly line: number;
  readonly offset: number;
  readonly bytes: number;
  readonly message: string;
  readonly savedTo?: string;
}
