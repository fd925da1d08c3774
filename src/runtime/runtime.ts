/**
 * The only place that puts parts together: stores, providers, tools and prompts become sessions here. Every surface
 * starts with `createRuntime`.
 */
import { join, resolve } from "node:path";
import type { SessionMode } from "../commands/command.ts";
import type { SectionTransform } from "../context/sections.ts";
import type { SystemMessageConfig } from "../context/system-message.ts";
import type { FactorySource } from "../factories/ports.ts";
import type { HookPoint } from "../hooks/points.ts";
import type { Json } from "../lib/json.ts";
import { type Disk, nodeDisk } from "../lib/node/disk.ts";
import { type Stamp, systemStamp } from "../lib/stamp.ts";
import type { GivenProviders, ModelCapabilities } from "../model/given-providers.ts";
import type { ModelFetch } from "../model/wire/place.ts";
import type { OpenSocket } from "../model/wire/transport/socket.ts";
import { realPathOf } from "../permissions/resolve-path.ts";
import type { FileProvider } from "../protocol/session-fs.ts";
import type { Limits } from "../session/budget/budget.ts";
import type { CompactionOptions } from "../session/compaction/compaction-options.ts";
import { snapshotRules } from "../session/compaction/condense.ts";
import type { ExternalTools } from "../session/requests/external-tools.ts";
import { Session, type SessionOptions } from "../session/session.ts";
import { jsonlStore } from "../store/jsonl.ts";
import type { SessionLog, Store } from "../store/store.ts";
import { builtinTools } from "../tools/builtin.ts";
import type { TextBuffers } from "../tools/text-buffers.ts";
import type { Tool } from "../tools/tool.ts";
import type { Forked, ForkRequest } from "./sessions/fork-session.ts";
import type { GithubToolsWish } from "./mcp/github-server.ts";
import { type HandOver, handOver, openInTurn } from "./sessions/hand-over.ts";
import { stateRoot } from "./home.ts";
import { type GithubDesk, type GithubWish, githubDesk } from "./models/identity.ts";
import { lastModelOf } from "./models/last-model.ts";
import type { MemoryRequest } from "./knowledge/memory-gate.ts";
import { type Models, models } from "./models/models.ts";
import { movableStore } from "./sessions/movable-store.ts";
import { type PastSessions, pastSessions } from "./knowledge/past-sessions.ts";
import type { PermissionRequest } from "./permissions/policy.ts";
import { prepareSession } from "./setup/prepare.ts";
import { processParts } from "./process-parts.ts";
import { requireFreeName } from "./sessions/select-session.ts";
import { telemetryDesk } from "./telemetry.ts";
import type { ToolChoice } from "./setup/tool-choice.ts";
import { version } from "./version.ts";
import type { WorkspaceRequest } from "./workspace/workspace.ts";

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

export interface SessionRequest {
  readonly cwd: string;
  /** See `troupe --help`, Model. */
  readonly model?: string;
  readonly name?: string;
  readonly limits?: Limits;
  readonly streaming?: boolean;
  readonly reasoningEffort?: SessionOptions["reasoningEffort"];
  readonly reasoningSummary?: SessionOptions["reasoningSummary"];
  /** How replies travel where nobody watches the words arrive; streamed unless told. */
  readonly replies?: "streamed" | "whole";
  /** What it may cost, in AI credits of a cent each: told to the agent, and held where the model's price is known. */
  readonly credits?: number;
  /** Say with each prompt when it was taken up. */
  readonly datesPrompts?: boolean;
  /** Ask for the places in documents that answers rest on. */
  readonly citations?: boolean;
  /** Providers and models that the program brings, in the place of what is configured or beside it. */
  readonly providers?: GivenProviders;
  /** What is said of the session's model outranks what its provider says. */
  readonly modelCapabilities?: ModelCapabilities;
  /** The program that speaks to the session; named to providers. */
  readonly clientName?: string;
  /** Reaches the network in its place, for everything that concerns this session's models. */
  readonly modelFetch?: ModelFetch;
  /** And opens WebSockets there. */
  readonly modelSocket?: OpenSocket;
  /** False: models of GitHub are not spoken to over WebSockets. */
  readonly githubSockets?: boolean;
  /** The session's own identity on GitHub; refused when it is not good. */
  readonly githubToken?: string;
  /** The MCP server of GitHub is used, where the session is somebody there. */
  readonly githubTools?: GithubToolsWish;
  /** Folders beside `cwd` that tools may reach, or "all". */
  readonly paths?: readonly string[] | "all";
  readonly toolChoice?: ToolChoice;
  /** The agent that leads the session from its first message on; `default` is nobody. */
  readonly agent?: string;
  /** False: what agents have to tell waits until the main agent is spoken to. */
  readonly wakes?: boolean;
  readonly permissions?: PermissionRequest;
  /** What the folder brings, and what is used beside it. */
  readonly workspace?: WorkspaceRequest;
  /** How far the agent goes by itself, at the start. */
  readonly mode?: SessionMode;
  /** False: the main agent works alone. */
  readonly delegation?: boolean;
  /** How long a session that is done waits for agents in the background. */
  readonly waitForAgentsMs?: number;
  /** Waits for new MCP servers until each is connected or has failed: there is no later message for their tools. */
  readonly waitForServers?: boolean;
  /** False: the model may not ask questions. */
  readonly askUser?: boolean;
  /** How the model asks questions: one with choices, or a form with fields. */
  readonly askUserVariant?: "legacy" | "elicitation";
  /** Only these of the skills that come with troupe. */
  readonly builtinSkills?: readonly string[];
  readonly systemMessage?: SystemMessageConfig;
  /** Whether facts are remembered between sessions; left out, the person's settings decide. */
  readonly memory?: MemoryRequest;
  /** Tool output beyond this many bytes goes to a file. */
  readonly largeOutputBytes?: number;
  /** Into this folder, absolute; left out, into the session's own. */
  readonly largeOutputFolder?: string;
  /** When the conversation is summarised; what is left out is as usual. */
  readonly compaction?: Partial<CompactionOptions>;
  readonly toolSearch?: { readonly enabled?: boolean; readonly threshold?: number };
  /** What holds for everybody in the organisation of the person; part of the system prompt. */
  readonly organizationInstructions?: string;
  /** False: what git knows of the folder is not looked at. */
  readonly git?: boolean;
  /** False: instructions that lie deeper in the folder are not told when the agent gets there. */
  readonly nestedInstructions?: boolean;
  /** False: the agent cannot query past sessions. */
  readonly sessionStore?: boolean;
  /** The program shows apps of MCP servers, and they are told so. */
  readonly mcpApps?: boolean;
  readonly program?: SessionProgram;
  /** A client asks for extensions; `sdkPath` is where theirs is. */
  readonly extensions?: { readonly sdkPath?: string };
  /** For a session that is taken up again: what its log is told of that. */
  readonly resumed?: SessionOptions["resumed"];
  /** Calls that waited for someone outside when the session was left are gone on with, by `Session.goOn`. */
  readonly continuesPending?: boolean;
  /** How long a process that holds the session and does nothing with it may take to let go of it. */
  readonly patienceMs?: number;
  /** The session whose learnings this one puts on the context board; only then may `rem-agent` lead. */
  readonly detachedFrom?: string;
}

export interface HookListener {
  /** For people, where it fails. */
  readonly name: string;
  /** Whose it is: what an extension says counts for as much as hooks of whoever brought it; a client's by itself. */
  readonly owner?: "user" | "project";
  /** What it resolves with is what a hook of that kind may say; nothing is no opinion. */
  invoke(hookType: HookPoint, input: Readonly<Record<string, Json>>, signal: AbortSignal): Promise<unknown>;
}

/** What client programs do for a session. All of it may change while the session is open. */
export interface SessionProgram {
  /** Tools they run. */
  readonly tools?: ExternalTools;
  /** Those who are told of every moment that hooks are told of. */
  hooks?(): readonly HookListener[];
  /** Asked for sections of the system prompt that are to be transformed, whenever it is made anew. */
  readonly transform?: SectionTransform;
  /** Workflows they bring. */
  readonly factories?: FactorySource;
  /** Texts they hold open. */
  readonly buffers?: TextBuffers;
  /** Until those who are about to join have joined, or nobody waits for them any longer. */
  ready?(signal: AbortSignal): Promise<void>;
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
