/** What the log says of runs of factories. There is no other truth: reading a log back gives the same runs. */
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

/** Everything the log knows of a run. Only the fold changes one. */
export interface RunRecord {
  readonly spec: Readonly<EventData<"troupe.factory_run">>;
  /** Its place among all runs of the session, from 1 on. */
  readonly seq: number;
  status: RunStatus;
  /** Grows with every event about it. */
  revision: number;
  attempt: number;
  limits: RunLimits;
  readonly createdAt: number;
  startedAt: number | null;
  updatedAt: number;
  completedAt: number | null;
  /** When the present attempt began, by the clock of the log. */
  attemptAt: number;
  /** Of attempts that have ended. */
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

  /** In the order they were made. */
  all(): readonly RunRecord[] {
    return [...this.#runs.values()];
  }

  /** The run it is about, where it is about one. */
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
      ...{ spec, seq: this.#runs.size + 1, status: "running", revision: 0, attempt: 0, limits: spec.declaredLimits },
      ...{ createdAt, startedAt: null, updatedAt: createdAt, completedAt: null, attemptAt: createdAt, activeMs: 0 },
      ...{ steps: new Map(), answers: new Map(), checkpoints: new Set(), agents: [], progress: [], end: undefined },
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
