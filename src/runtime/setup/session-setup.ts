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
import { ownModels, SelectedModel } from "../models/model-choice.ts";
import type { Models } from "../models/models.ts";
import type { ProcessParts } from "../process-parts.ts";
import type { SessionRequest } from "../session-request.ts";
import type { SessionTracer } from "../telemetry.ts";
import { SessionChannel } from "./session-channel.ts";

export interface PrepareParts {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly stateRoot: string;
  readonly disk: Disk;
  readonly stamp: Stamp;
  readonly models: Models;
  readonly tools: readonly Tool[];
  /** Resources shared by all sessions of the process. */
  readonly shared: ProcessParts;
  readonly store: Store;
  readonly past: PastSessions;
  /** The last model of a resumed session. */
  readonly lastModel: LastModel | undefined;
  /** The GitHub identity, if any. */
  readonly identity: SessionIdentity | undefined;
  readonly tracing?: SessionTracer | undefined;
}

/** The state of session setup: the request, its directory and its parts. Each step of `prepare.ts` receives it. */
export interface SessionSetup extends Omit<PrepareParts, "models"> {
  /** Includes the session's own models. */
  readonly models: SelectedModel;
  readonly request: SessionRequest;
  readonly log: SessionLog;
  readonly context: WorkingDirectory;
  /** The session's own folder for files that the agent and its commands write. Nothing in it is trusted. */
  readonly files: string;
  /** For records of the runtime: tools may read them, neither tools nor commands may write them. */
  readonly records: string;
  /** Queues messages for the session until it is open. */
  readonly channel: SessionChannel;
}

export function beginSetup(request: SessionRequest, log: SessionLog, parts: PrepareParts): SessionSetup {
  const directory = directoryAt(request.cwd);
  const context = request.context?.git === false ? { cwd: directory.cwd } : directory;
  const channel = new SessionChannel();
  const models = new SelectedModel({
    models: parts.models,
    own: ownModels(request, parts),
    capabilities: request.model?.capabilities,
    emit: channel.emit,
  });
  return {
    ...parts,
    models,
    request,
    log,
    context,
    files: join(log.directory, "files"),
    records: join(log.directory, "records"),
    channel,
  };
}

function directoryAt(cwd: string): WorkingDirectory {
  try {
    return workingDirectory(cwd);
  } catch (cause) {
    throw new TroupeError("usage", `Cannot work in ${resolve(cwd)}: it does not exist or cannot be read.`, { cause });
  }
}
