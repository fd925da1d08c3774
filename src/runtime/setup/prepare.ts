/**
 * Builds the options of a session. This folder turns a request and a folder into a session; each step of
 * `prepareSession` is a file here or in the sibling folder of its subject.
 */
import { summaryWriter, summaryWriterTo } from "../../context/compaction-summary.ts";
import { defined } from "../../lib/defined.ts";
import { sweepTemporaries } from "../../lib/node/temporaries.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import { Compactions } from "../../session/compaction/compaction.ts";
import { compactionOptions } from "../../session/compaction/compaction-options.ts";
import { workSnapshot } from "../../session/compaction/work-snapshot.ts";
import type { ScheduleRegistry } from "../../session/modes/schedules.ts";
import type { Session, SessionOptions } from "../../session/session.ts";
import { runAll } from "../../session/turn/run-all.ts";
import type { SessionLog } from "../../store/store.ts";
import { CurrentAgents } from "../agents/current-agents.ts";
import { lateFactories } from "../agents/late-factories.ts";
import { memoryOf } from "../knowledge/memory-gate.ts";
import { sessionServers } from "../mcp/session-servers.ts";
import { outputWriter } from "../permissions/large-output-folder.ts";
import type { SessionRequest } from "../session-request.ts";
import { fileCarrier } from "../sessions/client-file-carrier.ts";
import { skillRules } from "../skill-rules.ts";
import { version } from "../version.ts";
import { type MainAgent, resolveMainAgent } from "./main-agent.ts";
import { mainAgentChoice } from "./main-agent-choice.ts";
import { checkRunner, readPlan } from "./modes.ts";
import { promptAndToolsWhenReady } from "./prompt-and-tools.ts";
import { agentPoolOptionsOf } from "./session-agents.ts";
import { contextWatch } from "./session-context.ts";
import { sessionExtensions } from "./session-extensions.ts";
import { loadSessionHooks } from "./session-hooks.ts";
import { choiceOf, sessionPrompt, sessionTools } from "./session-prompt.ts";
import { type SessionRules, sessionRules } from "./session-rules.ts";
import { sessionSchedules } from "./session-schedules.ts";
import { sessionSearch } from "./session-search.ts";
import { sessionServices } from "./session-services.ts";
import { beginSetup, type PrepareParts, type SessionSetup } from "./session-setup.ts";
import { sessionSkills } from "./session-skills.ts";
import { SessionTracker } from "./session-tracker.ts";
import { sessionWorkspaces, type ToolBackends, toolBackends } from "./tool-backends.ts";

/** The options of a session that is not created yet. */
export interface PreparedSession {
  readonly options: SessionOptions;
  /** Must be called once with the created session. */
  started(session: Session): void;
}

/**
 * Turns a request and a folder into session options; the only function that does. It resolves the main agent, its
 * permission rules, tool backends, agents, tools and MCP servers. It also builds the prompt, connects listeners and
 * defines what closes with the session.
 */
export async function prepareSession(
  request: SessionRequest,
  log: SessionLog,
  parts: PrepareParts,
): Promise<PreparedSession> {
  const setup = beginSetup(request, log, parts);
  const built = await buildParts(setup);
  const late: LateParts = {};
  for (const notice of built.workspace.notices) setup.channel.notice(notice);
  const { warning } = built.backends.policy.containment ?? {};
  if (warning !== undefined && mayRunCommands(built.rules)) setup.channel.warn("shell", warning);
  return {
    options: optionsOf(setup, built, late),
    started: (session) => connect(session, { setup, built, late }),
  };
}

/** The parts that exist once the session does. */
interface LateParts {
  schedules?: ScheduleRegistry;
  tracker?: SessionTracker;
}

type BuiltParts = Awaited<ReturnType<typeof buildParts>>;

/** Builds the parts of the session, in the order of their dependencies. */
async function buildParts(setup: SessionSetup) {
  const { request, log } = setup;
  const mainAgent = await resolveMainAgent(setup);
  const { workspace } = mainAgent;
  const rules = sessionRules(setup, workspace);
  const backends = toolBackends(setup, { workspace, rules });
  await sweepLeftovers(setup, backends);
  const isWithoutAgents = request.agents?.delegation === false;
  const agents = isWithoutAgents ? undefined : new CurrentAgents(workspace, setup.channel, log.events);
  const board = await boardOf(setup, mainAgent, backends);
  const memory = await memoryOf(setup, { mainAgent, redactor: backends.redactor });
  const search = sessionSearch(setup, workspace);
  const tools = sessionTools(setup, { workspace, agents, board, memory, search });
  const servers = sessionServers(setup, {
    workspace,
    // A session that only consolidates the board needs no servers.
    configs: request.agents?.detachedFrom === undefined ? workspace.servers.servers : [],
    roots: rules.roots,
    reservedNames: tools().map(({ name }) => name),
  });
  const { mcp } = servers;
  const choice = choiceOf(setup, mainAgent, board);
  const skills = sessionSkills(setup, workspace);
  const promptAndTools = await sessionPrompt(setup, { mainAgent, rules, tools, choice, mcp, memory, board, skills });
  const hooks = await loadSessionHooks(setup, { workspace, requested: backends.requested });
  const agentWorkspaces = sessionWorkspaces(setup, { backends, rules, mcp, board, search });
  const { redactor } = backends;
  const ofAgents = { mainAgent, promptAndTools, choice, agentWorkspaces, servers, board, memory, rules, redactor };
  const agentPool = agents && agentPoolOptionsOf(setup, { agents, ...ofAgents });
  const agentChoice = mainAgentChoice(setup, { workspace, promptAndTools, agents, servers });
  const extensions = sessionExtensions(setup, { workspace, requested: backends.requested });
  const factories = lateFactories(setup, workspace);
  const context = contextWatch(setup);
  const carrier = await fileCarrier(log, setup.disk);
  return {
    mainAgent,
    workspace,
    rules,
    backends,
    agents,
    board,
    memory,
    search,
    mcp,
    skills,
    promptAndTools,
    hooks,
    agentWorkspaces,
    agentPool,
    agentChoice,
    extensions,
    factories,
    context,
    carrier,
  };
}

function optionsOf(setup: SessionSetup, built: BuiltParts, late: LateParts): SessionOptions {
  const { request, models, channel } = setup;
  const { mainAgent, workspace, rules, backends, mcp, memory, board, search, extensions } = built;
  return {
    ...optionsOfRequest(setup),
    ...permissionOptions(setup, { rules, backends }),
    ...storageOptions(setup, backends),
    ...callbackOptions(setup, built, late),
    storeOutput: outputWriter(setup, rules.roots),
    get limits() {
      return mainAgent.limits();
    },
    credits: mainAgent.credits,
    modelSelection: models,
    get model() {
      return models.current;
    },
    get reasoningEffort() {
      return models.reasoningEffort;
    },
    get reasoningSummary() {
      return models.reasoningSummary;
    },
    promptAndTools: promptAndToolsWhenReady(built.promptAndTools, {
      mcp,
      memory,
      joining: extensions && request.client?.program?.ready,
    }),
    ports: built.agentWorkspaces.mainPorts,
    searchModel: search.model,
    commandRules: async (stored) => (await import("../submit.ts")).rulesFrom(await channel.opened, stored),
    ...defined({
      hooks: built.hooks,
      agentPool: built.agentPool,
      replaceOutcome: board?.consolidating?.replaceOutcome,
    }),
    services: sessionServices(setup, {
      ...built,
      database: backends.database,
      schedules: () => late.schedules,
      tracker: () => late.tracker,
    }),
    ...(request.context?.nestedInstructions !== false && {
      onFileAccess: (path: string, toolName: string) => channel.fileAccess(workspace, path, toolName),
    }),
    sandboxStatus: backends.sandboxStatus,
    fileHistory: { checkpoints: backends.checkpoints, disk: setup.disk },
  };
}

/** Returns the functions that the session calls when something happens to it. */
function callbackOptions({ tracing }: SessionSetup, built: BuiltParts, late: LateParts) {
  const { backends, agents, factories, memory, context } = built;
  return {
    onRewound: (events: readonly SessionEvent[]) => {
      late.schedules?.rewound(events);
      factories?.rewound(events);
    },
    onMessage: (messageId: string) => {
      backends.onMessage(messageId);
      agents?.watch();
      context.look();
    },
    beforeShutdown: () => runAll([() => factories?.close(), () => memory?.close()]),
    releaseResources: () => end({ ...built, ...late }).finally(() => tracing?.ended()),
  };
}

/** Connects the parts to the open session. */
function connect(
  session: Session,
  { setup, built, late }: { readonly setup: SessionSetup; readonly built: BuiltParts; readonly late: LateParts },
): void {
  const { channel, tracing } = setup;
  const { mainAgent, memory, search, skills, rules, carrier, backends } = built;
  mainAgent.selection.announce(session);
  channel.connect(session);
  tracing?.started(session);
  if (memory) session.subscribe((event) => memory.onEvent(event));
  session.subscribe((event) => search.onEvent(event));
  session.subscribe(skillRules({ skills, rules: rules.current, notice: channel.notice }));
  late.schedules = sessionSchedules(session);
  // Sessions stored by clients are not in the local index.
  if (!setup.log.clientFiles) late.tracker = new SessionTracker(session, setup);
  carrier?.listen(session);
  backends.shells.onFinished(() => channel.commandsEnded(backends.shells));
}

/** Removes temporary files that killed processes left in the session's folders and beside the files it changed last. */
async function sweepLeftovers({ context, log, disk }: SessionSetup, { checkpoints }: ToolBackends): Promise<void> {
  await sweepTemporaries(context.cwd, disk);
  if (log.events.length > 0 && !log.heldBy) await checkpoints.sweep();
}

/** Returns whether commands may run without approval. */
function mayRunCommands({ current: { policy } }: SessionRules): boolean {
  return (
    policy.allowances.allTools ||
    policy.rules.some(({ effect, target }) => effect === "allow" && target.kind === "shell")
  );
}

/** Returns undefined if the board is off; then its code is not loaded. */
async function boardOf(setup: SessionSetup, mainAgent: MainAgent, { redactor }: ToolBackends) {
  if (!mainAgent.workspace.flags.has("COPILOT_SUBCONSCIOUS")) return undefined;
  return (await import("../knowledge/session-board.ts")).sessionBoard(setup, { mainAgent, redactor });
}

/** Returns the options that the request decides alone. */
function optionsOfRequest({ request, log, stamp, context, tracing }: SessionSetup) {
  const { name, mode, model, agents, resume } = request;
  return {
    version,
    log,
    stamp,
    context,
    cwd: context.cwd,
    name,
    mode,
    tracing: tracing?.port,
    effectGuard: request.effects,
    resumed: resume?.event,
    continuesPending: resume?.continuesPending,
    isOwnFolder: resume?.isOwnFolder,
    detachedFrom: agents?.detachedFrom,
    wakes: agents?.wakes,
    waitForAgentsMs: agents?.waitMs,
    streaming: model?.streaming,
    replies: model?.replies,
    citations: model?.citations,
    datesPrompts: request.context?.datesPrompts,
  };
}

function permissionOptions(
  { context, channel }: SessionSetup,
  { rules, backends }: { rules: SessionRules; backends: ToolBackends },
) {
  const { roots, grants } = rules;
  const { reasonToRefuse, plan, onMode } = rules.mode;
  const { newShells, policy } = backends;
  return {
    roots,
    grants,
    policy,
    reasonToRefuse,
    plan,
    onMode,
    runCheck: checkRunner({ cwd: context.cwd, roots, newShells, end: () => channel.session?.queue.closed }),
  };
}

/** Returns how history is stored: redacted, limited, and compacted when it grows too long. */
function storageOptions(setup: SessionSetup, { redactor, database }: ToolBackends) {
  const { request, log, disk, environment, channel } = setup;
  const readTodos = () => database.readTodos();
  return {
    redactor,
    largeOutputBytes: request.tools?.outputBytes ?? largeOutputBytes(environment),
    compactions: new Compactions({
      options: compactionOptions(environment, request.context?.compaction),
      events: [...log.removed, ...log.events],
      writeSummary: log.clientFiles ? summaryWriterTo(log.clientFiles) : summaryWriter(log.directory, disk),
      carriedState: (key) => {
        const { agents, events = [] } = channel.session ?? {};
        return workSnapshot(key, { readTodos, readPlan: () => readPlan(setup.files), tasks: agents?.tasks, events });
      },
    }),
  };
}

function largeOutputBytes(environment: SessionSetup["environment"]): number {
  const given = Number(environment.TROUPE_LARGE_OUTPUT_BYTES ?? environment.COPILOT_LARGE_OUTPUT_THRESHOLD_BYTES);
  return Number.isInteger(given) && given >= 1_024 ? given : 20_480;
}

/** Closes all parts of a session, even if some of them fail. */
async function end(
  parts: LateParts & Pick<BuiltParts, "backends" | "agentChoice" | "agents" | "mcp" | "board" | "carrier">,
) {
  const { schedules, tracker, backends, agentChoice, agents, mcp, board, carrier } = parts;
  schedules?.dispose();
  await runAll([
    () => backends.shells.closeAll(),
    () => agents?.close(),
    () => agentChoice.close(),
    () => mcp?.close(),
    () => board?.close(),
    () => backends.database.close(),
    () => tracker?.close(),
    () => carrier?.carry(),
  ]);
}
