/** Builds the descriptions of runs in the wire format. They contain no prompts. */
import { defined } from "../lib/defined.ts";
import type { Json } from "../lib/json.ts";
import { clip } from "../lib/text.ts";
import type { FactoryAttempt } from "./attempt.ts";
import type { FactoriesPorts } from "./ports.ts";
import type { ProgressRecord, RunRecord, RunStatus } from "./run-fold.ts";
import { nanoOf } from "./usage.ts";

export interface RunEnvelope {
  readonly runId: string;
  readonly attempt: number;
  readonly status: RunStatus;
  readonly result?: Json;
  readonly error?: string;
  readonly failure?: object;
  readonly reason?: string;
  /** The progress of a run that ended without being completed. */
  readonly snapshot?: { readonly journal: readonly object[]; readonly progress: readonly ProgressRecord[] };
}

export interface PageQuery {
  readonly afterSeq?: number | undefined;
  readonly beforeSeq?: number | undefined;
  readonly limit?: number | undefined;
}

interface RunViewContext {
  readonly ports: Pick<FactoriesPorts, "agentState">;
  readonly now: number;
  attempt(runId: string): FactoryAttempt | undefined;
  /** Whether the program that provides this factory is connected. */
  isAvailable(factoryName: string): boolean;
}

const USUAL_PAGE = 200;
const MAX_PAGE = 500;
const MAX_SNAPSHOT_LINES = 50;
const MAX_PREVIEW_CHARACTERS = 500;

export function envelopeOf(run: RunRecord): RunEnvelope {
  const { spec, status, attempt, end } = run;
  const named = { runId: spec.runId, attempt, status };
  if (!end) return named;
  const { status: _, ...said } = end;
  if (status === "completed") return { ...named, ...said };
  const journal = [...run.steps].map(([key, result]) => ({ key, result }));
  const progress = run.progress.slice(-MAX_SNAPSHOT_LINES);
  return { ...named, ...said, snapshot: { journal, progress } };
}

/** Returns all active runs and one page of the settled ones, in order of creation. */
export function summariesOf(runs: readonly RunRecord[], how: RunViewContext & { readonly paging: PageQuery }) {
  const settled = runs.filter(({ end }) => end !== undefined);
  const { page, older, newer } = pageOf(settled, how.paging);
  const isShown = (run: RunRecord): boolean => run.end === undefined || page.includes(run);
  return {
    runs: runs.filter(isShown).map((run) => summaryOf(run, how)),
    oldestSeq: page[0]?.seq ?? null,
    newestSeq: page.at(-1)?.seq ?? null,
    hasMoreNewer: newer > 0,
    omittedOlder: older,
  };
}

export function detailOf(run: RunRecord, watching: RunViewContext) {
  const agents = run.agents.map((agent) => agentView(run, agent, watching));
  const isLive = ({ status }: { status: string }): boolean => LIVE.has(status);
  const phases = run.phases.views(watching.now).map((phase) => {
    const own = agents.filter(({ phaseId }) => phaseId === phase.id);
    return { ...phase, totalAgentCount: own.length, liveAgentCount: own.filter(isLive).length };
  });
  return { ...summaryOf(run, watching), phases, agents, progress: progressPage(run, {}) };
}

export function progressPage(run: RunRecord, paging: PageQuery & { readonly phaseId?: string | undefined }) {
  const { phaseId } = paging;
  const all = phaseId === undefined ? run.progress : run.progress.filter((line) => line.phaseId === phaseId);
  const { page, older, newer } = pageOf(all, paging);
  return {
    records: page,
    oldestSeq: page[0]?.seq ?? null,
    newestSeq: page.at(-1)?.seq ?? null,
    hasMoreOlder: older > 0,
    hasMoreNewer: newer > 0,
    revision: run.revision,
  };
}

const LIVE = new Set(["queued", "running"]);

function summaryOf(run: RunRecord, { ports, now, attempt, isAvailable }: RunViewContext) {
  const { spec, status, revision, createdAt, startedAt, updatedAt, completedAt, phases, limits, end } = run;
  const { runId, factoryName, description, declaredLimits } = spec;
  const live = attempt(runId);
  return {
    runId,
    factoryName,
    description,
    status,
    revision,
    createdAt,
    startedAt,
    updatedAt,
    completedAt,
    currentPhase: phases.currentPhase,
    declaredPhaseCount: spec.phases.length,
    liveAgentCount: live?.liveAgents ?? 0,
    totalSpawnedAgentCount: run.agents.length,
    consumed: {
      activeMs: run.activeMs + (live && !live.hasEnded ? live.activeMs : 0),
      subagents: run.agents.length,
      nanoAiu: nanoOf(run, ports),
    },
    declaredLimits,
    approved: run.attempt > 0 ? limits : null,
    observedAt: now,
    activeSegmentStartedAt: live && !live.hasEnded ? run.attemptAt : null,
    terminal: end ? terminalOf(end) : null,
    canResume: end !== undefined && end.status !== "completed" && isAvailable(factoryName),
  };
}

function terminalOf({ reason, failure, error, result, pauseInfo }: NonNullable<RunRecord["end"]>) {
  return {
    ...defined({ reason, failure, error }),
    ...(result !== undefined && { resultPreview: clip(JSON.stringify(result), MAX_PREVIEW_CHARACTERS) }),
    pauseInfo: pauseInfo ?? null,
  };
}

function agentView({ spec: { runId } }: RunRecord, agent: RunRecord["agents"][number], { ports }: RunViewContext) {
  const state = ports.agentState(agent.agentId);
  const { costUsd: _, model, displayName, ...known } = state ?? { status: "gone", agentType: "agent", activeMs: 0 };
  return {
    ...agent,
    runId,
    ...known,
    ...defined({ displayName, resolvedModel: model }),
  };
}

/** Returns the page after `afterSeq`, the page before `beforeSeq`, or the last page. */
function pageOf<T extends { readonly seq: number }>(all: readonly T[], { afterSeq, beforeSeq, limit }: PageQuery) {
  const size = Math.max(1, Math.min(limit ?? USUAL_PAGE, MAX_PAGE));
  const inside = all.filter(({ seq }) => seq > (afterSeq ?? 0) && seq < (beforeSeq ?? Number.POSITIVE_INFINITY));
  const page = afterSeq === undefined ? inside.slice(-size) : inside.slice(0, size);
  const [first, last] = [page[0]?.seq ?? 0, page.at(-1)?.seq ?? Number.POSITIVE_INFINITY];
  return {
    page,
    older: page.length === 0 ? 0 : all.filter(({ seq }) => seq < first).length,
    newer: page.length === 0 ? 0 : all.filter(({ seq }) => seq > last).length,
  };
}
