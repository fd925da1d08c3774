/**
 * The only place that puts parts together: stores, providers, tools and prompts become sessions here. Every surface
 * starts with `createRuntime`.
 */

import { join, resolve } from "node:path";
import { type Disk, nodeDisk } from "../lib/node/disk.ts";
import { type Stamp, systemStamp } from "../lib/stamp.ts";
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
import { type GithubDesk, type GithubWish, githubDesk } from "./models/identity.ts";
import { lastModelOf } from "./models/last-model.ts";
import { type Models, models } from "./models/models.ts";
import { processParts } from "./process-parts.ts";
import type { SessionRequest } from "./session-request.ts";
import type { Forked, ForkRequest } from "./sessions/fork-session.ts";
import { type HandOver, handOver, openInTurn } from "./sessions/hand-over.ts";
import { movableStore } from "./sessions/movable-store.ts";
import { requireFreeName } from "./sessions/select-session.ts";
import { prepareSession } from "./setup/prepare.ts";
import { telemetryDesk } from "./telemetry.ts";
import { version } from "./version.ts";

export interface RuntimeOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The state root; found from the environment when not given. */
  readonly home?: string;
  readonly disk?: Disk;
  readonly stamp?: Stamp;
  /** How to load a provider package of the user's; plain `import()` unless told. */
  readonly importModule?: (specifier: string) => Promise<unknown>;
  /** Tools instead of the built-in ones. */
  readonly tools?: readonly Tool[];
  /** Set by a program that wants GitHub identities and models; nobody is asked without it. */
  readonly github?: GithubWish;
}

export interface Runtime {
  readonly home: string;
  readonly store: Store;
  readonly models: Models;
  /** The tools that are built in, or were given in their place. */
  readonly tools: readonly Tool[];
  /** Identities and models of GitHub, where a program wants them. */
  readonly github: GithubDesk;
  createSession(request: SessionRequest & { readonly sessionId?: string }): Promise<Session>;
  resumeSession(sessionId: string, request: SessionRequest): Promise<Session>;
  /** For a process that holds sessions it does nothing with. */
  readonly handOver: HandOver;
  /** A new session with the conversation of another, up to a place; the other may be at work. */
  forkSession(request: ForkRequest): Promise<Forked>;
  /** From now on sessions are kept by a client; none may be open. What was kept here before stays, out of sight. */
  keepSessionsWith(provider: FileProvider): Promise<void>;
  /** From now on this text is taken out of everything that sessions write or show. */
  addSecret(value: string): void;
  /** Sessions were closed, and the process may be ended any moment: what is told of them elsewhere is told now. */
  flush(): Promise<void>;
  /** Undoes what the sandbox had to put into folders. Sessions are closed before. */
  close(): Promise<void>;
  /** What all sessions said and did, for search. */
  readonly past: PastSessions;
  /** Why this machine can run no command in a sandbox; resolves to undefined when it can. */
  sandboxAbsence(): Promise<string | undefined>;
}

export function createRuntime(options: RuntimeOptions): Runtime {
  const { environment, disk = nodeDisk, stamp = systemStamp, tools = builtinTools } = options;
  // As it really lies: what protects it, and what lets tools reach a session's own files, compares real paths.
  const home = realPathOf(resolve(options.home ?? stateRoot(environment)), "/");
  const local = jsonlStore({ root: home, disk, stamp, snapshots: snapshotRules });
  const { store, moveTo } = movableStore(local);
  const past = pastSessions({ home, store: local, disk });
  const shared = processParts({ environment, home, disk });
  const telemetry = telemetryDesk({ environment, disk, stamp, addSecret: shared.addSecret });
  const known = models({
    environment,
    home,
    stamp,
    userAgent: `troupe/${version}`,
    onKey: (key, providerId) => shared.addSecret(key, providerId),
    ...(options.importModule && { importModule: options.importModule }),
  });

  const onToken = (token: string): void => shared.addSecret(token, "GitHub");
  const github = githubDesk({ wish: options.github, environment, stamp, onToken });

  const open = async (log: SessionLog, request: SessionRequest, { resume }: { resume: boolean }): Promise<Session> => {
    const identity = await github.identityOf(request.githubToken);
    const isThere = async (id: string) => (id === "github" ? identity !== undefined : known.hasProvider(id));
    const lastModel = resume ? await lastModelOf(log.events, request, isThere) : undefined;
    const tracing = await telemetry.of(log.sessionId);
    const own = { models: known, tools, shared, store, past, lastModel, identity, tracing };
    const parts = { environment, home, disk, stamp, ...own };
    const { options: prepared, started } = await prepareSession(request, log, parts);
    const session = await (resume ? Session.resume(prepared) : Session.create(prepared));
    started(session);
    return session;
  };

  return {
    home,
    store,
    models: known,
    tools,
    github,
    async createSession(request) {
      if (request.name !== undefined) await requireFreeName(store, request.name);
      const log = await store.create(request.sessionId ?? stamp.id("session"));
      return withLog(log, () => open(log, request, { resume: false }));
    },
    async resumeSession(sessionId, request) {
      const log = await openInTurn(sessionId, request.patienceMs ?? 0, { store, disk, stamp });
      return withLog(log, () => open(log, request, { resume: true }));
    },
    async forkSession(request) {
      const { forkSession } = await import("./sessions/fork-session.ts");
      return forkSession(request, { home, store, stamp });
    },
    handOver: handOver(disk),
    async keepSessionsWith(provider) {
      const { elsewhereStore } = await import("../store/elsewhere/elsewhere.ts");
      moveTo(elsewhereStore({ provider, folder: join(home, "session-state"), disk, stamp }));
    },
    addSecret: (value) => shared.addSecret(value, "client"),
    past,
    sandboxAbsence: () => shared.sandboxes.absence(false),
    flush: () => telemetry.flush(),
    async close() {
      await past.close();
      await telemetry.close();
      await shared.close();
    },
  };
}

/** A log whose session could not be made is let go of. */
async function withLog(log: SessionLog, make: () => Promise<Session>): Promise<Session> {
  try {
    return await make();
  } catch (error) {
    await log.close();
    throw error;
  }
}
