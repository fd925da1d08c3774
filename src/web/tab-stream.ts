/**
 * The event stream of one tab (SSE): the list of sessions, and the events of the session that the tab shows. `id` is the
 * number of the last stored event, so a reconnecting browser continues without gap or duplicate.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { ListMessage, ReadyMessage } from "./api.ts";
import type { Feeds } from "./feeds.ts";
import type { FeedReader } from "./session-feed.ts";
import type { SessionLists } from "./session-lists.ts";
import type { SessionLocator } from "./session-locator.ts";

export interface TabParts {
  readonly feeds: Feeds;
  readonly rows: SessionLists;
  readonly locator: Pick<SessionLocator, "isKnownInDatabase">;
  /** The tab shows this session: join it where that is possible. */
  onWatch(sessionId: string): void;
}

/** Bytes that may wait for a tab before it counts as slow. */
const MAX_UNREAD = 4 * 1024 * 1024;

export function serveTab(
  { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
  watched: { readonly sessionId: string | undefined; readonly after: number; readonly wantsList: boolean },
  { feeds, rows, locator, onWatch }: TabParts,
): void {
  response.writeHead(200, { "Content-Type": "text/event-stream; charset=utf-8", "X-Accel-Buffering": "no" });
  response.write("retry: 1000\n\n");
  request.socket.setNoDelay(true);
  const stops: (() => void)[] = [];
  let isClosed = false;
  response.on("close", () => {
    isClosed = true;
    for (const stop of stops) stop();
  });
  const write = (text: string): boolean => {
    if (isClosed) return false;
    response.write(text);
    return response.writableLength < MAX_UNREAD;
  };

  const { sessionId, after, wantsList } = watched;
  if (sessionId !== undefined) {
    const reader: FeedReader = {
      position: after,
      take(events, last) {
        if (isClosed) return false;
        const isReady = write(`event: events\nid: ${last}\ndata: {"events":[${events.join(",")}]}\n\n`);
        return isReady ? true : whenDrained(response);
      },
      caughtUp() {
        const about: ReadyMessage = { isInDatabase: locator.isKnownInDatabase(sessionId) };
        write(`event: ready\ndata: ${JSON.stringify(about)}\n\n`);
      },
    };
    stops.push(feeds.follow(sessionId, reader));
    onWatch(sessionId);
  }
  if (!wantsList) return;
  const listener = (message: ListMessage): void => void write(`event: list\ndata: ${JSON.stringify(message)}\n\n`);
  void rows.follow(listener).then((stop) => {
    if (isClosed) stop();
    else stops.push(stop);
  });
}

/** Resolves with false when the tab has gone. */
function whenDrained(response: ServerResponse): Promise<boolean> {
  return new Promise((resolve) => {
    if (response.destroyed) return resolve(false);
    response.once("drain", () => resolve(true));
    response.once("close", () => resolve(false));
  });
}
