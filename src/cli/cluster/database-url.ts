import { type Arguments, usage } from "../args.ts";

/** Returns the address of the database from the flags or the environment. */
export function databaseUrl(given: Arguments): string {
  const url = given.text("database") ?? process.env.TROUPE_DATABASE_URL;
  if (url !== undefined && url !== "") return url;
  throw usage("No database is given.", "Use --database postgres://user@host/name, or set TROUPE_DATABASE_URL.");
}
