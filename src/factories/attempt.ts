/**
 * One execution of a run. It tracks the factory's body, which runs in the extension, the agents that the body requests,
 * and the limits.
 * An attempt ends exactly once: through the body, a limit, a cancellation or the closing of the session. Later results
 * are ignored.
 */

import { createHash } from "node:crypto";
import { defined } from "../lib/defined.ts";
import type { Json } from "../lib/json.ts";
import { stoppable } from "../lib/node/stoppable.ts";
import { clip } from "../lib/text.ts";
import { TroupeError } from "../protocol/errors.ts";
import { FactoryError } from "../protocol/factory-error.ts";
import { ConcurrencyLimit } from "./concurrency-limit.ts";
import type { AgentEnd, AgentOptions, AttemptOptions, FactoriesPorts, Factory, WorkingAgent } from "./ports.ts";
import type { RunEnd, RunRecord } from "./run-fold.ts";
import { answerSchema, answerValue } from "./shape.ts";
import { creditsOf, nanoOf, USD_PER_CREDIT } from "./usage.ts";

const MAX_LABEL_CHARACTERS = 200;
const MAX_ERROR_CHARACTERS = 4_000;
/** Upper bound on concurrent agents of one run, whatever its limits say. */
const MAX_AT_ONCE = 256;
/** The maximum number of agents in one run if neither the factory nor the caller sets a limit. */
export const DEFAULT_TOTAL_AGENTS = 256;

export class FactoryAttempt {
  readonly token: string;
  readonly run: RunRecord;
  readonly factory: Factory;
  readonly options: AttemptOptions;
  readonly #ports: FactoriesPorts;
  readonly #onEnd: (attempt: FactoryAttempt, end: RunEnd) => void;
  readonly #stop = stoppable();
  readonly #lanes: ConcurrencyLimit;
  readonly #calls = new Map<string, Promise<Json | undefined>>();
  readonly #working = new Set<WorkingAgent>();
  readonly #began: number;
  #admitted: number;
  #clock: NodeJS.Timeout | undefined;
  #end: RunEnd | undefined;

  constructor(
    what: { run: RunRecord; factory: Factory; ports: FactoriesPorts; options: AttemptOptions },
    onEnd: (attempt: FactoryAttempt, end: RunEnd) => void,
  ) {
    const { run, factory, ports } = what;
    this.options = what.options;
    this.run = run;
    this.factory = factory;
    this.#ports = ports;
    this.#onEnd = onEnd;
    this.token = ports.stamp.id("execution");
    this.#began = ports.stamp.monotonic();
    this.#admitted = run.agents.length;
    const { maxConcurrentSubagents, maxTotalSubagents } = run.limits;
    this.#lanes = new ConcurrencyLimit(
      Math.min(maxConcurrentSubagents ?? maxTotalSubagents ?? MAX_AT_ONCE, MAX_AT_ONCE),
    );
  }

  get hasEnded(): boolean {
    return this.#end !== undefined;
  }

  get activeMs(): number {
    return Math.round(this.#ports.stamp.monotonic() - this.#began);
  }

  get liveAgents(): number {
    return this.#working.size;
  }

  /** Starts the body. */
  start(): void {
    const { timeoutSeconds } = this.run.limits;
    if (timeoutSeconds !== undefined) {
      const left = timeoutSeconds * 1000 - this.run.activeMs;
      this.#clock = setTimeout(() => this.reach("timeoutSeconds", timeoutSeconds), Math.max(0, left));
    }
    const { runId, args } = this.run.spec;
    this.factory.execute({ runId, executionToken: this.token, args }, this.#stop.signal).then(
      ({ result }) => this.end({ status: "completed", ...defined({ result }) }),
      (error: unknown) => this.#broke(error),
    );
  }

  /** Ends the attempt because of a limit. The run can be resumed with a higher limit. */
  reach(kind: "maxTotalSubagents" | "timeoutSeconds" | "maxAiCredits", value: number): FactoryError {
    const { runId } = this.run.spec;
    const message = `The run has reached its limit: ${kind} is ${value}. It can be resumed with a higher limit.`;
    this.end({ status: "error", error: message, failure: { type: "factory_limit_reached", runId, kind, value } });
    return new FactoryError("factory_limit_reached", message, runId);
  }

  /** Ends the attempt; later calls do nothing. Asks the body to stop unless it has completed. */
  end(end: RunEnd): void {
    if (this.#end) return;
    this.#end = end;
    clearTimeout(this.#clock);
    const { runId } = this.run.spec;
    if (end.status !== "completed" && this.factory.isThere()) this.factory.abort({ runId, executionToken: this.token });
    this.#stop.abort(new FactoryError("factory_cancelled", "The run has ended.", runId));
    for (const agent of this.#working) void agent.stop().catch(() => undefined);
    this.#onEnd(this, end);
  }

  /**
   * Runs an agent and returns its answer, or undefined if it has none. Equal calls share one agent, and later attempts
   * reuse a logged answer.
   */
  agent(prompt: string, options: AgentOptions): Promise<Json | undefined> {
    const key = keyOf(prompt, options);
    const known = this.run.answers.get(key);
    if (known !== undefined) return Promise.resolve(known);
    const call = this.#calls.get(key) ?? this.#ask(key, prompt, options);
    this.#calls.set(key, call);
    return call;
  }

  async #ask(key: string, prompt: string, options: AgentOptions): Promise<Json | undefined> {
    const { maxTotalSubagents = DEFAULT_TOTAL_AGENTS } = this.run.limits;
    if (this.#admitted >= maxTotalSubagents) throw this.reach("maxTotalSubagents", maxTotalSubagents);
    this.#admitted++;
    await this.#lanes.enter(this.#stop.signal);
    try {
      const answer = await this.#work(prompt, options);
      this.#requireCredits("why" in answer ? answer.stoppedBy : undefined);
      if ("why" in answer) {
        await this.#log(`${labelOf(options)}: ${answer.why}`);
        return undefined;
      }
      const result = options.schema === undefined ? answer.response : answerValue(answer.response);
      this.#stop.signal.throwIfAborted();
      await this.#ports.emit("troupe.factory_answer", { runId: this.run.spec.runId, callId: key, result });
      return result;
    } finally {
      this.#lanes.leave();
    }
  }

  async #work(prompt: string, options: AgentOptions): Promise<AgentEnd> {
    const { runId } = this.run.spec;
    const costUsd = this.#requireCredits();
    const { schema, model } = options;
    const request = {
      ...options,
      runId,
      prompt,
      ...(schema !== undefined && { schema: answerSchema(schema) }),
      ...defined({ costUsd }),
    };
    const agent = await this.#ports.startAgent(request).catch((error: unknown) => {
      if (error instanceof TroupeError) return { why: [error.message, error.hint ?? ""].join(" ").trim() };
      throw error;
    });
    if ("why" in agent) return agent;
    this.#working.add(agent);
    try {
      const requested = model === undefined ? {} : { requestedModel: model };
      const label = labelOf(options);
      const { toolCallId } = agent;
      await this.#ports.emit("troupe.factory_agent", { runId, agentId: agent.id, toolCallId, label, ...requested });
      if (this.#stop.signal.aborted) await agent.stop();
      const ended = await agent.ended;
      this.#stop.signal.throwIfAborted();
      return ended;
    } finally {
      this.#working.delete(agent);
    }
  }

  /**
   * Returns the remaining budget in dollars; undefined without a credit limit. Ends the run and throws if the limit is
   * reached or if a price is unknown, because the limit could then not be enforced.
   */
  #requireCredits(stoppedBy?: "cost" | "price"): number | undefined {
    const { maxAiCredits } = this.run.limits;
    if (maxAiCredits === undefined) return undefined;
    const used = creditsOf(this.run, this.#ports);
    if (used === null || stoppedBy === "price") {
      const { runId } = this.run.spec;
      const error = "A price is not known, so the limit of AI credits cannot be enforced.";
      const drainedNanoAiu = nanoOf(this.run, this.#ports);
      this.end({ status: "error", error, failure: { type: "factory_accounting_incomplete", runId, drainedNanoAiu } });
      throw new FactoryError("factory_limit_reached", error, runId);
    }
    if (used >= maxAiCredits || stoppedBy === "cost") throw this.reach("maxAiCredits", maxAiCredits);
    return (maxAiCredits - used) * USD_PER_CREDIT;
  }

  async #log(text: string): Promise<void> {
    const lines = [{ kind: "log" as const, text: clip(text, MAX_ERROR_CHARACTERS) }];
    await this.#ports.emit("troupe.factory_progress", { runId: this.run.spec.runId, lines });
  }

  #broke(error: unknown): void {
    if (!this.factory.isThere()) {
      this.end({ status: "halted", reason: "The extension that runs this factory has ended." });
      return;
    }
    const message = error instanceof Error ? error.message : String(error);
    this.end({ status: "error", error: clip(message, MAX_ERROR_CHARACTERS) });
  }
}

const labelOf = ({ label, agent }: AgentOptions): string => clip(label ?? agent ?? "agent", MAX_LABEL_CHARACTERS);

/** Returns the same key for equal calls, whatever the order of their members. */
function keyOf(prompt: string, options: AgentOptions): string {
  return createHash("sha256")
    .update(canonical([prompt, options as Json]))
    .digest("hex");
}

function canonical(value: Json | undefined): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value ?? null);
  const members = Object.keys(value)
    .filter((key) => value[key] !== undefined)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`);
  return `{${members.join(",")}}`;
}
