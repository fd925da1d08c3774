import type { Store } from "../../store/store.ts";

/** Returns a store that can switch to another store while callers keep using it. */
export function movableStore(first: Store): { readonly store: Store; moveTo(other: Store): void } {
  let current = first;
  return {
    store: {
      create: (sessionId) => current.create(sessionId),
      open: (sessionId) => current.open(sessionId),
      list: () => current.list(),
      ids: () => current.ids(),
      read: (sessionId) => current.read(sessionId),
      events: (sessionId, onDamage) => current.events(sessionId, onDamage),
      recent: (sessionId, isStart) => current.recent(sessionId, isStart),
      scan: (sessionId, scan) => current.scan(sessionId, scan),
      revision: (sessionId) => current.revision(sessionId),
      revisions: () => current.revisions(),
      fork: (sessionId, fork) => current.fork(sessionId, fork),
      remove: (sessionId) => current.remove(sessionId),
      get exact() {
        return current.exact;
      },
    },
    moveTo(other) {
      current = other;
    },
  };
}
