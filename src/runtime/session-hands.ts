import { homedir } from "node:os";
import { join } from "node:path";
import type { Redactor } from "../lib/redact.ts";
import { secretValuesOf } from "../lib/redact-values.ts";
import { Checkpoints } from "../session/checkpoints.ts";
import { commandCheckpoints } from "../session/command-checkpoints.ts";
import type { SessionLog } from "../store/store.ts";
import { providedDatabase } from "../tools/database/provided-database.ts";
import {
  type SessionDatabase,
  type SessionDatabaseOptions,
  sessionDatabase,
} from "../tools/database/session-database.ts";
import type { Shells } from "../tools/shell/shells.ts";
import type { ToolPorts } from "../tools/tool.ts";
import { allowsLocalhost } from "../tools/web/web-access.ts";
import { type AgentPlaces, agentPlaces, type PlaceParts } from "./agent-place.ts";
import type { Draft } from "./draft.ts";
import { type SandboxWishes, sandboxWishes } from "./sandbox-settings.ts";
import type { SessionBoard } from "./session-board.ts";
import type { SessionMcp } from "./session-mcp.ts";
import type { SessionRules } from "./session-rules.ts";
import { lazyShells } from "./shells.ts";
import { undoSeal } from "./undo-seal.ts";
import { version } from "./version.ts";
import type { Workspace } from "./workspace.ts";

/** What the tools of a session work with. */
export interface SessionHands {
  readonly redactor: Redactor;
  readonly checkpoints: Checkpoints;
  readonly database: SessionDatabase;
  /** Those of the main agent. */
  readonly shells: Shells;
  readonly newShells: PlaceParts["newShells"];
  readonly wishes: SandboxWishes;
  /** All changes that follow from one message can be undone together. */
  onMessage(messageId: string): void;
}

export function sessionHands(draft: Draft, how: { workspace: Workspace; rules: SessionRules }): SessionHands {
  const { log, disk, stamp, home, listener } = draft;
  const { workspace } = how;
  const wishes = sandboxWishes(workspace.settings.effective.sandbox, { root: workspace.root, stateRoot: home });
  const redactor = redactorOf(draft, workspace);
  let turn = "";
  const checkpoints = new Checkpoints({
    ...{ directory: log.directory, disk, stamp },
    turn: () => turn,
    seal: undoSeal({ home, disk }),
  });
  const database = databaseOf(log, {
    past: draft.past,
    disk,
    redact: (text) => redactor.text(text),
    onTodosChanged: () => void listener.say("session.todos_changed", {}),
  });
  const newShells = shellMaker(draft, { ...how, wishes, checkpoints, redactor });
  return {
    ...{ redactor, checkpoints, database, newShells, wishes },
    shells: newShells(),
    onMessage: (messageId) => {
      turn = messageId;
    },
  };
}

function databaseOf(
  { directory, elsewhere, sessionId }: SessionLog,
  options: Omit<SessionDatabaseOptions, "path">,
): SessionDatabase {
  const local = sessionDatabase({ ...options, path: join(directory, "session.db") });
  return elsewhere?.sqlite ? providedDatabase({ ...options, sessionId, sqlite: elsewhere.sqlite, local }) : local;
}

/** Where the main agent and those that work for it have their hands; web, servers and database are the same for all. */
export function sessionPlaces(
  draft: Draft,
  how: {
    hands: SessionHands;
    rules: SessionRules;
    mcp: SessionMcp | undefined;
    board: SessionBoard | undefined;
  },
): AgentPlaces & { readonly mainPorts: ToolPorts } {
  const { environment, log, context, disk } = draft;
  const { hands, rules, mcp, board } = how;
  const { database, checkpoints, newShells, shells } = hands;
  const shared = {
    web: { userAgent: `troupe/${version}`, allowLocalhost: allowsLocalhost(environment) },
    database,
    ...(mcp && { mcp: { servers: () => mcp.servers } }),
  };
  const places = agentPlaces({
    ...{ cwd: context.cwd, roots: rules.roots, policy: rules.mode.policy, disk, checkpoints, newShells, shared },
    gitRoot: context.gitRoot,
    sessionId: log.sessionId,
    sessionFolder: log.directory,
  });
  return {
    ...places,
    mainPorts: {
      ...{ ...shared, files: places.filesOf(), shells },
      ...(board && { board: board.mainPort }),
    },
  };
}

function redactorOf({ shared }: Draft, { settings, commandEnvironment }: Workspace): Redactor {
  const secretNames = settings.effective.secretEnvironmentVariables ?? [];
  const redactor = shared.redactor(secretNames);
  // What commands are given from the folder is known too, so that it is found in what they print.
  for (const { value, name } of secretValuesOf(commandEnvironment, secretNames)) redactor.add(value, name);
  return redactor;
}

function shellMaker(
  draft: Draft,
  how: {
    workspace: Workspace;
    rules: SessionRules;
    wishes: SandboxWishes;
    checkpoints: Checkpoints;
    redactor: Redactor;
  },
): SessionHands["newShells"] {
  const { shared, files, stamp, disk, environment, home, listener } = draft;
  const { workspace, rules, wishes, checkpoints, redactor } = how;
  const network = rules.permissions.allUrls === true;
  const names = workspace.settings.effective.environment?.names ?? [];
  return (own = {}) =>
    lazyShells({
      ...own,
      sandbox: () => shared.sandboxes.get(network, wishes.sandbox),
      limits: wishes.limits,
      folder: files,
      stamp,
      disk,
      environment,
      additions: { values: workspace.commandEnvironment, names },
      beforeRun: commandCheckpoints({ checkpoints, except: [home], home: homedir() }),
      newCleaner: () => redactor.stream(),
      onWarning: (message) => listener.warn("shell", message),
    });
}
