/** Words errors of the database for the user: which server, what happened, what to do. Passwords are never part of it. */

import { TroupeError } from "../../protocol/errors.ts";

const FORM = "postgres://user:password@host:port/database";

/** Throws for a text that is not an address of a Postgres database. */
export function checkDatabaseUrl(url: string): void {
  const isKnown = URL.canParse(url) && /^postgres(?:ql)?:$/.test(new URL(url).protocol);
  if (isKnown) return;
  throw new TroupeError("usage", "The address of the database is not a Postgres URL.", {
    hint: `It has the form ${FORM}. Use --database, or set TROUPE_DATABASE_URL.`,
  });
}

/** Returns a `TroupeError` for an error of the connection or of rights, and any other error unchanged. */
export function databaseError(error: unknown, url: string): unknown {
  if (error instanceof TroupeError || !(error instanceof Error)) return error;
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  const { username, hostname, port, pathname } = new URL(url);
  const user = decodeURIComponent(username) || "the operating system's user";
  const server = `${hostname || "the local socket"}${port === "" ? "" : `:${port}`}`;
  const usageError = (message: string, hint: string): TroupeError =>
    new TroupeError("usage", message, { hint, cause: error });
  if (/^(?:ENOTFOUND|EAI_AGAIN)$/.test(code))
    return usageError(`The host of the database is not known: ${hostname}.`, "Correct the address of the database.");
  if (code === "28P01" || /password must be a (?:non-empty )?string/.test(error.message))
    return usageError(
      `The database at ${server} refuses the password of ${user}.`,
      `Put it into the address: ${FORM}.`,
    );
  if (code === "28000")
    return usageError(
      `The database at ${server} refuses the user ${user}.`,
      "Create the role, or correct the address.",
    );
  if (code === "3D000")
    return usageError(`The server at ${server} has no database ${pathname.slice(1)}.`, "Create it: createdb <name>.");
  if (code === "42501")
    return usageError(
      `The database role ${user} has no right to do this.`,
      "Use the role that owns the tables of troupe.",
    );
  if (code === "53300")
    return usageError(
      `The server at ${server} has no connection left.`,
      "Raise max_connections, or stop some workers.",
    );
  if (isAway(code, error.message))
    return usageError(
      `No database answers at ${server}.`,
      "Check that Postgres runs there, and that this machine reaches it.",
    );
  return error;
}

/** Errors of the server have a code of five characters. */
function isAway(code: string, message: string): boolean {
  if (/^(?:08|57P)/.test(code)) return true;
  const isNetwork = /^E(?:CONN|TIMEDOUT|HOST|NET|PIPE)/.test(code);
  return isNetwork || /connection (?:terminated|timeout)|timeout exceeded|not queryable/i.test(message);
}
