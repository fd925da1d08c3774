/**
 * The composition root: the only folder that combines stores, providers, tools and prompts into sessions. Every surface
 * starts with `createRuntime`. Subfolders: `setup/` turns a request into session options; `agents/`, `mcp/`, `models/`,
 * `permissions/` and `workspace/` prepare those parts; `knowledge/` holds memory and board; `sessions/` finds, forks
 * and hands over sessions.
 */

import { join, resolve } from "node:path";
import { type Disk, nodeDisk } from "../lib/node/disk.ts";
import { type Stamp, systemStamp } from "../lib/stamp.ts";
import type { SharedLimits } from "../model/shared-limits.ts";
import { realPathOf } from "../permissions/resolve-path.ts";
import type { FileProvider } from "../protocol/session-fs.ts";
import { snapshotRules } from "../session/compaction/condense.ts";
import { Session } from "../session/session.ts";
import { jsonlStore } from "../store/jsonl.ts";
import type { SessionLog, Store } from "../store/store.ts";
import { builtinTools } from "../tools/builtin.ts";
import type { Tool } from "../tools/tool.ts";
import { stateRoot } from "./home.ts";
import { type PastSessions, pastSessions } from "./knowledge/past-sessions.ts";
import { type GithubRequest, type GithubService, githubService } from "./models/identity.ts";
import { lastModelOf } from "./models/last-model.ts";
import { models, type ProcessModels } from "./models/models.ts";
import { processParts } from "./process-parts.ts";
import type { SessionRequest } from "./session-request.ts";
import type { Forked, ForkRequest } from "./sessions/fork-session.ts";
import { type HandOver, handOver, openWhenReleased } from "./sessions/hand-over.ts";
import { movableStore } from "./sessions/movable-store.ts";
import { requireFreeName } from "./sessions/select-session.ts";
import { prepareSession } from "./setup/prepare.ts";
import type { PrepareParts } from "./setup/session-setup.ts";
import { type MeasuredInstance, type TelemetryService, telemetryService } from "./telemetry.ts";
import { version } from "./version.ts";

export interface RuntimeOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The state root; default: from the environment. */
  readonly home?: string;
  readonly disk?: Disk;
  readonly stamp?: Stamp;
  /** Loads the user's provider packages; default `import()`. */
  readonly importModule?: (specifier: string) => Promise<unknown>;
  /** Stores sessions in place of the state root, for example in a database. */
  readonly store?: Store;
  /** The index of the sessions in `store`. */
  readonly past?: PastSessions;
  /** Tools in place of the built-in ones. */
  readonly tools?: readonly Tool[];
  /** Limits of model requests that other processes share. */
  readonly sharedLimits?: SharedLimits;
  /** Set for one of several processes with the same sessions: telemetry exports its id and its gauges. */
  readonly instance?: MeasuredInstance;
  /** Set by programs that use GitHub identities and models. Without it GitHub is never contacted for them. */
  readonly github?: GithubRequest;
}

export interface Runtime {
  readonly home: string;
  readonly store: Store;
  readonly models: ProcessModels;
  /** The built-in tools, or their replacement. */
  readonly tools: readonly Tool[];
  /** GitHub identities and models, if a program wants them. */
  readonly github: GithubService;
  createSession(request: SessionRequest & { readonly sessionId?: string }): Promise<Session>;
  resumeSession(sessionId: string, request: SessionRequest): Promise<Session>;
  /** Lets a process answer requests of other processes for its idle sessions. */
  readonly handOver: HandOver;
  /** Creates a session with the conversation of another, up to a point. The other session may be working. */
  forkSession(request: ForkRequest): Promise<Forked>;
  /** Stores sessions with a client from now on. No session may be open. Locally stored sessions stay but are hidden. */
  keepSessionsWith(provider: FileProvider): Promise<void>;
  /** Redacts this text from now on in everything that sessions write or show. */
  addSecret(value: string): void;
  /** Exports pending telemetry. Call it after sessions close, when the process may end at any moment. */
  flush(): Promise<void>;
  /** Removes what the sandbox added to folders. Close all sessions first. */
  close(): Promise<void>;
  /** Index of all sessions, for search. */
  readonly past: PastSessions;
  /** Resolves to the reason why this machine has no sandbox for commands; undefined if it has one. */
  sandboxAbsence(): Promise<string | undefined>;
}

export function createRuntime(options: RuntimeOptions): Runtime {
  const { environment, disk = nodeDisk, stamp = systemStamp, tools = builtinTools } = options;
  // Real path: state protection and access to a session's own files compare real paths.
  const home = realPathOf(resolve(options.home ?? stateRoot(environment)), "/");
  const local = jsonlStore({ root: home, disk, stamp, snapshots: snapshotRules });
  const { store, moveTo } = movableStore(options.store ?? local);
  const past = options.past ?? pastSessions({ stateRoot: home, store: local, disk });
  const shared = processParts({ environment, stateRoot: home, disk });
  const telemetry = telemetryService({ ...options, disk, stamp, addSecret: shared.addSecret });
  const known = models({
    environment,
    stateRoot: home,
    stamp,
    userAgent: `troupe/${version}`,
    importModule: options.importModule,
    onKey: (key, providerId) => shared.addSecret(key, providerId),
    sharedLimits: options.sharedLimits,
  });
  const onToken = (token: string): void => shared.addSecret(token, "GitHub");
  const github = githubService({ request: options.github, environment, stamp, onToken });

  const parts = { environment, stateRoot: home, disk, stamp, models: known, tools, shared, store, past };
  const open = (log: SessionLog, request: SessionRequest, how: "create" | "resume"): Promise<Session> =>
    openSession({ log, request, how }, { parts, github, telemetry });

  return {
    home,
    store,
    models: known,
    tools,
    github,
    async createSession(request) {
      if (request.name !== undefined) await requireFreeName(store, request.name);
      const log = await store.create(request.sessionId ?? stamp.id("session"));
      return open(log, request, "create");
    },
    async resumeSession(sessionId, request) {
      const log = await openWhenReleased(sessionId, request.resume?.patienceMs ?? 0, { store, disk, stamp });
      return open(log, request, "resume");
    },
    async forkSession(request) {
      const { forkSession } = await import("./sessions/fork-session.ts");
      return forkSession(request, { stateRoot: home, store, stamp });
    },
    handOver: handOver(disk),
    async keepSessionsWith(provider) {
      const { clientStore } = await import("../store/client/client-store.ts");
      moveTo(clientStore({ provider, folder: join(home, "session-state"), disk, stamp }));
    },
    addSecret: (value) => shared.addSecret(value, "client"),
    past,
    sandboxAbsence: async () => (await shared.sandboxes.status(false)).absence,
    flush: () => telemetry.flush(),
    async close() {
      await past.close();
      await telemetry.close();
      await shared.close();
    },
  };
}

/** Prepares a session and creates or resumes it. Closes the log if that fails. */
async function openSession(
  { log, request, how }: { log: SessionLog; request: SessionRequest; how: "create" | "resume" },
  runtime: {
    parts: Omit<PrepareParts, "lastModel" | "identity" | "tracing">;
    github: GithubService;
    telemetry: TelemetryService;
  },
): Promise<Session> {
  const { parts, github, telemetry } = runtime;
  try {
    const identity = await github.identityOf(request.client?.githubToken);
    const isThere = async (id: string) => (id === "github" ? identity !== undefined : parts.models.hasProvider(id));
    const lastModel = how === "resume" ? await lastModelOf(log.events, request, isThere) : undefined;
    const tracing = await telemetry.of(log.sessionId, request.trace);
    const { options, started } = await prepareSession(request, log, { ...parts, lastModel, identity, tracing });
    const session = await (how === "resume" ? Session.resume(options) : Session.create(options));
    started(session);
    return session;
  } catch (error) {
    await log.close();
    throw error;
  }
}
