/**
 * The sessions of a database, as the dashboard reads and steers them. Nothing takes a session from its worker: events are
 * read from rows, messages become submitted work, and answers become rows, through the gateway of client programs.
 */
import type { Disk } from "../../lib/node/disk.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import type { Cluster } from "../../runtime/cluster/cluster.ts";
import { derivedFolder } from "../../runtime/cluster/derived-folder.ts";
import { RemoteSessions } from "../../runtime/cluster/remote-sessions.ts";
import { type PastSessions, pastSessions } from "../../runtime/knowledge/past-sessions.ts";
import { Client } from "../../sdk/client.ts";
import { Gateway } from "../../server/gateway/gateway.ts";
import { inProcessTransport } from "../../server/in-process-transport.ts";
import type { SearchQuery } from "../../store/index/index-sqlite.ts";
import { linePage } from "../../store/postgres/line-pages.ts";
import type { LogSource } from "../log-source.ts";
import type { DatabaseSessions } from "../session-locator.ts";
import type { Connection } from "./connection.ts";
import { type RequestListener, WatchedRows } from "./watched-rows.ts";

export interface ClusterSessionsOptions {
  readonly url: string;
  readonly home: string;
  readonly disk: Disk;
  /** Called for sessions that are watched. */
  readonly onRequests: RequestListener;
}

export class ClusterSessions implements DatabaseSessions {
  readonly #options: ClusterSessionsOptions;
  readonly #connection: Connection;
  readonly #watched: WatchedRows;
  #remote: RemoteSessions | undefined;
  #client: Promise<Client> | undefined;
  #past: Promise<PastSessions> | undefined;

  constructor(options: ClusterSessionsOptions, connection: Connection) {
    this.#options = options;
    this.#connection = connection;
    this.#watched = new WatchedRows(connection, options.onRequests);
  }

  /** Finds sessions that have not begun, too. */
  has(sessionId: string): Promise<boolean> {
    return this.#connection.use(async ({ database }) => {
      const { count } = await database.query(
        `select 1 from troupe.session where id = $1 union all (select 1 from troupe.work where session_id = $1 limit 1)`,
        [sessionId],
      );
      return count > 0;
    });
  }

  sourceOf(sessionId: string): LogSource {
    return {
      read: (after) => this.#connection.use(({ database }) => linePage(database, sessionId, after)),
      watch: (onChange) => this.#watched.add(sessionId, onChange),
    };
  }

  async *events(sessionId: string): AsyncGenerator<SessionEvent> {
    yield* await this.#connection.use(async (cluster) => this.#sessions(cluster).store.events(sessionId));
  }

  /** A client of a gateway in this process. */
  client(): Promise<Client> {
    this.#client ??= this.#connection
      .use(async (cluster) => {
        const open = async () =>
          inProcessTransport(new Gateway({ sessions: this.#sessions(cluster), say: () => undefined }));
        const client = new Client({ connection: { kind: "custom", open } });
        await client.start();
        return client;
      })
      .catch((error: unknown) => {
        this.#client = undefined;
        throw error;
      });
    return this.#client;
  }

  /** Searches an index in the state folder of this machine, which is brought up to date first. */
  async search(query: SearchQuery) {
    this.#past ??= this.#connection.use(async (cluster) => {
      const { home, disk, url } = this.#options;
      const derived = derivedFolder(home, url);
      await disk.mkdir(derived);
      return pastSessions({ stateRoot: derived, store: this.#sessions(cluster).store, disk });
    });
    const past = await this.#past.catch((error: unknown) => {
      this.#past = undefined;
      throw error;
    });
    return past.search(query);
  }

  async close(): Promise<void> {
    this.#watched.close();
    await (await this.#client?.catch(() => undefined))?.stop();
    await (await this.#past?.catch(() => undefined))?.close();
  }

  /** The connection to the database is that of the dashboard: closing the gateway does not close it. */
  #sessions(cluster: Cluster): RemoteSessions {
    const { url, home } = this.#options;
    this.#remote ??= new RemoteSessions({ url, home }, { ...cluster, close: async () => undefined });
    return this.#remote;
  }
}
