/** The ports for the main agent's inbox: one for senders, one for the reader. */
export interface InboxEntry {
  readonly entryId: string;
  readonly senderName: string;
  readonly senderType: string;
  readonly summary: string;
  readonly content: string;
}

export interface InboxReader {
  get(entryId: string): InboxEntry | undefined;
  /** Newest first. */
  readonly ids: readonly string[];
}

export interface InboxSender {
  /** Number of entries it may send before it receives new input. */
  readonly maxSends: number;
  /** Resolves with the id when the entry is on disk. Throws a `ToolError` when it may not be sent. */
  send(message: Pick<InboxEntry, "summary" | "content">, signal: AbortSignal): Promise<string>;
}

export const MAX_SUMMARY_CHARACTERS = 300;
export const MAX_CONTENT_CHARACTERS = 16_000;
