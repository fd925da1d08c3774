/** The inbox of the main agent, as tools reach it: who may write to it has the one port, who may read it the other. */
export interface InboxEntry {
  readonly entryId: string;
  readonly senderName: string;
  readonly senderType: string;
  readonly summary: string;
  readonly content: string;
}

export interface InboxReader {
  get(entryId: string): InboxEntry | undefined;
  /** The newest first. */
  readonly ids: readonly string[];
}

export interface InboxSender {
  /** How many entries it may send before it is told of something new. */
  readonly maxSends: number;
  /** Resolves with the id when the entry is on disk. Throws a `ToolError` when it may not be sent. */
  send(message: Pick<InboxEntry, "summary" | "content">, signal: AbortSignal): Promise<string>;
}

export const MAX_SUMMARY_CHARACTERS = 300;
export const MAX_CONTENT_CHARACTERS = 16_000;
