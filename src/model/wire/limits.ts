const MiB = 1024 * 1024;

/** How much a reply may hold before it is refused, whoever sends it. */
export const limits = {
  /** One event of a stream, or a whole reply that is not streamed. */
  eventBytes: 16 * MiB,
  responseBytes: 256 * MiB,
  events: 2_000_000,
  calls: 1_000,
  /** Blocks or items that one reply is made of. */
  blocks: 10_000,
  argumentCharacters: 4 * MiB,
  reasoningCharacters: 16 * MiB,
  jsonDepth: 512,
  /** Of what a provider says about a failure. */
  messageCharacters: 500,
  errorBodyBytes: 64 * 1024,
} as const;
