/**
 * What people and projects add to troupe, and how far each is believed: settings files, trust in folders, values for
 * commands, plugins. What comes from a workspace is data until its folder is trusted, and runs only as it was approved.
 *
 * - `trust.ts`: which folders a person trusts, and what in them was approved (`pins.ts`).
 * - `settings.ts`: the settings files; a person's own decide, those of a project may only tighten.
 * - `dotenv.ts`: values from a workspace's `.env` for the commands an agent runs.
 */

/** Whose file it is: the person's, the project's, or the person's own beside the project's. */
export type Scope = "user" | "project" | "local";

/** Something a person should know that stops nothing; for stderr and for an event. */
export interface Notice {
  readonly kind: string;
  /** One line; may quote what others wrote. */
  readonly message: string;
}

/** So many remarks about one file, and no more. */
export const MAX_NOTICES = 20;

/** The first of them, and a last one that says how many more there were. */
export function boundedNotices(notices: readonly Notice[], file: string): readonly Notice[] {
  const [next] = notices.slice(MAX_NOTICES);
  if (next === undefined) return notices;
  const message = `${file}: ${notices.length - MAX_NOTICES} more remarks are left out.`;
  return [...notices.slice(0, MAX_NOTICES), { kind: next.kind, message }];
}
