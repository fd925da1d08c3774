/** State that the whole page shares: the list of sessions, the open session, the clock and short messages. */
import { computed, effect, signal } from "@preact/signals";
import type { SessionEvent } from "../../protocol/event.ts";
import type { TodoRow } from "../../view/session-view.ts";
import type { AttentionRow, Boot, ListMessage, SessionRow } from "../api.ts";
import { route } from "./route.ts";
import { call, link, Stream } from "./server.ts";
import { PageSession } from "./session-model.ts";

export const rows = signal<ReadonlyMap<string, SessionRow>>(new Map());
/** The page is a file with the log inside: there is no server. */
export const isExported = signal(false);
export const isListKnown = signal(false);
/** The reason why a part of the sessions cannot be listed. */
export const listProblem = signal("");
export const boot = signal<Boot | undefined>(undefined);
export const session = signal<PageSession | undefined>(undefined);
/** Advances once a minute while the page is visible. */
export const now = signal(Date.now());
const narrow = matchMedia("(max-width: 1080px)");
/** There is no room for the agent's facts beside the transcript. As in `style.css`. */
export const isNarrow = signal(narrow.matches);
narrow.addEventListener("change", ({ matches }) => {
  isNarrow.value = matches;
});
export const toast = signal<{ readonly text: string; readonly isError: boolean } | undefined>(undefined);

/** Sessions, the one that changed last first. */
export const sortedRows = computed(() =>
  [...rows.value.values()].sort((one, other) => other.updatedAt - one.updatedAt),
);

/** Everything that waits for a person, oldest first. */
export const attention = computed(() =>
  [...rows.value.values()]
    .flatMap((row) => row.attention.map((asked): AttentionRow & { row: SessionRow } => ({ ...asked, row })))
    .sort((one, other) => one.item.at - other.item.at),
);

export function tell(text: string, isError = false): void {
  const shown = { text, isError };
  toast.value = shown;
  setTimeout(() => {
    if (toast.value === shown) toast.value = undefined;
  }, 6_000);
}

/** Runs a command and reports its failure. Resolves with undefined then. */
export async function attempt<T>(work: Promise<T>, done?: string): Promise<T | undefined> {
  try {
    const result = await work;
    if (done !== undefined) tell(done);
    return result;
  } catch (error) {
    tell(error instanceof Error ? error.message : String(error), true);
    return undefined;
  }
}

export function start(): void {
  const stream = new Stream({
    onList: takeList,
    onEvents: (events) => session.value?.take(events as SessionEvent[]),
    onReady: (about) => session.value?.ready(about),
  });
  let watched: string | null | undefined = null;
  effect(() => {
    const id = route.value.view === "session" ? route.value.id : undefined;
    if (id === watched) return;
    watched = id;
    session.value = id === undefined ? undefined : new PageSession(id, () => readTodos(id));
    stream.watch(id, 0);
  });
  setInterval(() => {
    if (document.visibilityState === "visible") now.value = Date.now();
  }, 60_000);
  effect(() => {
    if (link.value !== "open" || boot.peek()) return;
    call<Boot>("web.boot").then(
      (known) => {
        boot.value = known;
      },
      () => undefined,
    );
  });
}

const readTodos = async (sessionId: string): Promise<readonly TodoRow[]> =>
  (await call<{ rows: readonly TodoRow[] }>("web.todos", { sessionId })).rows;

function takeList({ rows: changed, removed, isWhole, problem }: ListMessage): void {
  if (problem !== undefined || isWhole) listProblem.value = problem ?? "";
  const next = new Map(isWhole ? [] : rows.value);
  for (const row of changed) next.set(row.id, row);
  for (const id of removed) next.delete(id);
  rows.value = next;
  isListKnown.value = true;
  now.value = Date.now();
}
