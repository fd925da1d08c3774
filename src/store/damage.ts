/** One part of a log that cannot be used. The bytes stay on disk, and the rest of the log is usable. */
export interface Damage {
  readonly kind: "torn_tail" | "null_bytes" | "checksum" | "not_json" | "joined" | "sequence" | "too_long";
  /** 1-based line of the file. */
  readonly line: number;
  readonly offset: number;
  readonly bytes: number;
  readonly message: string;
  readonly savedTo?: string;
}
