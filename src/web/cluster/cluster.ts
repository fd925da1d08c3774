/** The part of the dashboard for a database: its sessions, and the methods of the view of workers. Loaded only with a database. */
import { checkDatabaseUrl } from "../../store/postgres/database-errors.ts";
import type { OwnMethod } from "../calls.ts";
import type { SessionLocation } from "../session-location.ts";
import type { SessionLocator } from "../session-locator.ts";
import { clusterLocation } from "./cluster-location.ts";
import { clusterMethods } from "./cluster-methods.ts";
import { ClusterSessions, type ClusterSessionsOptions } from "./cluster-sessions.ts";
import { Connection } from "./connection.ts";

export interface WebCluster {
  /** Host and database, without user and password. */
  readonly name: string;
  readonly methods: Readonly<Record<string, OwnMethod>>;
  readonly sessions: ClusterSessions;
  location(locator: SessionLocator): SessionLocation;
  close(): Promise<void>;
}

/** Connects at the first use. Throws if this is not an address of a database. */
export function webCluster(options: ClusterSessionsOptions): WebCluster {
  const { url } = options;
  checkDatabaseUrl(url);
  const { host, pathname } = new URL(url);
  const connection = new Connection(url);
  const sessions = new ClusterSessions(options, connection);
  return {
    name: `${host}${decodeURIComponent(pathname)}`,
    methods: clusterMethods(connection),
    sessions,
    location: (locator) => clusterLocation(connection, locator),
    async close() {
      await sessions.close();
      await connection.close();
    },
  };
}
