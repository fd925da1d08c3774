/**
 * This folder reads what users and projects add to troupe, and how far each is trusted: settings, agents, plugins,
 * extensions, and values for commands. Content of a workspace is only data until its folder is trusted, and runs only
 * as approved.
 *
 * - `trust.ts`: the folders that the user trusts, and the items approved in them (`pins.ts`).
 * - `settings/`: the settings files. The user's own decide; those of a project may only tighten.
 * - `agents/`, `plugins/`, `extensions.ts`: find and check what can be loaded. Nothing runs by being found.
 * - `dotenv.ts`: values from a workspace's `.env` for the commands that an agent runs.
 */

/** Owner of a file: the user, the project, or the user beside the project's file. */
export type Scope = "user" | "project" | "local";

/** A notice for the user, on stderr and as an event. It stops nothing. */
export interface CatalogNotice {
  readonly kind: string;
  /** One line; may quote foreign text. */
  readonly message: string;
}

/** Limit for the notices about one file. */
export const MAX_NOTICES = 20;

/** Returns the first notices, and a last one with the number of those left out. */
export function boundedNotices(notices: readonly CatalogNotice[], file: string): readonly CatalogNotice[] {
  const [next] = notices.slice(MAX_NOTICES);
  if (next === undefined) return notices;
  const message = `${file}: ${notices.length - MAX_NOTICES} more notices are not shown.`;
  return [...notices.slice(0, MAX_NOTICES), { kind: next.kind, message }];
}
