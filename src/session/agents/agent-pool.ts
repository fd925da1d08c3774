/**
 * The agents of a session beside the main agent.
 *
 * This folder sets up and runs subagents, coordinated workers, sidekicks and typed output. The registry (`src/tasks`)
 * stores who they are and how they ended. An agent is a run of the same loop in the same log. Its permissions are a
 * subset of its parent's. So are its tools, apart from those of MCP servers that its own definition declares, and those
 * that a client hid from the main agent only.
 */

import type { AgentDefinition } from "../../agents/agent.ts";
import { findAgent } from "../../agents/names.ts";
import type { Hooks } from "../../hooks/fire.ts";
import type { LimitReached } from "../../loop/run.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { Emit, SessionEvent } from "../../protocol/event.ts";
import type { AnswerEnd, AnswerPorts } from "../../tasks/ports.ts";
import { Registry } from "../../tasks/registry.ts";
import type { TaskMessage, TaskRecord } from "../../tasks/task-record.ts";
import { isFinal } from "../../tasks/task-state.ts";
import type { Tool, ToolPorts } from "../../tools/tool.ts";
import { AgentUsage, sharesOf } from "../budget/agent-usage.ts";
import type { Budget, Limits } from "../budget/budget.ts";
import type { Expected } from "../budget/reservations.ts";
import { Conversation } from "../conversation.ts";
import type { EventLog } from "../event-log.ts";
import { within } from "../executor.ts";
import { closeOpen } from "../recover.ts";
import type { Broker } from "../requests/broker.ts";
import { type AgentCallbackTask, CallbackTasks } from "../requests/callback-tasks.ts";
import type { RunSettings } from "../run-settings.ts";
import type { SessionOptions } from "../session-options.ts";
import { transcriptOf } from "../transcript.ts";
import { bindSessionHooks } from "../turn/hooked-calls.ts";
import type { SystemNotice } from "../turn/pending-messages.ts";
import { type AgentFacts, AgentLifecycle } from "./agent-lifecycle.ts";
import type { AgentPoolOptions } from "./agent-pool-options.ts";
import { type AgentSetup, type OutputCheck, type RemoteAgent, runAgentAnswer } from "./agent-run.ts";
import { agentTasks } from "./agent-tasks.ts";
import { coordinationOf } from "./coordination.ts";
import { mcpTasksOf } from "./mcp-tasks.ts";
import { isSidekickId } from "./sidekick-id.ts";
import { type SidekickOptions, Sidekicks } from "./sidekicks.ts";

interface AgentPoolParts {
  readonly options: AgentPoolOptions;
  readonly settings: RunSettings;
  readonly log: EventLog;
  readonly budget: Budget;
  readonly broker: Broker;
  readonly hooks: Hooks | undefined;
  /** Called with a notice for the main agent. */
  onNotice(notice: SystemNotice, agentTask: { take(): boolean; wakes: boolean }): void;
  /** Called when a task changes. */
  onChange(): void;
  onDefect(error: unknown): void;
}

/** The ports through which an agent's tools reach other agents. */
export type AgentPorts = Pick<ToolPorts, "tasks" | "coordination" | "mcpTasks" | "inbox">;

export class AgentPool {
  readonly registry: Registry;
  readonly #sidekicks: Sidekicks | undefined;
  readonly #parts: AgentPoolParts;
  readonly #conversations = new Map<string, Conversation>();
  readonly #agentSetups = new Map<string, Promise<AgentSetup>>();
  readonly #callbackTasks = new CallbackTasks();
  readonly #ledger = new AgentUsage();
  readonly #lifecycle: AgentLifecycle;

  constructor(parts: AgentPoolParts) {
    this.#parts = parts;
    const { log, settings, options } = parts;
    this.#lifecycle = new AgentLifecycle({
      emitOf: (id) => this.#retryingEmitOf(id),
      factsOf: (task) => this.#factsOf(task),
      usageOf: ({ id }) => this.registry.usage(id),
    });
    for (const event of log.events) this.fold(event);
    this.registry = new Registry({
      events: log.events,
      emit: (type, data) => log.emit(undefined, type, data),
      repair: () => log.repair(),
      discard: (matches) => log.discard(matches),
      stamp: settings.stamp,
      limits: options.limits,
      runner: {
        answer: (task, messages, io) => this.#answer(task, messages, io),
        release: (task) => this.#release(task.id),
        continuesDetached: ({ spec }) => spec.placement === "elsewhere" && options.remoteAgents !== undefined,
      },
      storeLarge: (content) => settings.log.writeFile("agent-answer.txt", settings.redactor?.text(content) ?? content),
      readLarge: async (file) => (await settings.log.readFile(file)) ?? "(the file with this answer is gone)",
      onNotice: (parentId, notice) => {
        const { content, kind, wakes } = notice;
        // An agent reads its own notices before its next model call.
        if (parentId === undefined) parts.onNotice({ content, kind }, { take: () => notice.take(), wakes });
      },
      onState: (task) => {
        this.#lifecycle.onState(task);
        if (isFinal(task.status)) this.#callbackTasks.removeEnded(task);
      },
      onChange: () => parts.onChange(),
      onDefect: parts.onDefect,
    });
    log.subscribe((event) => {
      if (!event.ephemeral) this.registry.observe(event);
    });
    this.#sidekicks = options.sidekicks && this.#newSidekicks(options.sidekicks);
  }

  #newSidekicks(options: SidekickOptions): Sidekicks {
    const { settings, log, budget, hooks, onNotice } = this.#parts;
    return new Sidekicks({
      options,
      settings,
      log,
      budget,
      hooks,
      onNotice: (notice, take) => onNotice(notice, { take, wakes: false }),
    });
  }

  /** Adds an agent's event to its conversation. */
  fold(event: SessionEvent): void {
    if (event.agentId === undefined) return;
    if (isSidekickId(event.agentId)) {
      this.#sidekicks?.fold(event);
      return;
    }
    if (event.type === "troupe.usage") this.#ledger.apply(event.agentId, event.data);
    if (event.type === "troupe.task_returned") this.#ledger.apply(event.agentId, event.data.usage);
    this.#lifecycle.apply(event.agentId, event);
    this.#conversationOf(event.agentId).apply(event);
  }

  /** Clears all conversations before the log is folded again. */
  reset(): void {
    this.#ledger.reset();
    this.#lifecycle.clear();
    for (const conversation of this.#conversations.values()) conversation.reset();
    this.#sidekicks?.reset();
  }

  /** Ends what an earlier process left open. Nothing starts. */
  async restore(): Promise<void> {
    await this.#closeOpenCalls();
    await this.registry.restore();
    await this.#endLifecycles();
    await this.#sidekicks?.restore();
  }

  /** Stops the sidekicks and waits briefly for them. Tasks continue. */
  async stopSidekicks(): Promise<void> {
    await this.#sidekicks?.stopRunning();
  }

  /** Restores the agents after a rewind, once the log has been folded again. */
  async rewound(events: readonly SessionEvent[]): Promise<void> {
    await this.#closeOpenCalls();
    await this.registry.rewound(events);
    await this.#endLifecycles();
    for (const id of this.#agentSetups.keys()) if (!this.registry.has(id)) await this.#release(id);
    await this.#sidekicks?.rewound(events);
  }

  /** Returns the ports of an agent (undefined: the main agent) that has these tools. */
  portsOf(agentId: string | undefined, tools: () => readonly Tool[], named: readonly string[] = []): AgentPorts {
    const { options, settings } = this.#parts;
    const callbackTasks = this.#callbackTasks;
    const shared = { agentId, registry: this.registry, callbackTasks, options };
    const emitOf = (id: string): Emit => this.#emitOf(id);
    return {
      tasks: agentTasks({ ...shared, named }),
      coordination: coordinationOf({ ...shared, tools, ledger: this.#ledger, emitOf, stamp: settings.stamp }),
      ...(options.mcpTasks !== false && { mcpTasks: mcpTasksOf(shared) }),
      // Only the main agent reads the sidekicks' findings.
      ...(agentId === undefined && this.#sidekicks && { inbox: this.#sidekicks.inbox }),
    };
  }

  /** Whether any task is running, queued or waking up. */
  get isBusy(): boolean {
    return this.registry.isBusy;
  }

  async close(): Promise<void> {
    await this.#sidekicks?.close();
    await this.registry.close();
    await this.#parts.log.repair().catch(() => undefined); // the next process restores the same state
    for (const [id, conversation] of this.#conversations)
      await closeOpen(conversation, this.#emitOf(id)).catch(() => undefined);
    await this.#endLifecycles();
    await Promise.all([...this.#agentSetups.keys()].map((id) => this.#release(id)));
  }

  async #closeOpenCalls(): Promise<void> {
    for (const [id, conversation] of this.#conversations) await closeOpen(conversation, this.#emitOf(id));
  }

  /** Emits the end events of agents that wait for messages: none can arrive until the session is opened again. */
  async #endLifecycles(): Promise<void> {
    await this.#lifecycle.endAll((id) => this.registry.get(id));
  }

  #factsOf({ spec }: Pick<TaskRecord, "spec">): AgentFacts {
    const { kind, agentName, description } = spec;
    const callbackTask = this.#callbackTasks.of({ spec });
    const definition = callbackTask
      ? callbackTask.definition
      : kind === "agent" && findAgent(agentName, this.#parts.options.agents());
    return definition ? { description: definition.description, tools: definition.tools } : { description };
  }

  async #answer(task: TaskRecord, messages: readonly TaskMessage[], io: AnswerPorts): Promise<AnswerEnd> {
    await this.#lifecycle.begin(task);
    const callbackTask = this.#callbackTasks.of(task);
    const work = callbackTask
      ? callbackTask.run(task, io, (how) => this.#runAsAgent(task, { messages, io, callbackTask: how }))
      : this.#runAsAgent(task, { messages, io });
    const end = await work.catch((error: unknown): AnswerEnd => failedEnd(error, io.signal));
    // An answer that failed midway may have left calls without a result.
    await closeOpen(this.#conversationOf(task.id), this.#retryingEmitOf(task.id));
    this.#parts.budget.release(task.id);
    return end;
  }

  async #runAsAgent(task: TaskRecord, work: AnswerWork): Promise<AnswerEnd> {
    const { settings, broker, hooks, budget } = this.#parts;
    const { messages, io, callbackTask } = work;
    const emit = this.#emitOf(task.id);
    const conversation = this.#conversationOf(task.id);
    const isRemote = task.spec.placement === "elsewhere";
    const agentSetup = isRemote ? undefined : await this.#agentSetup(task, callbackTask);
    await closeOpen(conversation, emit);
    const { sessionId: session } = settings.log;
    const scope = { session, sessionId: `${session}/${task.id}`, cwd: agentSetup?.cwd ?? settings.cwd };
    const end = await runAgentAnswer({
      task,
      agentDescription: this.#factsOf(task).description,
      messages,
      agentSetup: agentSetup
        ? {
            ...agentSetup,
            ports: { ...agentSetup.ports, ...this.portsOf(task.id, () => agentSetup.promptAndTools.tools) },
          }
        : await this.#remoteAgent(task, conversation),
      settings,
      conversation,
      emit,
      broker,
      hooks: hooks && bindSessionHooks(hooks, scope, emit),
      signal: io.signal,
      transcriptPath: transcriptOf(settings.log),
      check: await checkOf(task),
      takeMessages: () => this.registry.takeMessages(task.id),
      takeNotices: (say) => this.#emitNotices(task.id, say),
      limitReached: (expected) => callbackTask?.limitReached() ?? this.#reserve(task, expected),
      usageCounted: () => budget.release(task.id),
      activity: io.activity,
    });
    return agentSetup?.replaceEnd?.(end) ?? end;
  }

  async #remoteAgent({ id }: TaskRecord, conversation: Conversation): Promise<RemoteAgent> {
    const { options, budget, settings } = this.#parts;
    const { remoteAgents: port } = options;
    const task = (): TaskRecord => this.registry.get(id) as TaskRecord;
    if (!port) throw new Error("The agent runs as a session of its own, and only workers of its database reach it.");
    const definition = this.#definitionOf(task());
    const shares = () => sharesOf(task(), { registry: this.registry, ledger: this.#ledger });
    const { runRemotely } = await import("./remote-agent.ts");
    const answer = {
      ...{ task, definition, port, conversation, emit: this.#retryingEmitOf(id) },
      reserve: (known: Limits | undefined) =>
        budget.allot(id, { limits: settings.limits ?? {}, shares: shares() }, known),
      usageCounted: () => budget.release(id),
      remainingAgents: () => this.registry.remainingAgents,
    };
    return { run: (ports) => runRemotely(answer, ports) };
  }

  #definitionOf({ spec: { agentName } }: TaskRecord): AgentDefinition {
    const definition = findAgent(agentName, this.#parts.options.agents());
    if (!definition) throw new Error(`There is no agent "${agentName}" any more.`);
    return definition;
  }

  async #emitNotices(agentId: string, say: Emit): Promise<void> {
    for (const notice of this.registry.notices(agentId)) {
      const { content, kind } = notice;
      if (notice.take()) await say("system.notification", { content, kind });
    }
  }

  #reserve(task: TaskRecord, expected: Expected): LimitReached | undefined {
    const { budget, settings } = this.#parts;
    const shares = sharesOf(task, { registry: this.registry, ledger: this.#ledger });
    return budget.reserve(task.id, { limits: settings.limits ?? {}, shares }, expected);
  }

  #agentSetup(task: TaskRecord, callbackTask?: AgentCallbackTask): Promise<AgentSetup> {
    const known = this.#agentSetups.get(task.id);
    if (known) return known;
    const made = callbackTask?.agentSetup() ?? this.#setupOfAgent(task);
    this.#agentSetups.set(task.id, made);
    return made;
  }

  async #setupOfAgent(task: TaskRecord): Promise<AgentSetup> {
    const { options } = this.#parts;
    const { kind, factoryRunId } = task.spec;
    const endedWithProcess = options.sessionBased === false && factoryRunId === undefined;
    if (kind !== "agent" || endedWithProcess)
      throw new Error("The agent ended with its process and cannot be continued.");
    return within(task, await options.agentSetup(task, this.#definitionOf(task)));
  }

  async #release(id: string): Promise<void> {
    const agentSetup = this.#agentSetups.get(id);
    this.#agentSetups.delete(id);
    await (await agentSetup?.catch(() => undefined))?.release();
  }

  #emitOf(agentId: string): Emit {
    return (type, data) => this.#parts.log.emit(agentId, type, data);
  }

  /** Like `#emitOf`, but waits while the log cannot be written, because every start needs an end. */
  #retryingEmitOf(agentId: string): Emit {
    const emit = this.#emitOf(agentId);
    return (type, data) => {
      const emitted = emit(type, data).catch((error: unknown) => {
        if (!(error instanceof TroupeError && error.kind === "storage")) throw error;
        return this.registry.writable();
      });
      emitted.catch(() => undefined); // some callers do not await it
      return emitted;
    };
  }

  #conversationOf(agentId: string): Conversation {
    const known = this.#conversations.get(agentId);
    if (known) return known;
    const made = new Conversation();
    this.#conversations.set(agentId, made);
    return made;
  }
}

/** Creates the agents of a session. Their notices wake its main agent, unless `wakes` is false. */
export function newAgentPool(
  options: AgentPoolOptions,
  session: Omit<AgentPoolParts, "options" | "settings" | "onNotice" | "onDefect"> & {
    readonly settings: SessionOptions;
    notify(notice: SystemNotice, delivery: { take(): boolean; wakes: boolean }): void;
  },
): AgentPool {
  const { settings, notify, ...rest } = session;
  return new AgentPool({
    options,
    settings,
    ...rest,
    onNotice: (notice, { take, wakes }) => notify(notice, { take, wakes: wakes && settings.wakes !== false }),
    onDefect: settings.onDefect ?? ((error) => process.emitWarning(String(error), "TroupeTaskDefect")),
  });
}

interface AnswerWork {
  readonly messages: readonly TaskMessage[];
  readonly io: AnswerPorts;
  readonly callbackTask?: AgentCallbackTask;
}

/** Loads the schema check only for tasks that declare an output schema, because most do not. */
async function checkOf({ spec }: TaskRecord): Promise<OutputCheck | undefined> {
  if (!spec.outputSchema) return undefined;
  const { outputCheck } = await import("./output-check.ts");
  return outputCheck(spec.outputSchema);
}

function failedEnd(error: unknown, signal: AbortSignal): AnswerEnd {
  if (signal.aborted) return { kind: "aborted" };
  return { kind: "failed", error: error instanceof Error ? error.message : String(error) };
}
