/**
 * The only place that puts parts together: stores, providers, tools and prompts become sessions here. Every surface
 * starts with `createRuntime`.
 */
import { realpathSync } from "node:fs";
import { join, resolve } from "node:path";
import { systemPrompt } from "../context/system-prompt.ts";
import { workingDirectory } from "../context/working-directory.ts";
import { type Disk, nodeDisk } from "../lib/node/disk.ts";
import { type Stamp, systemStamp } from "../lib/stamp.ts";
import { noUsage } from "../model/provider.ts";
import { protectionOf } from "../permissions/protected-paths.ts";
import { realPathOf } from "../permissions/resolve-path.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { Limits } from "../session/budget.ts";
import { Checkpoints } from "../session/checkpoints.ts";
import { Session, type SessionOptions } from "../session/session.ts";
import type { FoundTurn } from "../store/index-sqlite.ts";
import { jsonlStore } from "../store/jsonl.ts";
import type { SessionLog, Store } from "../store/store.ts";
import { builtinTools } from "../tools/builtin.ts";
import { sessionDatabase } from "../tools/database/session-database.ts";
import { rememberedFiles } from "../tools/files.ts";
import type { Tool } from "../tools/tool.ts";
import { allowsLocalhost } from "../tools/web/web-access.ts";
import { stateRoot } from "./home.ts";
import { type Models, models } from "./models.ts";
import { type PermissionRequest, policyOf } from "./policy.ts";
import { requireFreeName } from "./select-session.ts";
import { lazyShells, sandboxSource } from "./shells.ts";
import { chooseTools, type ToolChoice } from "./tool-choice.ts";
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
}

export interface SessionRequest {
  readonly cwd: string;
  /** See `troupe --help`, Model. */
  readonly model?: string;
  readonly name?: string;
  readonly limits?: Limits;
  readonly streaming?: boolean;
  readonly reasoningEffort?: SessionOptions["reasoningEffort"];
  /** Folders beside `cwd` that tools may reach, or "all". */
  readonly paths?: readonly string[] | "all";
  readonly toolChoice?: ToolChoice;
  readonly permissions?: PermissionRequest;
}

export interface Runtime {
  readonly home: string;
  readonly store: Store;
  readonly models: Models;
  createSession(request: SessionRequest & { readonly sessionId?: string }): Promise<Session>;
  resumeSession(sessionId: string, request: SessionRequest): Promise<Session>;
  /** Undoes what the sandbox had to put into folders. Sessions are closed before. */
  close(): Promise<void>;
  /** Past turns that hold all the words, best first. Brings the index up to date, or makes it anew, before. */
  searchSessions(words: string, limit?: number): Promise<readonly FoundTurn[]>;
}

export function createRuntime(options: RuntimeOptions): Runtime {
  const { environment, disk = nodeDisk, stamp = systemStamp, tools = builtinTools } = options;
  // As it really lies: what protects it, and what lets tools reach a session's own files, compares real paths.
  const home = realPathOf(resolve(options.home ?? stateRoot(environment)), "/");
  const store = jsonlStore({ root: home, disk, stamp });
  const known = models({
    environment,
    home,
    stamp,
    ...(options.importModule && { importModule: options.importModule }),
  });

  const sandboxes = sandboxSource({ environment, stateRoot: home, disk });
  /** So that what its tools have to say reaches the session. */
  const sessions = new WeakMap<SessionLog, Session>();
  const opened = (log: SessionLog, session: Session): Session => {
    sessions.set(log, session);
    return session;
  };

  const prepare = async (log: SessionLog, request: SessionRequest, lastModel?: string): Promise<SessionOptions> => {
    const context = placeOf(request.cwd);
    const model = await known.resolve(request.model ?? environmentModel(environment, lastModel));
    if (request.limits?.costUsd !== undefined && model.costOf(noUsage) === null) throw priceUnknown(model.model);
    const roots =
      request.paths === "all"
        ? []
        : [context.cwd, ...(request.paths ?? []).map(realFolder), join(log.directory, "files")];
    const policy = policyOf(
      { ...request.permissions, allPaths: request.paths === "all" },
      { roots, stateRoot: home, writable: [join(log.directory, "files")] },
    );
    const database = sessionDatabase({ path: join(log.directory, "session.db"), disk });
    const turns = { current: "" };
    const network = request.permissions?.allUrls === true;
    const shells = lazyShells({
      sandbox: () => sandboxes.get(network),
      folder: join(log.directory, "files"),
      stamp,
      disk,
      environment,
      onWarning: (message) => sessions.get(log)?.warn("shell", message),
    });
    const checkpoints = new Checkpoints({ directory: log.directory, disk, stamp, turn: () => turns.current });
    const offered = chooseTools(tools, request.toolChoice);
    return {
      log,
      stamp,
      version,
      model,
      system: systemPrompt({ context, platform: process.platform, tools: offered.map(({ name }) => name) }),
      tools: offered,
      cwd: context.cwd,
      roots,
      policy,
      ports: {
        files: rememberedFiles({
          keep: (changes) => checkpoints.keep(changes),
          refuses: (path) => (protectionOf(path, policy.places) === "deny" ? "it is protected" : undefined),
        }),
        web: { userAgent: `troupe/${version}`, allowLocalhost: allowsLocalhost(environment) },
        database,
        shells,
      },
      // All changes that followed from one message can be undone together.
      onMessage: (messageId) => {
        turns.current = messageId;
      },
      onClose: async () => {
        await shells.closeAll();
        await database.close();
      },
      context,
      largeOutputBytes: largeOutputBytes(environment),
      ...(request.limits && { limits: request.limits }),
      ...(request.name !== undefined && { name: request.name }),
      ...(request.streaming !== undefined && { streaming: request.streaming }),
      ...(request.reasoningEffort !== undefined && { reasoningEffort: request.reasoningEffort }),
    };
  };

  return {
    home,
    store,
    models: known,
    async createSession(request) {
      if (request.name !== undefined) await requireFreeName(store, request.name);
      const log = await store.create(request.sessionId ?? stamp.id("session"));
      return withLog(log, async () => opened(log, await Session.create(await prepare(log, request))));
    },
    async resumeSession(sessionId, request) {
      const log = await store.open(sessionId);
      return withLog(log, async () =>
        opened(
          log,
          await Session.resume(await prepare(log, request, request.model === undefined ? lastModelOf(log) : undefined)),
        ),
      );
    },
    close: () => sandboxes.close(),
    async searchSessions(words, limit) {
      const { sessionIndex } = await import("../store/index-sqlite.ts");
      const index = sessionIndex({ path: join(home, "session-store.db"), store, disk });
      try {
        await index.refresh();
        return await index.search(words, limit);
      } finally {
        await index.close();
      }
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

function placeOf(cwd: string): SessionOptions["context"] {
  try {
    return workingDirectory(cwd);
  } catch (cause) {
    throw new TroupeError("usage", `Cannot work in ${resolve(cwd)}: it does not exist or cannot be read.`, { cause });
  }
}

function realFolder(folder: string): string {
  try {
    return realpathSync(folder);
  } catch (cause) {
    throw new TroupeError("usage", `--add-dir ${folder}: there is no such folder.`, { cause });
  }
}

/** A resumed session goes on with its own model, unless one is asked for now. */
function environmentModel(
  environment: RuntimeOptions["environment"],
  lastModel: string | undefined,
): string | undefined {
  return environment.TROUPE_MODEL || environment.COPILOT_MODEL ? undefined : lastModel;
}

function lastModelOf(log: SessionLog): string | undefined {
  for (let index = log.events.length - 1; index >= 0; index--) {
    const event = log.events[index];
    if (event?.type !== "troupe.usage") continue;
    const { provider, model } = event.data;
    if (provider === "faux") {
      const hint = "Name the model to go on with: --model.";
      throw new TroupeError("usage", "The session was played by a faux script, which cannot be taken up half-way.", {
        hint,
      });
    }
    // The stand-in: a session that had to do with it goes on with whatever there is now.
    return provider === "understudy" ? undefined : `${provider}/${model}`;
  }
  return undefined;
}

/** A limit that cannot be held is refused, not forgotten. */
function priceUnknown(model: string): TroupeError {
  return new TroupeError("configuration", `A cost limit cannot be kept: the price of ${model} is not known.`, {
    hint: "Give its price in providers.json, or limit tokens instead (--max-tokens).",
  });
}

function largeOutputBytes(environment: RuntimeOptions["environment"]): number {
  const given = Number(environment.TROUPE_LARGE_OUTPUT_BYTES ?? environment.COPILOT_LARGE_OUTPUT_THRESHOLD_BYTES);
  return Number.isInteger(given) && given >= 1_024 ? given : 20_480;
}
