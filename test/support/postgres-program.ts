/** Starts a Postgres server as the tests do, prints its folder, and waits. */

import { postgresPrograms, startPostgres } from "./postgres.ts";

const { folder } = await startPostgres(postgresPrograms() ?? "");
console.log(folder);
setInterval(() => undefined, 60_000);
