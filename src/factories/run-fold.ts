/** The state of factory runs, derived only from the log. Reading a log again gives the same runs. */
import type { Json } from "../lib/json.ts";
import type { EventData, SessionEvent } from "../protocol/event.ts";
import { Phases } from "./phases.ts";

export type RunStatus = "running" | EventData<"troupe.factory_end">["status"];
export type RunLimits = EventData<"troupe.factory_attempt">["limits"];
export type RunEnd = Omit<EventData<"troupe.factory_end">, "runId" | "activeMs">;

export interface ProgressRecord {
  readonly seq: number;
  readonly attempt: number;
  readonly phaseId: string | null;
  readonly recordedAt: number;
  readonly kind: "log" | "phase";
  readonly text: string;
}

interface RunAgent {
  readonly agentId: string;
  readonly toolCallId: string;
  readonly label: string;
  readonly phaseId: string | null;
  readonly requestedModel?: string;
}

/** The state of one run. Only the fold changes it. */
export interface RunRecord {
  readonly spec: Readonly<EventData<"troupe.factory_run">>;
  /** Number of the run within the session, from 1. */
  readonly seq: number;
  status: RunStatus;
  /** Increases with every event of the run. */
  revision: number;
  attempt: number;
  limits: RunLimits;
  readonly createdAt: number;
  startedAt: number | null;
  updatedAt: number;
  completedAt: number | null;
  /** The start of the current attempt, by the log's timestamps. */
  attemptAt: number;
  /** Total of all ended attempts. */
  activeMs: number;
  readonly steps: Map<string, Json>;
  readonly answers: Map<string, Json>;
  /** Keys of the checkpoints at which an earlier attempt paused. */
  readonly checkpoints: Set<string>;
  readonly agents: RunAgent[];
  readonly progress: ProgressRecord[];
  readonly phases: Phases;
  end: RunEnd | undefined;
}

export class RunFold {
  readonly #runs = new Map<string, RunRecord>();

  constructor(events: Iterable<SessionEvent>) {
    for (const event of events) this.apply(event);
  }

  get(runId: string): RunRecord | undefined {
    return this.#runs.get(runId);
  }

  /** Returns all runs in order of creation. */
  all(): readonly RunRecord[] {
    return [...this.#runs.values()];
  }

  /** Applies an event. Returns the run that it belongs to, or undefined. */
  apply(event: SessionEvent): RunRecord | undefined {
    const at = Date.parse(event.timestamp);
    if (event.type === "troupe.factory_run") this.#create(event.data, at);
    if (!event.type.startsWith("troupe.factory_")) return undefined;
    const run = this.#runs.get((event.data as { runId: string }).runId);
    if (!run) return undefined;
    run.revision++;
    run.updatedAt = at;
    change(run, event, at);
    return run;
  }

  #create(spec: EventData<"troupe.factory_run">, createdAt: number): void {
    this.#runs.set(spec.runId, {
      spec,
      seq: this.#runs.size + 1,
      status: "running",
      revision: 0,
      attempt: 0,
      limits: spec.declaredLimits,
      createdAt,
      startedAt: null,
      updatedAt: createdAt,
      completedAt: null,
      attemptAt: createdAt,
      activeMs: 0,
      steps: new Map(),
      answers: new Map(),
      checkpoints: new Set(),
      agents: [],
      progress: [],
      end: undefined,
      phases: new Phases(spec.phases),
    });
  }
}

function change(run: RunRecord, event: SessionEvent, at: number): void {
  switch (event.type) {
    case "troupe.factory_attempt": {
      const { attempt, limits } = event.data;
      Object.assign(run, { attempt, limits, status: "running", end: undefined, completedAt: null, attemptAt: at });
      run.startedAt ??= at;
      return;
    }
    case "troupe.factory_progress":
      for (const { kind, text } of event.data.lines) {
        if (kind === "phase") run.phases.enter(text, { at, attempt: run.attempt });
        const { attempt, progress, phases } = run;
        progress.push({ seq: progress.length + 1, attempt, phaseId: phases.current, recordedAt: at, kind, text });
      }
      return;
    case "troupe.factory_step":
      run.steps.set(event.data.stepId, event.data.result);
      return;
    case "troupe.factory_answer":
      run.answers.set(event.data.callId, event.data.result);
      return;
    case "troupe.factory_agent": {
      const { runId: _, ...agent } = event.data;
      run.agents.push({ ...agent, phaseId: run.phases.current });
      return;
    }
    case "troupe.factory_end": {
      const { runId: _, activeMs, ...end } = event.data;
      run.phases.leave(at);
      if (end.pauseInfo?.type === "checkpoint") run.checkpoints.add(end.pauseInfo.key);
      Object.assign(run, { end, status: end.status, completedAt: at, activeMs: run.activeMs + activeMs });
      return;
    }
  }
}
