/**
 * Finds the session that a user means. This folder works on sessions as a whole: select, fork, rewind, hand over, and
 * synchronize with a client.
 */
import { nearest } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { WorkingDirectory } from "../../protocol/event.ts";
import type { SessionSummary, Store } from "../../store/store.ts";

const SHORTEST_PREFIX = 7;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** Finds a session by id, name, or the beginning of an id. Throws if there is none or more than one. */
export async function findSession(store: Store, wanted: string): Promise<string> {
  const ids = await store.ids();
  if (ids.includes(wanted)) return wanted;

  const lower = wanted.toLowerCase();
  const summaries = await store.list();
  const named = summaries.filter(({ name }) => name?.toLowerCase() === lower).map(({ sessionId }) => sessionId);
  const begun = wanted.length >= SHORTEST_PREFIX ? ids.filter((id) => id.toLowerCase().startsWith(lower)) : [];
  const [found, ...others] = named.length > 0 ? named : begun;
  if (found !== undefined && others.length > 0) throw ambiguous(wanted, [found, ...others]);
  if (found !== undefined) return found;

  const names = summaries.flatMap(({ name }) => (name ? [name] : []));
  const close = nearest(wanted, names);
  const hints = [
    UUID.test(wanted) ? `To start a new session with this id, use --session-id ${wanted}.` : undefined,
    close ? `Did you mean "${close}"?` : undefined,
    "See `troupe sessions list`.",
  ];
  throw new TroupeError("usage", `There is no session "${wanted}".`, { hint: hints.filter(Boolean).join(" ") });
}

/**
 * Returns the session to continue: same repository and branch first, then wider, newest first. Never returns one of
 * another project.
 */
export async function lastSession(store: Store, here: WorkingDirectory): Promise<string> {
  const summaries = await store.list();
  const score = (summary: SessionSummary): number => {
    if (here.repository && summary.repository === here.repository) return summary.branch === here.branch ? 4 : 3;
    if (here.gitRoot && summary.gitRoot === here.gitRoot) return 2;
    return summary.cwd === here.cwd ? 1 : 0;
  };
  const [best] = summaries
    .filter(isOfPerson)
    .map((summary) => ({ summary, score: score(summary) }))
    .filter((one) => one.score > 0)
    .sort((a, b) => b.score - a.score || laterFirst(a.summary, b.summary));
  if (!best)
    throw new TroupeError("usage", "No session of this repository or folder can be continued.", {
      hint: "Start one with `troupe -p`, or name another with --resume <id|name>: see `troupe sessions list`.",
    });
  return best.summary.sessionId;
}

/** Returns true if the session belongs to the folder's repository, or worked in the folder itself. */
export function isInDirectory(summary: SessionSummary, here: WorkingDirectory): boolean {
  if (here.repository !== undefined && summary.repository === here.repository) return true;
  return summary.cwd === here.cwd || (here.gitRoot !== undefined && summary.gitRoot === here.gitRoot);
}

/** Returns the last session of this folder or repository. Throws if there is none. */
export async function sessionHere(store: Store, here: WorkingDirectory): Promise<string> {
  const own = (await store.list())
    .filter(isOfPerson)
    .filter(({ cwd, gitRoot }) => cwd === here.cwd || (gitRoot !== undefined && gitRoot === here.gitRoot))
    .sort(laterFirst);
  if (own[0]) return own[0].sessionId;
  throw new TroupeError("usage", "No session has worked in this folder.", {
    hint: "Name one with --session <id|name>.",
  });
}

/** ISO 8601 times sort as plain text; comparing by locale takes seconds for ten thousand. */
const laterFirst = (a: SessionSummary, b: SessionSummary): number =>
  a.updatedAt === b.updatedAt ? 0 : a.updatedAt < b.updatedAt ? 1 : -1;

/** Sessions that troupe started itself can be found only by id. */
const isOfPerson = ({ detachedFrom }: SessionSummary): boolean => detachedFrom === undefined;

/** Throws if a session already has this name. */
export async function requireFreeName(store: Store, name: string): Promise<void> {
  const taken = (await store.list()).find((summary) => summary.name?.toLowerCase() === name.toLowerCase());
  if (!taken) return;
  const hint = `Go on with it (--resume "${taken.name}"), or choose another name.`;
  throw new TroupeError("usage", `Session ${taken.sessionId} is named "${taken.name}" already.`, { hint });
}

function ambiguous(wanted: string, ids: readonly string[]): TroupeError {
  return new TroupeError(
    "usage",
    `"${wanted}" could be any of ${ids.length} sessions: ${ids.slice(0, 5).join(", ")}.`,
    {
      hint: "Give the whole id.",
    },
  );
}
