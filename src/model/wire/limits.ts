const MiB = 1024 * 1024;

/** Maximum sizes of a reply, for all providers. */
export const limits = {
  /** One event of a stream, or a whole reply that is not streamed. */
  eventBytes: 16 * MiB,
  responseBytes: 256 * MiB,
  events: 2_000_000,
  calls: 1_000,
  /** Blocks or items of one reply. */
  blocks: 10_000,
  argumentCharacters: 4 * MiB,
  reasoningCharacters: 16 * MiB,
  jsonDepth: 512,
  /** The text of a provider's error. */
  messageCharacters: 500,
  errorBodyBytes: 64 * 1024,
} as const;
