/** Folds facts of the session: modes, models, queue, plan, budgets, schedules, runs of factories, servers. */

import { defined } from "../lib/defined.ts";
import type { EventData, SessionEvent } from "../protocol/event.ts";
import { type FoldStep, MAIN, type ViewDraft } from "./draft.ts";
import { setResting } from "./fold-messages.ts";
import { clip } from "./own-text.ts";
import type { FactoryRunView } from "./view.ts";

const MAX_QUEUE = 1_000;
const MAX_SCHEDULES = 200;
const MAX_RUNS = 200;
const MAX_RUN_AGENTS = 1_000;
const MAX_SERVERS = 200;
const MAX_LINE = 200;

export function foldSession(step: FoldStep) {
  const { event, view, at } = step;
  const { session } = view;
  switch (event.type) {
    case "session.start":
      session.id = event.data.sessionId;
      session.startedAt = at;
      return foldOpened(view, event.data);
    case "session.resume":
      session.endedAt = undefined;
      return foldOpened(view, event.data);
    case "session.shutdown":
      session.endedAt = at;
      for (const { id, isLive } of view.attention.values()) if (isLive) view.attention.delete(id);
      return setResting(step);
    case "session.idle":
    case "assistant.idle":
      return becameIdle(step);
    case "abort":
      return event.agentId === undefined ? setResting(step) : undefined;
    case "session.context_changed":
      return foldContext(view, event.data);
    case "troupe.session_named":
      session.name = event.data.name;
      return;
    case "session.title_changed":
      session.name = event.data.title;
      return;
    case "session.mode_changed":
      session.mode = event.data.newMode;
      return;
    case "session.permissions_changed":
      session.permissionMode = event.data.mode;
      return;
    case "session.model_change":
      if (event.agentId !== undefined) return;
      session.model = event.data.newModel;
      session.reasoningEffort = event.data.reasoningEffort;
      return;
    case "session.task_complete":
      if (step.agent) step.agent.hasCalls = false;
      view.autopilot = { ...view.autopilot, completed: { summary: event.data.summary, at } };
      return;
    case "session.autopilot_objective_changed":
      view.autopilot = { ...view.autopilot, objectiveChanges: view.autopilot.objectiveChanges + 1 };
      return;
    default:
      return foldLists(step, event);
  }
}

function foldLists(step: FoldStep, event: SessionEvent) {
  const { view, at } = step;
  switch (event.type) {
    case "troupe.message_queued":
      return foldQueued(view, event.data, at);
    case "troupe.message_withdrawn":
      view.queue = view.queue.filter(({ messageId }) => messageId !== event.data.messageId);
      return;
    case "session.plan_changed":
      view.plan = { ...view.plan, fileChanges: view.plan.fileChanges + 1 };
      return;
    case "session.todos_changed":
      view.plan = { ...view.plan, tableChanges: view.plan.tableChanges + 1 };
      return;
    case "session.session_limits_changed":
      view.budget = { ...view.budget, maxAiCredits: event.data.sessionLimits?.maxAiCredits };
      return;
    case "session.usage_checkpoint":
      view.budget = { ...view.budget, usedNanoAiu: event.data.totalNanoAiu };
      return;
    case "troupe.limit_reached":
      view.budget = { ...view.budget, reached: { ...event.data, agentId: event.agentId } };
      if (event.agentId === undefined) setResting(step);
      return;
    case "session.schedule_created":
      return foldScheduled(view, event.data, at);
    case "session.schedule_cancelled":
      view.schedules.delete(event.data.id);
      return;
    case "session.mcp_servers_loaded":
      view.servers.clear();
      for (const { name, status, error } of event.data.servers.slice(0, MAX_SERVERS)) {
        view.servers.set(name, { name, status, error });
      }
      return;
    case "session.mcp_server_status_changed": {
      const { serverName: name, status, error } = event.data;
      if (view.servers.has(name) || view.servers.size < MAX_SERVERS) view.servers.set(name, { name, status, error });
      return;
    }
    default:
      return foldRun(step, event);
  }
}

function foldOpened(view: ViewDraft, data: EventData<"session.start"> | EventData<"session.resume">) {
  const { selectedModel, reasoningEffort, sessionLimits, context } = data;
  view.session.openings++;
  if (selectedModel !== undefined) view.session.model = selectedModel;
  if (reasoningEffort !== undefined) view.session.reasoningEffort = reasoningEffort;
  if (sessionLimits) view.budget = { ...view.budget, maxAiCredits: sessionLimits.maxAiCredits };
  if (context) foldContext(view, context);
}

function foldContext({ session }: ViewDraft, { cwd, branch, repository }: EventData<"session.context_changed">) {
  session.cwd = cwd;
  session.branch = branch;
  session.repository = repository;
}

function becameIdle(step: FoldStep) {
  const { event, view } = step;
  if (event.agentId !== undefined && event.agentId !== MAIN) return;
  view.main.streaming = undefined;
  view.main.modelWait = undefined;
  setResting(step);
  view.session.isMainIdle = true;
  if (event.type === "session.idle") view.session.isIdle = true;
}

/** A message that is stored again has moved, or has other words. */
function foldQueued(view: ViewDraft, data: EventData<"troupe.message_queued">, at: number) {
  const { messageId, content, displayPrompt, mode, source, attachments = [] } = data;
  const text = displayPrompt ?? content;
  const message = { messageId, text, mode, agentId: undefined, at, source, attachments: attachments.length };
  view.queue = [...view.queue.filter((one) => one.messageId !== messageId), message].slice(-MAX_QUEUE);
}

function foldScheduled(view: ViewDraft, data: EventData<"session.schedule_created">, createdAt: number) {
  const { id, prompt, displayPrompt = prompt, intervalMs, at, recurring = false, origin = "user" } = data;
  if (view.schedules.size >= MAX_SCHEDULES && !view.schedules.has(id)) return;
  const shown = clip(displayPrompt, MAX_LINE);
  view.schedules.set(id, { id, prompt: shown, isRecurring: recurring, intervalMs, at, createdAt, origin });
}

function foldRun({ view, at }: FoldStep, event: SessionEvent) {
  switch (event.type) {
    case "troupe.factory_run": {
      const { runId, factoryName: name, description, phases } = event.data;
      if (view.runs.size >= MAX_RUNS) {
        const [oldest] = view.runs.keys();
        if (oldest !== undefined) view.runs.delete(oldest);
      }
      view.runs.set(runId, {
        runId,
        name,
        description: clip(description, MAX_LINE),
        phases: phases.map(({ title }) => title),
        phase: undefined,
        lastLine: "",
        status: "running",
        attempt: 0,
        steps: 0,
        agents: [],
        startedAt: at,
        endedAt: undefined,
        error: undefined,
      });
      return;
    }
    case "troupe.factory_attempt":
      return changeRun(view, event.data.runId, () => ({
        attempt: event.data.attempt,
        status: "running",
        endedAt: undefined,
        error: undefined,
      }));
    case "troupe.factory_progress": {
      const { lines } = event.data;
      const phase = lines.findLast(({ kind }) => kind === "phase")?.text;
      const line = lines.at(-1)?.text;
      return changeRun(view, event.data.runId, () => ({
        ...defined({ phase }),
        ...(line !== undefined && { lastLine: clip(line, MAX_LINE) }),
      }));
    }
    case "troupe.factory_step":
      return changeRun(view, event.data.runId, ({ steps }) => ({ steps: steps + 1 }));
    case "troupe.factory_agent":
      return changeRun(view, event.data.runId, ({ agents }) => ({
        agents: [...agents, event.data.agentId].slice(-MAX_RUN_AGENTS),
      }));
    case "troupe.factory_end":
      return changeRun(view, event.data.runId, () => ({
        status: event.data.status,
        endedAt: at,
        error: event.data.error,
      }));
    default:
  }
}

function changeRun(view: ViewDraft, runId: string, how: (run: FactoryRunView) => Partial<FactoryRunView>) {
  const run = view.runs.get(runId);
  if (run) view.runs.set(runId, { ...run, ...how(run) });
}
