import { join, resolve } from "node:path";
import { workingDirectory } from "../../context/working-directory.ts";
import type { Disk } from "../../lib/node/disk.ts";
import type { Stamp } from "../../lib/stamp.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { WorkingDirectory } from "../../protocol/event.ts";
import type { SessionLog, Store } from "../../store/store.ts";
import type { Tool } from "../../tools/tool.ts";
import type { PastSessions } from "../knowledge/past-sessions.ts";
import type { SessionIdentity } from "../models/identity.ts";
import type { LastModel } from "../models/last-model.ts";
import { ModelChoice, ownModels } from "../models/model-choice.ts";
import type { Models } from "../models/models.ts";
import type { ProcessParts } from "../process-parts.ts";
import type { SessionRequest } from "../session-request.ts";
import type { SessionTracing } from "../telemetry.ts";
import { LateSession } from "./late-session.ts";

export interface PrepareParts {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly disk: Disk;
  readonly stamp: Stamp;
  readonly models: Models;
  readonly tools: readonly Tool[];
  /** What all sessions of the process share. */
  readonly shared: ProcessParts;
  readonly store: Store;
  readonly past: PastSessions;
  /** What a session that is taken up again spoke to last. */
  readonly lastModel: LastModel | undefined;
  /** Who it is on GitHub, if anybody. */
  readonly identity: SessionIdentity | undefined;
  readonly tracing?: SessionTracing | undefined;
}

/** A session in the making: what was asked for, where, and from what. Each step of `prepare.ts` is given it. */
export interface SessionSetup extends Omit<PrepareParts, "models"> {
  /** With what it brings itself. */
  readonly models: ModelChoice;
  readonly request: SessionRequest;
  readonly log: SessionLog;
  readonly context: WorkingDirectory;
  /** The session's own folder for files that the agent and its commands write. Nothing in it is trusted. */
  readonly files: string;
  /** For records of the runtime: tools may read them, neither tools nor commands may write them. */
  readonly records: string;
  /** Whatever must be told before the session is there. */
  readonly listener: LateSession;
}

export function beginSetup(request: SessionRequest, log: SessionLog, parts: PrepareParts): SessionSetup {
  const place = placeOf(request.cwd);
  const context = request.git === false ? { cwd: place.cwd } : place;
  const listener = new LateSession();
  const models = new ModelChoice({
    models: parts.models,
    own: ownModels(request, parts),
    capabilities: request.modelCapabilities,
    emit: listener.say,
  });
  return {
    ...parts,
    models,
    request,
    log,
    context,
    files: join(log.directory, "files"),
    records: join(log.directory, "records"),
    listener,
  };
}

function placeOf(cwd: string): WorkingDirectory {
  try {
    return workingDirectory(cwd);
  } catch (cause) {
    throw new TroupeError("usage", `Cannot work in ${resolve(cwd)}: it does not exist or cannot be read.`, { cause });
  }
}
