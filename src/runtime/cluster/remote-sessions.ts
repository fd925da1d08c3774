/**
 * Sessions that workers run, as a server for client programs sees them: messages become submitted work, events are read
 * from rows, and answers become rows. Nothing of a session is open in this process.
 */

import { hostname } from "node:os";
import { join } from "node:path";
import { defined } from "../../lib/defined.ts";
import { nodeDisk } from "../../lib/node/disk.ts";
import type { TraceContext } from "../../lib/trace-context.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { copyCheckpoints } from "../../store/postgres/carried-files.ts";
import { type FollowedEvent, followRows } from "../../store/postgres/follow.ts";
import { changes, topics } from "../../store/postgres/notifications.ts";
import { postgresStore } from "../../store/postgres/postgres.ts";
import { checkSessionId } from "../../store/session-id.ts";
import type { Store } from "../../store/store.ts";
import { abortWork, answerRequest, type Cluster, openCluster, roleTenant, submitWork } from "./cluster.ts";
import { isKnownRequest, openRequests, type RequestRow } from "./requests.ts";
import { findWork, openWork, type WorkOutcome, type WorkRequest } from "./work.ts";

export interface RemoteOptions {
  readonly url: string;
  /** The state folder of this process. */
  readonly home: string;
  readonly pool?: string;
  readonly tenant?: string;
  /** The repository and ref of new sessions. */
  readonly repository?: string;
  readonly ref?: string;
}

/** The part of a request that a program sets for a session: it is the same for each of its messages. */
export type RemoteSessionOptions = Pick<WorkRequest, "asks" | "options" | "tools">;

/** The state of a session that its events do not have. */
export interface RemoteState {
  readonly lastSeq: number;
  readonly isBusy: boolean;
  readonly requests: readonly RequestRow[];
}

export class RemoteSessions {
  readonly #options: RemoteOptions;
  readonly #cluster: Cluster;
  readonly store: Store;

  constructor(options: RemoteOptions, cluster: Cluster) {
    this.#options = options;
    this.#cluster = cluster;
    const worker = { id: `gateway-${crypto.randomUUID()}`, host: hostname(), pid: process.pid };
    const folder = join(options.home, "session-state");
    this.store = postgresStore({ database: cluster.database, folder, disk: nodeDisk, worker, readsOnly: true });
  }

  static async open(options: RemoteOptions): Promise<RemoteSessions> {
    return new RemoteSessions(options, await openCluster({ ...options, connections: CONNECTIONS }));
  }

  /** Stores the options of a session. Later messages use them. Returns whether the session is new. */
  async configure(sessionId: string, options: RemoteSessionOptions): Promise<boolean> {
    const { rows } = await this.#cluster.database.query<{ added: boolean }>(
      `insert into troupe.remote_session as r (id, tenant, options) values($1, $2, $3)
       on conflict (id) do update set options = r.options || excluded.options, changed_at = clock_timestamp()
       returning xmax = 0 as added`,
      [checkSessionId(sessionId), await this.#tenant(), JSON.stringify(options)],
    );
    return rows[0]?.added === true && (await this.store.revision(sessionId)) === undefined;
  }

  /** Adds the options of a further client. It takes no tools and no questions from those before it. */
  async extend(sessionId: string, options: RemoteSessionOptions): Promise<void> {
    const before = (await this.#configured(sessionId)) ?? {};
    const asks = [...new Set([...(before.asks ?? []), ...(options.asks ?? [])])];
    const tools = options.tools?.length ? options.tools : (before.tools ?? []);
    await this.configure(sessionId, { asks, tools, options: { ...before.options, ...options.options } });
  }

  /** Whether a program or a submitter has created the session. */
  async exists(sessionId: string): Promise<boolean> {
    return (await this.#configured(sessionId)) !== undefined || (await this.store.revision(sessionId)) !== undefined;
  }

  /** Submits a message. Returns its id. */
  async send(sessionId: string, prompt: string, trace?: TraceContext): Promise<string> {
    const { pool, tenant, repository, ref } = this.#options;
    const options = (await this.#configured(sessionId)) ?? {};
    const id = crypto.randomUUID();
    await submitWork(this.#cluster, {
      ...{ id, sessionId, onLoss: "continue" },
      ...defined({ tenant, pool }),
      request: {
        ...{ prompt, flags: [], ...options },
        ...defined({ trace, repository, ref }),
      },
    });
    return id;
  }

  /** Returns the outcome of a message, or `null` while it has none. */
  async outcomeOf(workId: string): Promise<WorkOutcome | null> {
    return (await findWork(this.#cluster.database, workId))?.outcome ?? null;
  }

  /** Ends all open messages of the session. */
  async abort(sessionId: string): Promise<void> {
    for (const { id } of await openWork(this.#cluster.database, sessionId)) await abortWork(this.#cluster, id);
  }

  /** Returns false unless this is the first response to an open request. */
  async answer(given: Parameters<typeof answerRequest>[1]): Promise<boolean> {
    return answerRequest(this.#cluster, given);
  }

  requests(sessionId: string): Promise<readonly RequestRow[]> {
    return openRequests(this.#cluster.database, sessionId);
  }

  /** Returns an open request. Waits a while for one that does not exist yet: its event may be read before its row. */
  async request(sessionId: string, requestId: string): Promise<RequestRow | undefined> {
    for await (const _ of this.changes(sessionId, AbortSignal.timeout(ROW_MS))) {
      // In this order: a row that is added in between is not open yet, but it has not ended.
      const isKnown = await isKnownRequest(this.#cluster.database, sessionId, requestId);
      const row = (await this.requests(sessionId)).find(({ id }) => id === requestId);
      if (row || isKnown) return row;
    }
    return undefined;
  }

  async state(sessionId: string): Promise<RemoteState> {
    const { database } = this.#cluster;
    const open = await openWork(database, sessionId);
    const requests = await openRequests(database, sessionId);
    // Read last: it covers all events of work that has ended.
    const { rows } = await database.query<{ last: string }>(
      "select last_seq::text as last from troupe.session where id = $1",
      [sessionId],
    );
    return { lastSeq: Number(rows[0]?.last ?? 0), isBusy: open.length > 0, requests };
  }

  /** Yields at once and after each change of the session's requests and work. */
  changes(sessionId: string, signal: AbortSignal): AsyncGenerator<void> {
    return changes(this.#cluster.database.notifications, [topics.session(sessionId)], { signal });
  }

  follow(sessionId: string, afterSeq: number, signal: AbortSignal): AsyncGenerator<FollowedEvent> {
    return followRows(this.#cluster.database, sessionId, { afterSeq, signal });
  }

  /** Copies the checkpoints that workers have stored into a folder. */
  async copyCheckpoints(sessionId: string, directory: string): Promise<void> {
    const { database } = this.#cluster;
    await copyCheckpoints(database, { sessionId, directory, disk: nodeDisk }).catch((error: unknown) => {
      if (!(error instanceof Error && "code" in error && error.code === NO_RIGHT)) throw error;
      throw new TroupeError("usage", "The role of a tenant may not read the stored copies of changed files.", {
        hint: "Ask the operator of the database, or read the changes in the repository: git fetch origin 'refs/troupe/*'.",
        cause: error,
      });
    });
  }

  /** Deletes the session. Throws while it has work. */
  async remove(sessionId: string): Promise<void> {
    if ((await openWork(this.#cluster.database, sessionId)).length > 0) {
      throw new TroupeError("usage", `Session ${sessionId} has a job that is not done.`, { hint: "Abort it first." });
    }
    if ((await this.store.revision(sessionId)) !== undefined) await this.store.remove(sessionId);
    await this.#cluster.database.query("delete from troupe.remote_session where id = $1", [sessionId]);
  }

  async close(): Promise<void> {
    await this.#cluster.close();
  }

  async #tenant(): Promise<string> {
    return this.#options.tenant ?? (await roleTenant(this.#cluster.database)) ?? "default";
  }

  async #configured(sessionId: string): Promise<RemoteSessionOptions | undefined> {
    const { rows } = await this.#cluster.database.query<{ options: RemoteSessionOptions }>(
      "select options from troupe.remote_session where id = $1",
      [checkSessionId(sessionId)],
    );
    return rows[0]?.options;
  }
}

const NO_RIGHT = "42501";
const CONNECTIONS = 6;
const ROW_MS = 10_000;
