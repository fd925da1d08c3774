import { createParser } from "eventsource-parser";
import { limits } from "../limits.ts";
import { protocolError } from "../wire-error.ts";

export interface SseEvent {
  readonly event?: string | undefined;
  readonly data: string;
}

/** Converts bytes to events without a promise per event. */
export interface SseReader {
  /** Yields the events that these bytes complete, in batches. Nothing is buffered before its size is checked. */
  feed(bytes: Uint8Array): Generator<readonly SseEvent[]>;
  /** Returns the event of a last line without the blank line after it. */
  end(): readonly SseEvent[];
}

const PIECE_BYTES = 64 * 1024;

export function sseReader(provider: string): SseReader {
  const decoder = new TextDecoder();
  let batch: SseEvent[] = [];
  const parser = createParser({ onEvent: (event) => batch.push(event) });
  let unfinishedBytes = 0;
  let eventCount = 0;
  let heldReturn = false;

  function read(piece: Uint8Array): readonly SseEvent[] {
    unfinishedBytes += piece.length;
    if (unfinishedBytes > limits.eventBytes) {
      throw protocolError(provider, `one event of the reply is larger than ${limits.eventBytes / 1024 / 1024} MiB`);
    }
    batch = [];
    parser.feed(withLineFeeds(decoder.decode(piece, { stream: true })));
    if (batch.length > 0) unfinishedBytes = 0;
    eventCount += batch.length;
    if (eventCount > limits.events) {
      throw protocolError(provider, `the reply has more than ${limits.events} events`);
    }
    return batch;
  }

  /** Converts line ends to line feeds: the parser is quadratic for lines that end with a carriage return. */
  function withLineFeeds(text: string): string {
    if (!heldReturn && !text.includes("\r")) return text;
    let whole = heldReturn ? `\r${text}` : text;
    heldReturn = whole.endsWith("\r");
    if (heldReturn) whole = whole.slice(0, -1);
    return whole.replace(/\r\n?/g, "\n");
  }

  return {
    *feed(bytes) {
      for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield read(bytes.subarray(at, at + PIECE_BYTES));
    },
    end() {
      batch = [];
      parser.feed(heldReturn ? "\n\n" : "\n");
      return batch;
    },
  };
}
