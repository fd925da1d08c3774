import { homedir } from "node:os";
import { join } from "node:path";
import { Checkpoints } from "../../checkpoints/checkpoints.ts";
import { commandCheckpoints } from "../../checkpoints/command-checkpoints.ts";
import { defined } from "../../lib/defined.ts";
import { isInside } from "../../lib/node/paths.ts";
import type { Redactor } from "../../lib/redact/redact.ts";
import { secretValuesOf } from "../../lib/redact/redact-values.ts";
import { type Policy, policyWith } from "../../permissions/policy.ts";
import type { SandboxStatus } from "../../permissions/request.ts";
import type { SessionLog } from "../../store/store.ts";
import type { StoreScope } from "../../tools/database/messages.ts";
import { providedDatabase } from "../../tools/database/provided-database.ts";
import {
  type SessionDatabase,
  type SessionDatabaseOptions,
  sessionDatabase,
} from "../../tools/database/session-database.ts";
import type { Shells } from "../../tools/shell/shells.ts";
import type { ToolPorts } from "../../tools/tool.ts";
import { allowsLocalhost } from "../../tools/web/web-access.ts";
import { type AgentWorkspaces, agentWorkspaces, type WorkspaceParts } from "../agents/agent-workspace.ts";
import type { SessionBoard } from "../knowledge/session-board.ts";
import type { SessionMcp } from "../mcp/session-mcp.ts";
import { ShellContainment } from "../permissions/containment.ts";
import { type RequestedSandbox, requestedSandbox } from "../permissions/sandbox-settings.ts";
import { lazyShells, sandboxMode } from "../permissions/shells.ts";
import { undoSeal } from "../undo-seal.ts";
import { version } from "../version.ts";
import type { Workspace } from "../workspace/workspace.ts";
import type { SessionRules } from "./session-rules.ts";
import type { SessionSearch } from "./session-search.ts";
import type { SessionSetup } from "./session-setup.ts";

/** The backends of a session's tools. */
export interface ToolBackends {
  readonly redactor: Redactor;
  readonly checkpoints: Checkpoints;
  readonly database: SessionDatabase;
  /** The main agent's shells. */
  readonly shells: Shells;
  readonly newShells: WorkspaceParts["newShells"];
  /** Enforces the policy's denials for shell commands. */
  contain(policy: Policy, cwd: string): ShellContainment;
  /** The policy of the main agent, and of agents in the same folder. */
  readonly policy: Policy;
  readonly requested: RequestedSandbox;
  sandboxStatus(): Promise<SandboxStatus>;
  /** Groups the changes that follow from one message, so that they can be undone together. */
  onMessage(messageId: string): void;
}

export function toolBackends(setup: SessionSetup, parts: { workspace: Workspace; rules: SessionRules }): ToolBackends {
  const { log, disk, stamp, stateRoot, channel } = setup;
  const { workspace } = parts;
  const requested = requestedSandbox(workspace.settings.effective.sandbox, { root: workspace.root, stateRoot });
  const redactor = redactorOf(setup, workspace);
  let messageId = "";
  const checkpoints = new Checkpoints({
    directory: log.directory,
    disk,
    stamp,
    messageId: () => messageId,
    seal: undoSeal({ stateRoot, disk }),
  });
  const database = databaseOf(log, {
    ...(setup.request.context?.sessionStore !== false && { past: { ...setup.past, ...storeScope(setup, workspace) } }),
    disk,
    redact: (text) => redactor.text(text),
    onTodosChanged: () => void channel.emit("session.todos_changed", {}),
  });
  const contain = container(setup, { ...parts, requested });
  const containment = contain(parts.rules.mode.policy, setup.context.cwd);
  const newShells = shellMaker(setup, { ...parts, requested, checkpoints, redactor, containment });
  return {
    redactor,
    checkpoints,
    database,
    newShells,
    requested,
    contain,
    policy: policyWith(parts.rules.mode.policy, { containment }),
    sandboxStatus: () => setup.shared.sandboxes.status(parts.rules.permissions.allUrls === true, requested.sandbox),
    shells: newShells(),
    onMessage: (id) => {
      messageId = id;
    },
  };
}

/** Limits agents to past sessions of their own repository, unless the user's settings allow all. */
function storeScope({ context }: SessionSetup, { settings }: Workspace): { scope?: StoreScope } {
  if (settings.effective.sessionStore === "all") return {};
  const { cwd, gitRoot } = context;
  return { scope: { cwd, ...defined({ gitRoot }) } };
}

function databaseOf(
  { directory, clientFiles, sessionId }: SessionLog,
  options: Omit<SessionDatabaseOptions, "path">,
): SessionDatabase {
  const local = sessionDatabase({ ...options, path: join(directory, "session.db") });
  return clientFiles?.sqlite ? providedDatabase({ ...options, sessionId, sqlite: clientFiles.sqlite, local }) : local;
}

/** Returns the tool ports of the main agent and its subagents. They share web, servers and database. */
export function sessionWorkspaces(
  setup: SessionSetup,
  parts: {
    backends: ToolBackends;
    rules: SessionRules;
    mcp: SessionMcp | undefined;
    board: SessionBoard | undefined;
    search: SessionSearch;
  },
): AgentWorkspaces & { readonly mainPorts: ToolPorts } {
  const { environment, log, context, disk, request } = setup;
  const { backends, rules, mcp, board, search } = parts;
  const { database, checkpoints, newShells, shells } = backends;
  const shared = {
    web: { userAgent: `troupe/${version}`, allowLocalhost: allowsLocalhost(environment) },
    database,
    ...defined({ webSearch: search.port }),
    ...(request.client?.program?.buffers && { buffers: request.client?.program.buffers }),
    ...(mcp && { mcp: { servers: () => mcp.servers } }),
  };
  const workspaces = agentWorkspaces({
    cwd: context.cwd,
    roots: rules.roots,
    policy: backends.policy,
    disk,
    checkpoints,
    newShells,
    shared,
    contain: (policy, cwd) => backends.contain(policy, cwd),
    gitRoot: context.gitRoot,
    sessionId: log.sessionId,
    sessionFolder: log.directory,
  });
  return {
    ...workspaces,
    mainPorts: {
      ...shared,
      files: workspaces.filesOf(),
      shells,
      ...defined({ board: board?.mainPort }),
    },
  };
}

function redactorOf({ shared }: SessionSetup, { settings, commandEnvironment }: Workspace): Redactor {
  const secretNames = settings.effective.secretEnvironmentVariables ?? [];
  const redactor = shared.redactor(secretNames);
  // Secrets from the folder's environment files are redacted in command output too.
  for (const { value, name } of secretValuesOf(commandEnvironment, secretNames)) redactor.add(value, name);
  return redactor;
}

/** Folders of the state root: session logs and records, server tokens, sandbox state. */
const STATE_FOLDERS = ["session-state", "server", "sandbox"];

function container(
  { shared, environment }: SessionSetup,
  { rules, requested }: { rules: SessionRules; requested: RequestedSandbox },
): ToolBackends["contain"] {
  const network = rules.permissions.allUrls === true;
  const { allowedHosts = [] } = requested.sandbox;
  return (policy, cwd) =>
    new ShellContainment({
      policy,
      cwd,
      mode: sandboxMode(environment) ?? requested.sandbox.mode ?? "auto",
      network: network || allowedHosts.length > 0,
      sandbox: () => shared.sandboxes.get(network, requested.sandbox),
    });
}

function shellMaker(
  setup: SessionSetup,
  parts: {
    workspace: Workspace;
    rules: SessionRules;
    requested: RequestedSandbox;
    checkpoints: Checkpoints;
    redactor: Redactor;
    containment: ShellContainment;
  },
): ToolBackends["newShells"] {
  const { log, files, records, stamp, disk, environment, stateRoot, channel } = setup;
  const { workspace, rules, requested, checkpoints, redactor } = parts;
  const names = workspace.settings.effective.environment?.names ?? [];
  const state = STATE_FOLDERS.map((name) => join(stateRoot, name));
  const writable = [files, join(log.directory, "worktrees")];
  const storeBefore = commandCheckpoints({ checkpoints, except: [stateRoot], home: homedir() });
  return ({ containment = parts.containment, ...own } = {}) =>
    lazyShells({
      ...own,
      async sandbox() {
        await disk.mkdir(files); // a sandbox mounts only folders that exist
        return containment.sandbox();
      },
      limits: requested.limits,
      folder: records,
      isState: (path) => isInside(path, state) && !isInside(path, writable),
      stamp,
      disk,
      environment,
      additions: { values: workspace.commandEnvironment, names },
      async beforeRun(command) {
        const stored = await storeBefore(command);
        if (stored !== undefined) await setup.request.effects?.beforeDestructiveCommand?.();
        return stored;
      },
      isReadOnly: (call) => containment.isReadOnly(call),
      isPlanning: () => rules.mode.current() === "plan",
      assertMayStart: () => setup.request.effects?.assertValid(),
      newCleaner: () => redactor.stream(),
      onWarning: (message) => channel.warn("shell", message),
    });
}
