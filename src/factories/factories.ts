/**
 * Factories: workflows that extensions provide and that are run by name.
 *
 * The session's log stores the request, the results of steps and agents, and the end of each run (`run-fold.ts`). A run
 * can therefore be resumed by its id after a failure, a limit or a crash; completed steps are not repeated.
 * `attempt.ts` is one execution of a run. `run-view.ts` builds the descriptions that clients receive.
 */
import { defined } from "../lib/defined.ts";
import type { Json } from "../lib/json.ts";
import { clip } from "../lib/text.ts";
import type { SessionEvent } from "../protocol/event.ts";
import { FactoryError } from "../protocol/factory-error.ts";
import { FactoryAttempt } from "./attempt.ts";
import { type GivenLimits, limitsProblem, mergedLimits } from "./limits.ts";
import type { AgentOptions, AttemptOptions, FactoriesPorts, Factory, FactoryMeta, SettledAttempt } from "./ports.ts";
import { type RunEnd, RunFold, type RunLimits, type RunRecord } from "./run-fold.ts";
import { detailOf, envelopeOf, type PageQuery, progressPage, type RunEnvelope, summariesOf } from "./run-view.ts";
import { nanoOf } from "./usage.ts";

const MAX_ACTIVE = 16;
const MAX_VALUE_CHARACTERS = 1024 * 1024;
const MAX_ENTRIES = 10_000;
const MAX_TEXT_CHARACTERS = 4_000;
const CLOSE_MS = 2_000;

/**
 * Identifies the caller of an execution: the program that owns the factory, and the token it received for this
 * execution.
 */
interface LogSender {
  readonly runId: string;
  readonly executionToken: string;
  readonly owner: unknown;
}

export class Factories {
  readonly #ports: FactoriesPorts;
  #fold: RunFold;
  readonly #active = new Map<string, FactoryAttempt>();
  /** Runs that are starting: their attempt is not in the log yet. */
  readonly #beginning = new Set<string>();
  readonly #settling = new Set<Promise<void>>();
  #isClosed = false;

  constructor(ports: FactoriesPorts, events: Iterable<SessionEvent>) {
    this.#ports = ports;
    this.#fold = new RunFold(events);
  }

  /** Updates the runs. The caller must pass every logged event of the session exactly once. */
  observe(event: SessionEvent): void {
    const run = this.#fold.apply(event);
    if (!run) return;
    const data = { runId: run.spec.runId, revision: run.revision };
    void this.#ports.emit("factory.run_updated", data);
    void this.#ports.emit("workflow.run_updated", data);
  }

  /** Marks runs that an earlier process left running as halted. */
  async restore(): Promise<void> {
    const reason = "The process that ran it has ended.";
    for (const run of this.#fold.all()) {
      if (run.status !== "running") continue;
      const activeMs = Math.max(0, run.updatedAt - run.attemptAt);
      await this.#ports.emit("troupe.factory_end", { runId: run.spec.runId, status: "halted", reason, activeMs });
    }
  }

  /** Rebuilds the runs after a rewind and cancels all active attempts. */
  rewound(events: Iterable<SessionEvent>): void {
    this.#fold = new RunFold(events);
    for (const [runId, attempt] of [...this.#active]) {
      if (!this.#fold.get(runId)) this.#active.delete(runId);
      attempt.end({ status: "cancelled", reason: "The session was rewound." });
    }
  }

  get isBusy(): boolean {
    return this.#active.size + this.#beginning.size > 0;
  }

  get list(): readonly FactoryMeta[] {
    return this.#ports.source.list();
  }

  async run(name: string, args: Json, limits: GivenLimits = {}, options: AttemptOptions = {}): Promise<RunEnvelope> {
    const factory = this.#available(name);
    const { description, phases, limits: declared } = factory.meta;
    const declaredLimits = mergedLimits(declared);
    const approved = checkedLimits(mergedLimits(declaredLimits, limits));
    const runId = this.#ports.stamp.id("factory-run");
    requireSmall(args, "The arguments");
    const told = phases.map(({ title, detail }) => ({ title, ...defined({ detail }) }));
    const spec = { runId, factoryName: name, description, phases: told, args, declaredLimits };
    return this.#reserved(runId, async () => {
      await this.#ports.emit("troupe.factory_run", spec);
      return this.#begin(this.#required(runId), factory, { limits: approved, options });
    });
  }

  /** Resumes a run that ended before it was completed. Logged step results and answers are reused. */
  async resume(
    runId: string,
    limits: GivenLimits = {},
    options: AttemptOptions = {},
  ): Promise<{ factoryName: string; run: RunEnvelope }> {
    const run = this.#required(runId);
    if (this.#active.has(runId) || this.#beginning.has(runId))
      throw new FactoryError("already_active", `Factory run "${runId}" is active.`, runId);
    if (run.status === "completed")
      throw new FactoryError("non_resumable", `Factory run "${runId}" is completed and cannot be resumed.`, runId);
    const { factoryName } = run.spec;
    const factory = this.#available(factoryName, runId);
    const approved = checkedLimits(mergedLimits(run.limits, limits), runId);
    const begun = this.#reserved(runId, () => this.#begin(run, factory, { limits: approved, options }));
    return { factoryName, run: await begun };
  }

  /** Returns the factory and the limits that a new run, or the next attempt of a run, would have. */
  planned(what: { readonly name: string } | { readonly runId: string }, limits: GivenLimits) {
    if ("name" in what) {
      return { factoryName: what.name, limits: mergedLimits(this.#available(what.name).meta.limits, limits) };
    }
    const { spec, limits: earlier } = this.#required(what.runId);
    return { factoryName: spec.factoryName, limits: mergedLimits(earlier, limits) };
  }

  /** Cancels the run immediately. Later results of its body are ignored. */
  async cancel(runId: string, reason = "cancelled"): Promise<RunEnvelope> {
    const run = this.#required(runId);
    this.#active.get(runId)?.end({ status: "cancelled", reason });
    await Promise.allSettled(this.#settling);
    return envelopeOf(run);
  }

  /** Ends the attempt; the run can be resumed. A run that is not active stays as it is. */
  async pause(runId: string): Promise<RunEnvelope> {
    const run = this.#required(runId);
    this.#active.get(runId)?.end({ status: "paused", reason: "paused", pauseInfo: { type: "user" } });
    await Promise.allSettled(this.#settling);
    return envelopeOf(run);
  }

  get(runId: string): RunEnvelope {
    return envelopeOf(this.#required(runId));
  }

  runs(paging: PageQuery) {
    return summariesOf(this.#fold.all(), { ...this.#watching(), paging });
  }

  detail(runId: string) {
    return detailOf(this.#required(runId), this.#watching());
  }

  progress(runId: string, paging: PageQuery & { readonly phaseId?: string | undefined }) {
    return progressPage(this.#required(runId), paging);
  }

  // The following methods serve the body of a factory, through the program that owns it.

  async log(
    from: LogSender,
    lines: readonly { readonly kind: "log" | "phase"; readonly text: string }[],
  ): Promise<void> {
    const { run, options } = this.#speaking(from);
    const room = MAX_ENTRIES - run.progress.length;
    if (room <= 0) return;
    const kept = lines.slice(0, room).map(({ kind, text }) => ({ kind, text: clip(text, MAX_TEXT_CHARACTERS) }));
    const isLast = room <= lines.length;
    const cut = { kind: "log" as const, text: `Only the first ${MAX_ENTRIES} lines are stored.` };
    const shown = isLast ? [...kept.slice(0, -1), cut] : kept;
    if (shown.length > 0) await this.#ports.emit("troupe.factory_progress", { runId: from.runId, lines: shown });
    if (!options.logPhaseNames) return;
    for (const { kind, text } of shown) {
      const message = `${run.spec.factoryName}: ${text}`;
      if (kind === "phase") await this.#ports.emit("session.info", { infoType: "factory_phase", message });
    }
  }

  /** Pauses the run, unless an earlier attempt has paused at this checkpoint already. */
  async pauseAtCheckpoint(from: LogSender, key: string): Promise<{ readonly action: "continue" | "pause" }> {
    const attempt = this.#speaking(from);
    if (attempt.run.checkpoints.has(key)) return { action: "continue" };
    attempt.end({ status: "paused", reason: "paused", pauseInfo: { type: "checkpoint", key } });
    await Promise.allSettled(this.#settling);
    return { action: "pause" };
  }

  async agent(from: LogSender, prompt: string, options: AgentOptions): Promise<Json | undefined> {
    return this.#speaking(from).agent(prompt, options);
  }

  recall(from: LogSender, key: string): { readonly hit: boolean; readonly resultJson?: Json } {
    const { run } = this.#speaking(from);
    const resultJson = run.steps.get(key);
    return resultJson === undefined ? { hit: false } : { hit: true, resultJson };
  }

  async remember(from: LogSender, key: string, result: Json): Promise<void> {
    const { run } = this.#speaking(from);
    requireSmall(result, `The result of the step "${clip(key, 100)}"`);
    if (run.steps.size >= MAX_ENTRIES && !run.steps.has(key))
      throw new FactoryError("factory_value_too_large", `A run can store at most ${MAX_ENTRIES} steps.`, from.runId);
    await this.#ports.emit("troupe.factory_step", { runId: from.runId, stepId: key, result });
  }

  /** Halts all active runs because the session closes. They can be resumed when the session is. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const attempt of this.#active.values()) attempt.end({ status: "halted", reason: "The session was closed." });
    const done = new AbortController();
    const late = this.#ports.stamp.sleep(CLOSE_MS, done.signal).catch(() => undefined);
    await Promise.race([Promise.allSettled(this.#settling), late]);
    done.abort();
  }

  /** Reserves the run while it starts: it counts as active and cannot be started twice. */
  async #reserved<T>(runId: string, begin: () => Promise<T>): Promise<T> {
    this.#beginning.add(runId);
    try {
      return await begin();
    } finally {
      this.#beginning.delete(runId);
    }
  }

  async #begin(
    run: RunRecord,
    factory: Factory,
    { limits, options }: { limits: RunLimits; options: AttemptOptions },
  ): Promise<RunEnvelope> {
    const { runId, factoryName } = run.spec;
    const attempt = run.attempt + 1;
    await this.#ports.emit("troupe.factory_attempt", { runId, attempt, limits });
    const execution = new FactoryAttempt({ run, factory, ports: this.#ports, options }, (ended, end) =>
      this.#settle(ended, end),
    );
    this.#active.set(runId, execution);
    void this.#ports.emit("factory.run_started", { runId, factoryName, attempt });
    void this.#ports.emit("workflow.run_started", { runId, workflowName: factoryName, attempt });
    if (this.#isClosed) execution.end({ status: "halted", reason: "The session was closed." });
    else execution.start();
    return envelopeOf(run);
  }

  #settle(attempt: FactoryAttempt, end: RunEnd): void {
    const { run, activeMs } = attempt;
    const { runId } = run.spec;
    if (this.#active.get(runId) !== attempt) return;
    const result = bounded(end);
    const told = this.#ports
      .emit("troupe.factory_end", { runId, ...result, activeMs })
      .catch(() => undefined) // log failure, reported elsewhere; a restart marks the run as halted
      .then(() => {
        this.#active.delete(runId);
        this.#settling.delete(told);
        const consumed = { consumedSubagents: run.agents.length, consumedNanoAiu: nanoOf(run, this.#ports) };
        const data = { runId, status: result.status, ...consumed, elapsedMs: run.activeMs };
        const type = result.failure?.type;
        void this.#ports.emit("factory.run_settled", { ...data, ...defined({ failureType: type }) });
        const failureType = type?.replace("factory_", "workflow_");
        void this.#ports.emit("workflow.run_settled", { ...data, ...defined({ failureType }) });
        if (attempt.options.notifyOnComplete) this.#ports.onSettled?.(settledOf(run, result));
      });
    this.#settling.add(told);
  }

  #required(runId: string): RunRecord {
    const run = this.#fold.get(runId);
    if (run) return run;
    throw new FactoryError("not_found", `Factory run "${runId}" was not found`, runId);
  }

  #available(name: string, runId?: string): Factory {
    if (this.#isClosed) throw new FactoryError("factory_session_disposed", "The session is being closed.", runId);
    const factory = this.#ports.source.find(name);
    if (!factory) {
      const known = this.list.map((meta) => meta.name).join(", ") || "none";
      const message = `There is no factory "${clip(name, 100)}" in this session. Available: ${known}.`;
      throw new FactoryError(runId === undefined ? "factory_not_found" : "non_resumable", message, runId);
    }
    if (this.#active.size + this.#beginning.size >= MAX_ACTIVE)
      throw new FactoryError(
        "factory_already_running",
        `${MAX_ACTIVE} runs are active; wait until one has ended.`,
        runId,
      );
    return factory;
  }

  #speaking({ runId, executionToken, owner }: LogSender): FactoryAttempt {
    const attempt = this.#active.get(runId);
    const isMeant = attempt?.token === executionToken && attempt.factory.owner === owner && !attempt.hasEnded;
    if (attempt && isMeant) return attempt;
    throw new FactoryError("factory_execution_stale", `This execution of the run "${runId}" is over.`, runId);
  }

  #watching() {
    const { source, stamp } = this.#ports;
    return {
      ports: this.#ports,
      now: stamp.now(),
      attempt: (runId: string) => this.#active.get(runId),
      isAvailable: (name: string) => source.find(name)?.isThere() ?? false,
    };
  }
}

const MAX_TOLD_CHARACTERS = 2_000;

function settledOf({ spec, attempt }: RunRecord, { status, result, error, reason }: RunEnd): SettledAttempt {
  const { runId, factoryName } = spec;
  const text = error ?? reason ?? (result === undefined ? "" : JSON.stringify(result));
  return { runId, factoryName, attempt, status, text: clip(text, MAX_TOLD_CHARACTERS) };
}

function checkedLimits(limits: RunLimits, runId?: string): RunLimits {
  const problem = limitsProblem(limits);
  if (problem !== undefined) throw new FactoryError("factory_limits_invalid", `Limits of the run: ${problem}.`, runId);
  return limits;
}

function requireSmall(value: Json, what: string): void {
  if (JSON.stringify(value).length <= MAX_VALUE_CHARACTERS) return;
  throw new FactoryError(
    "factory_value_too_large",
    `${what} must be at most ${MAX_VALUE_CHARACTERS} characters of JSON.`,
  );
}

function bounded(end: RunEnd): RunEnd {
  if (end.result === undefined || JSON.stringify(end.result).length <= MAX_VALUE_CHARACTERS) return end;
  const error = `The result has more than ${MAX_VALUE_CHARACTERS} characters of JSON; return less, or write it to a file.`;
  return { status: "error", error };
}
