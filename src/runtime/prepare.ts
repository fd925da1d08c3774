import { homedir } from "node:os";
import { join } from "node:path";
import { checkpointWriter } from "../context/compact-checkpoint.ts";
import type { Disk } from "../lib/node/disk.ts";
import { secretValuesOf } from "../lib/redact-values.ts";
import type { Stamp } from "../lib/stamp.ts";
import { noUsage } from "../model/provider.ts";
import { openGrants } from "../permissions/grants.ts";
import { locationKey } from "../permissions/location.ts";
import { Checkpoints } from "../session/checkpoints.ts";
import { commandCheckpoints } from "../session/command-checkpoints.ts";
import { Compactions } from "../session/compaction.ts";
import { compactionOptions } from "../session/compaction-options.ts";
import type { ScheduleRegistry } from "../session/schedules.ts";
import type { Session, SessionOptions } from "../session/session.ts";
import { standingOf } from "../session/standing.ts";
import type { SessionLog } from "../store/store.ts";
import { autopilotTools, interactiveTools } from "../tools/builtin.ts";
import { sessionDatabase } from "../tools/database/session-database.ts";
import type { McpServerConfig } from "../tools/mcp/server.ts";
import type { Shells } from "../tools/shell/shells.ts";
import type { Tool } from "../tools/tool.ts";
import { allowsLocalhost } from "../tools/web/web-access.ts";
import { agentPlaces } from "./agent-place.ts";
import { agentServers } from "./agent-servers.ts";
import { companyOptions } from "./company.ts";
import { LateSession } from "./late-session.ts";
import { LiveAgents } from "./live-agents.ts";
import type { Models } from "./models.ts";
import { checkRunner, modeParts } from "./modes.ts";
import { LiveOffer, offerWithServers } from "./offer.ts";
import { policyOf } from "./policy.ts";
import {
  availableTools,
  environmentNames,
  hasTask,
  largeOutputBytes,
  leadChoice,
  placeOf,
  priceUnknown,
  realFolder,
  realOrNothing,
  serverEntries,
  serverNames,
  withoutBypass,
} from "./prepare-parts.ts";
import { chooseLead, limitsOfLead } from "./preselect.ts";
import type { ProcessParts } from "./process-parts.ts";
import type { SessionRequest } from "./runtime.ts";
import { sandboxWishes } from "./sandbox-settings.ts";
import { sessionHookFactory } from "./session-hooks.ts";
import { type SessionMcp, sessionMcp } from "./session-mcp.ts";
import { sessionSchedules } from "./session-schedules.ts";
import { lazyShells } from "./shells.ts";
import { mainTools, requireKnown } from "./tool-choice.ts";
import { version } from "./version.ts";
import { openWorkspace } from "./workspace.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface PrepareParts {
  readonly environment: Environment;
  readonly home: string;
  readonly disk: Disk;
  readonly stamp: Stamp;
  readonly models: Models;
  readonly tools: readonly Tool[];
  /** What all sessions of the process share. */
  readonly shared: ProcessParts;
}

/** A session to be: `session` is known once it is there, and whatever must be told before then is kept. */
export interface Prepared {
  readonly options: SessionOptions;
  /** To be called once with the session. */
  started(session: Session): void;
}

/** Everything a session is given: the only place that turns a request and a folder into it. */
export async function prepareSession(
  request: SessionRequest,
  log: SessionLog,
  parts: PrepareParts & { lastModel: string | undefined },
): Promise<Prepared> {
  const { environment, home, disk, stamp, shared } = parts;
  const listener = new LateSession();
  const context = placeOf(request.cwd);
  const wanted = request.model ?? (environmentNames(environment) ? undefined : parts.lastModel);
  const [named, opened] = await Promise.all([
    wanted === undefined ? undefined : parts.models.resolve(wanted),
    openWorkspace(request.workspace ?? {}, { context, stateRoot: home, environment, onNotice: listener.notice }),
  ]);
  const { settings } = opened;
  const lead = await chooseLead({
    wanted: request.agent,
    events: log.events,
    workspace: opened,
    warn: (message) => listener.warn("agent", message),
  });
  const { workspace } = lead;
  const isChosen = request.model !== undefined || environmentNames(environment);
  const model =
    (isChosen ? undefined : await lead.model((name) => parts.models.resolve(name))) ??
    named ??
    (await parts.models.resolve(environmentNames(environment) ? undefined : settings.effective.model));
  const limits = limitsOfLead(lead.definition, request.limits);
  const effort = request.reasoningEffort ?? lead.reasoningEffort ?? settings.effective.effortLevel;
  if (limits?.costUsd !== undefined && model.costOf(noUsage) === null) throw priceUnknown(model.model);
  const files = join(log.directory, "files");
  const grants = openGrants({ disk, file: join(home, "permissions-config.json"), location: locationKey(context.cwd) });
  const granted = grants.allowedDirectories.flatMap((folder) => realOrNothing(folder));
  const asked = { ...request.permissions, allPaths: request.paths === "all" };
  const permissions = withoutBypass(asked, settings, listener);
  const added = request.paths === "all" ? [] : (request.paths ?? []).map(realFolder);
  const roots = permissions.allPaths ? [] : [context.cwd, ...added, ...granted, files];
  const rules = policyOf(
    permissions,
    {
      ...{ roots, stateRoot: home, writable: [files], workspace: [workspace.root, context.cwd, ...added] },
      servers: serverNames(workspace),
    },
    { rules: settings.rules, notice: listener.notice },
  );
  const { section, current, ...mode } = modeParts({ files, policy: rules, listener });
  const { policy } = mode;
  const secretNames = settings.effective.secretEnvironmentVariables ?? [];
  const redactor = shared.redactor(secretNames);
  // What commands are given from the folder is known too, so that it is found in what they print.
  for (const { value, name } of secretValuesOf(workspace.commandEnvironment, secretNames)) redactor.add(value, name);
  const turns = { current: "" };
  const checkpoints = new Checkpoints({ directory: log.directory, disk, stamp, turn: () => turns.current });
  const database = sessionDatabase({
    path: join(log.directory, "session.db"),
    disk,
    redact: (text) => redactor.text(text),
    onTodosChanged: () => void listener.say("session.todos_changed", {}),
  });
  const network = permissions.allUrls === true;
  const wishes = sandboxWishes(settings.effective.sandbox, { root: workspace.root, stateRoot: home });
  const newShells = (own: { gitMounts?: () => Promise<readonly string[]> } = {}): Shells =>
    lazyShells({
      ...own,
      sandbox: () => shared.sandboxes.get(network, wishes.sandbox),
      limits: wishes.limits,
      folder: files,
      stamp,
      disk,
      environment,
      additions: { values: workspace.commandEnvironment, names: settings.effective.environment?.names ?? [] },
      beforeRun: commandCheckpoints({ checkpoints, except: [home], home: homedir() }),
      onWarning: (message) => listener.warn("shell", message),
    });
  const shells = newShells();
  const company = request.delegation === false ? undefined : new LiveAgents(workspace, listener);
  const fixedTools = [...parts.tools, ...autopilotTools, ...(request.askUser === false ? [] : interactiveTools)];
  const tools = [...fixedTools, ...(company?.tools ?? [])];
  const openServers = (configs: readonly McpServerConfig[], reservedNames: readonly string[]): SessionMcp =>
    serversOf({ parts, configs, roots, reservedNames, listener });
  const configs = workspace.servers.servers;
  // None is started here.
  const mcp =
    configs.length === 0
      ? undefined
      : openServers(
          configs,
          tools.map(({ name }) => name),
        );
  const choice = {
    ...request.toolChoice,
    excluded: [...(request.toolChoice?.excluded ?? []), ...(settings.effective.excludedTools ?? [])],
    ...availableTools(request, settings.effective.availableTools),
  };
  const offer = new LiveOffer({
    prompt: {
      context,
      platform: process.platform,
      ...(request.systemMessage && { config: request.systemMessage }),
    },
    get tools() {
      return [...fixedTools, ...(company?.tools ?? [])];
    },
    choice,
    lead: lead.definition,
    skills: workspace.skills,
    instructions: workspace.instructions,
    mode: { section, current },
    mcp,
    search: mcp && (await shared.searchFor(settings.effective.toolSearch)),
  });
  listener.offer = offer;
  const schedules: { registry?: ScheduleRegistry } = {};
  // With servers the names of their tools are not known yet; then a slip of the finger is told, not refused.
  if (!mcp) requireKnown(offer.allTools, request.toolChoice);
  const hooks = await sessionHookFactory({
    definitions: workspace.hooks,
    stamp,
    environment,
    projectRoot: workspace.root,
    prepare: shared.programs([workspace.root], { wishes, onWarning: (message) => listener.warn("hook", message) }),
    warn: (message) => listener.warn("hook", message),
  });
  /** What all agents of the session share; files and shells each has its own. */
  const shareable = {
    web: { userAgent: `troupe/${version}`, allowLocalhost: allowsLocalhost(environment) },
    database,
    ...(mcp && { mcp: { servers: () => mcp.servers } }),
  };
  const places = agentPlaces({
    ...{ cwd: context.cwd, roots, policy, disk, checkpoints, newShells },
    gitRoot: context.gitRoot,
    sessionId: log.sessionId,
    sessionFolder: log.directory,
    shared: shareable,
  });
  const options: SessionOptions = {
    log,
    stamp,
    version,
    model,
    offer: mcp ? offerWithServers(offer, mcp) : offer,
    cwd: context.cwd,
    roots,
    ...mode,
    ...(request.mode && { mode: request.mode }),
    runCheck: checkRunner({ cwd: context.cwd, roots, newShells, end: () => listener.session?.end.signal }),
    surroundings: {
      filesFolder: files,
      skills: workspace.skills,
      servers: () => (mcp ? serverEntries(mcp) : []),
      agents: leadChoice({ offer, workspace, listener }),
      schedules: () => schedules.registry,
      readTodos: () => database.readTodos(),
      readDependencies: () => database.readDependencies(),
    },
    compactions: new Compactions({
      options: compactionOptions(environment),
      events: log.events,
      writeCheckpoint: checkpointWriter(log.directory, disk),
      standing: (key) => standingOf(key, { readTodos: () => database.readTodos(), tasks: listener.session?.tasks }),
    }),
    grants,
    redactor,
    ports: { ...shareable, files: places.filesOf(), shells },
    ...(hooks && { hooks }),
    ...(company && {
      company: companyOptions({
        environment,
        workspace,
        models: parts.models,
        mainModel: model,
        mainEffort: effort,
        prompt: { context, platform: process.platform },
        agents: () => company.agents,
        sessionTools: () => offer.sessionTools,
        mainTools: () => mainTools(offer.sessionTools, choice),
        ...(request.wakes === false &&
          request.model !== undefined && { modelOverride: ({ id }) => (hasTask(log, id) ? model : undefined) }),
        placeFor: (task) => places.placeFor(task),
        serversFor: agentServers({ workspace, open: openServers, warn: (message) => listener.warn("mcp", message) }),
        worktrees: context.gitRoot === undefined ? undefined : places.worktrees,
        warn: (message) => listener.warn("agent", message),
      }),
    }),
    ...(request.waitForAgentsMs !== undefined && { waitForAgentsMs: request.waitForAgentsMs }),
    ...(request.wakes !== undefined && { wakes: request.wakes }),
    onFileAccess: (path, toolName) => listener.fileAccess(workspace, path, toolName),
    // All changes that followed from one message can be undone together.
    onMessage: (messageId) => {
      turns.current = messageId;
      company?.watch();
    },
    onClose: async () => {
      schedules.registry?.dispose();
      await shells.closeAll();
      await company?.close();
      await mcp?.close();
      await database.close();
    },
    context,
    largeOutputBytes: largeOutputBytes(environment),
    ...(limits && { limits }),
    ...(request.name !== undefined && { name: request.name }),
    ...(request.streaming !== undefined && { streaming: request.streaming }),
    ...(effort !== undefined && { reasoningEffort: effort }),
  };
  for (const notice of workspace.notices) listener.notice(notice);
  return {
    options,
    started(session) {
      lead.announce(session);
      listener.listen(session);
      schedules.registry = sessionSchedules(session);
      shells.onFinished(() => listener.commandsEnded(shells));
    },
  };
}

function serversOf(what: {
  parts: PrepareParts;
  configs: readonly McpServerConfig[];
  roots: readonly string[];
  reservedNames: readonly string[];
  listener: LateSession;
}): SessionMcp {
  const { parts, configs, roots, reservedNames, listener } = what;
  return sessionMcp({
    configs,
    roots: roots.slice(0, 1),
    stamp: parts.stamp,
    reservedNames,
    connections: () => parts.shared.connections(),
    pins: () => parts.shared.pins((message) => listener.notice(message)),
    onStatus: (serverName, status, error) =>
      void listener.say("session.mcp_server_status_changed", {
        serverName,
        status,
        ...(error !== undefined && { error }),
      }),
    onNotice: (message) => listener.warn("mcp", message),
    onChange: listener.toolsChanged,
  });
}
