/** Checks the logs of all sessions in a database. `checker.ts` also checks effects, leases and states of the engine. */

import type { Queries } from "../../src/lib/queries.ts";
import { check } from "./checker.ts";
import { linesIn } from "./record.ts";

/** Returns one line for each violation. */
export const violations = async (queries: Queries): Promise<readonly string[]> =>
  check({ lines: await linesIn(queries) });
