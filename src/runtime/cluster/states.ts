/** The states that `overview.ts` reads. `…Ms` are durations, by the clock of the database. Imports nothing, so that pages can import it. */

export interface WorkerState {
  readonly worker: string;
  readonly host: string;
  readonly pid: number;
  readonly pool: string;
  readonly version: string;
  /** Set if it serves only this tenant. */
  readonly tenant: string | null;
  readonly state: "alive" | "draining" | "drained" | "lost";
  /** Sessions that it holds. */
  readonly sessions: number;
  readonly concurrency: number;
  /** Time until its lease expires; negative since when it is lost. */
  readonly leaseMs: number;
}

export interface QueueState {
  readonly pool: string;
  readonly tenant: string;
  readonly waiting: number;
  readonly running: number;
  /** Waits for a response, without a place. */
  readonly parked: number;
  readonly setAside: number;
  /** How long the first one waits for a place; null if none does. */
  readonly oldestMs: number | null;
}

/** The state of one piece of work: of an outcome the kind, else what it waits for. */
export interface WorkState {
  readonly work: string;
  readonly session: string;
  readonly state: string;
  readonly pool: string;
  readonly tenant: string;
  readonly starts: number;
  readonly worker: string | null;
  readonly submitted: Date;
  /** Why it was set aside, or how it failed. */
  readonly reason: string | null;
}

/** A session with its current work: the oldest that is open, else the newest. */
export interface ClusterSession extends WorkState {
  /** The beginning of the message. */
  readonly prompt: string;
  readonly repository: string | null;
  readonly ref: string | null;
  /** Messages without an outcome. */
  readonly open: number;
  readonly takeOvers: number;
  readonly lastActivity: Date;
}

export interface OpenSession {
  readonly session: string;
  readonly tenant: string;
  /** The worker that has it open; null while it waits. */
  readonly worker: string | null;
}

/** The last time that a session was taken over from a lost worker. */
export interface TakeOver {
  readonly session: string;
  readonly tenant: string;
  readonly at: Date;
  /** Null if an older version of troupe stored it. */
  readonly from: string | null;
  readonly to: string | null;
  /** How often the session was taken over. */
  readonly count: number;
}
