/** A location of sessions, on this machine or in a database, as the list of sessions reads it. */
import { watch } from "node:fs";
import { join } from "node:path";
import type { Store } from "../store/store.ts";
import type { AttentionItem } from "../view/view.ts";
import type { OpenWork, SessionRow } from "./api.ts";
import type { OpenSessions } from "./open-sessions.ts";
import { holdingProcess } from "./session-holder.ts";
import type { SignIns } from "./sign-ins.ts";

export interface SessionLocation extends Pick<Store, "revisions" | "list"> {
  readonly isDatabase: boolean;
  /** Limits the share of the time that may be spent on polling: 250 means at most 1/250. */
  readonly pollShare: number;
  /** Returns the ids of the sessions to fold. */
  choose(revisions: Awaited<ReturnType<Store["revisions"]>>): readonly string[];
  /** Returns undefined for a session that nobody has open. */
  holderOf(sessionId: string, isFolded: boolean): Promise<OpenState | undefined>;
  /** Calls back when a session is added or removed. Undefined where that is not possible; `onLost` when it ends. */
  watch(onChange: () => void, onLost: () => void): (() => void) | undefined;
}

/** How a session is open. */
export interface OpenState extends Partial<Pick<SessionRow, "holder" | "holderPid">> {
  /** Ids of the requests that can be answered. Undefined: those of its events. */
  readonly requests?: ReadonlySet<string>;
  readonly work?: OpenWork;
  readonly signIns?: readonly AttentionItem[];
}

/** Sessions that are folded: the ones used last, and not longer ago than this. */
const MAX_FOLDED = 40;
const FOLDED_MS = 3 * 24 * 60 * 60 * 1000;

/** The sessions of this machine. */
export function localLocation(parts: {
  readonly store: Store;
  readonly home: string;
  readonly openSessions: OpenSessions;
  readonly signIns: SignIns;
}): SessionLocation {
  const { store, home, openSessions, signIns } = parts;
  return {
    isDatabase: false,
    pollShare: 250,
    revisions: () => store.revisions(),
    list: () => store.list(),
    choose: (revisions) =>
      [...revisions]
        .sort((one, other) => other.changedMs - one.changedMs)
        .slice(0, MAX_FOLDED)
        .filter(({ changedMs }) => Date.now() - changedMs < FOLDED_MS)
        .map(({ sessionId }) => sessionId),
    async holderOf(sessionId, isFolded) {
      const asked = signIns.of(sessionId);
      if (openSessions.isOpen(sessionId)) return { holder: "here", signIns: asked };
      const holder = isFolded ? await holdingProcess(home, sessionId) : undefined;
      if (!holder) return undefined;
      return {
        holder: (await openSessions.canJoin(holder.pid)) ? "joinable" : "other",
        holderPid: holder.pid,
        signIns: asked,
      };
    },
    watch(onChange, onLost) {
      try {
        const watcher = watch(join(home, "session-state"), { persistent: false }, onChange);
        watcher.on("error", () => {
          watcher.close();
          onLost();
        });
        return () => watcher.close();
      } catch {
        // No session was ever stored, or there are no more watches.
        return undefined;
      }
    },
  };
}
