/**
 * Which database a command uses. One rule for all commands that have the flag: `--database <url>`, else
 * TROUPE_DATABASE_URL, else none. `--database local` is the sessions of this machine, whatever the variable says.
 */

import { type Arguments, usage } from "../args.ts";

const LOCAL = "local";

/** Returns the address of the database, or undefined for the sessions of this machine. */
export function chosenDatabase(given: Arguments): string | undefined {
  const url = given.text("database") ?? process.env.TROUPE_DATABASE_URL;
  return url === undefined || url === "" || url === LOCAL ? undefined : url;
}

/**
 * Returns the database of `troupe` and `troupe -p`. They start sessions on this machine unless the flag is given; the
 * variable decides only where an earlier session is looked for.
 */
export function sessionDatabase(given: Arguments): string | undefined {
  const isEarlier = given.has("continue") || ["resume", "attach"].some((name) => isReference(given.text(name)));
  return isEarlier || given.flags.includes("database") ? chosenDatabase(given) : undefined;
}

/** `--attach` also takes the port of a server. */
const isReference = (text: string | undefined): boolean => text !== undefined && !/^\d{1,5}$/.test(text);

/** Returns the address for a command that cannot do without. */
export function databaseUrl(given: Arguments): string {
  const url = chosenDatabase(given);
  if (url !== undefined) return url;
  throw usage("No database is given.", "Use --database postgres://user@host/name, or set TROUPE_DATABASE_URL.");
}
