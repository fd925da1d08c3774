/** The sessions of a database in the list of sessions: those that changed last. The ones with open work are folded. */

import { listOpenSessions } from "../../runtime/cluster/overview.ts";
import { readable } from "../../runtime/cluster/readable.ts";
import { openRequestIds } from "../../runtime/cluster/requests.ts";
import type { OpenSession } from "../../runtime/cluster/states.ts";
import { newestSessions } from "../../store/postgres/reading.ts";
import type { SessionLocation } from "../session-location.ts";
import type { SessionLocator } from "../session-locator.ts";
import type { Connection } from "./connection.ts";

/** Sessions in the list beside those with open work. */
const MAX_LISTED = 500;
/** Sessions that are folded: those that wait for a person come first. */
const MAX_FOLDED = 60;

export function clusterLocation(connection: Connection, locator: Pick<SessionLocator, "isHere">): SessionLocation {
  let open = new Map<string, OpenSession>();
  let requests: ReadonlyMap<string, ReadonlySet<string>> | undefined;
  const chosen = () => ({ limit: MAX_LISTED, besides: [...open.keys()] });
  return {
    isDatabase: true,
    // Most of the time of a look is waiting for the server.
    pollShare: 4,
    async revisions() {
      return connection.use(async ({ database }) => {
        open = new Map((await listOpenSessions(database)).map((one) => [one.session, one]));
        requests = await readable(openRequestIds(database));
        const all = await newestSessions(database, chosen()).revisions();
        // A copy of a session on this machine is listed there.
        return all.filter(({ sessionId }) => !locator.isHere(sessionId));
      });
    },
    list: () => connection.use(({ database }) => newestSessions(database, chosen()).list()),
    choose: (revisions) =>
      revisions
        .map(({ sessionId }) => sessionId)
        .filter((id) => open.has(id))
        .sort((one, other) => Number(requests?.has(other) ?? false) - Number(requests?.has(one) ?? false))
        .slice(0, MAX_FOLDED),
    async holderOf(sessionId) {
      const found = open.get(sessionId);
      if (!found) return undefined;
      const { worker, tenant } = found;
      return { work: { worker, tenant }, ...(requests && { requests: requests.get(sessionId) ?? new Set() }) };
    },
    // Nothing is told of sessions that nobody watches.
    watch: () => undefined,
  };
}
