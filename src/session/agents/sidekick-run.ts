/** Runs a sidekick: the same loop as other agents, with smaller limits. Its only output is its inbox messages. */

import { filledIn } from "../../commands/lines.ts";
import { defined } from "../../lib/defined.ts";
import { stoppable } from "../../lib/node/stoppable.ts";
import { quoted } from "../../lib/quoting.ts";
import { clip } from "../../lib/text.ts";
import type { LimitReached } from "../../loop/run.ts";
import { allowsByName } from "../../permissions/rules.ts";
import type { Emit, EventData, EventType } from "../../protocol/event.ts";
import type { AnswerEnd } from "../../tasks/ports.ts";
import { sidekickOnlyTools } from "../../tools/builtin.ts";
import type { InboxSender } from "../../tools/memory/inbox.ts";
import type { Tool } from "../../tools/tool.ts";
import { ToolError } from "../../tools/tool-error.ts";
import type { Limits } from "../budget/budget.ts";
import { type Amount, addAmounts, type Expected, nothing } from "../budget/reservations.ts";
import type { Conversation } from "../conversation.ts";
import { closeOpen } from "../recover.ts";
import { Broker } from "../requests/broker.ts";
import { transcriptOf } from "../transcript.ts";
import { bindSessionHooks } from "../turn/hooked-calls.ts";
import { type AgentSetup, type AgentTask, runAgentAnswer } from "./agent-run.ts";
import messageText from "./sidekick-brief.md";
import movedText from "./sidekick-moved.md";
import rulesText from "./sidekick-rules.md";
import type { SidekickDefinition, SidekickParts, TriggerEvent } from "./sidekicks.ts";

type EndReason = EventData<"troupe.sidekick_ended">["reason"];

/** A sidekick that is starting or running. */
export interface ActiveSidekick {
  /** Passes a new event to the running sidekick. Returns false if it has already ended. */
  pass(news: TriggerEvent): boolean;
  stop(reason: EndReason): void;
}

interface SidekickRunParts extends SidekickParts {
  readonly definition: SidekickDefinition;
  readonly agentId: string;
  readonly notes: readonly string[];
  readonly resolved: { readonly tools: readonly string[]; readonly model: string };
  readonly conversation: Conversation;
  readonly emit: Emit;
  send(entry: Omit<EventData<"troupe.inbox_entry">, "entryId">): Promise<string>;
  /** Adds to the usage of all sidekicks, which share one part of the session's limits. */
  spend(amount: Amount): void;
  spent(): Amount;
}

/** Limits per event for a definition without its own. */
const USUAL_LIMITS = { turns: 12, seconds: 120 } as const;
/** The part of the session's limits that all sidekicks may use together. */
const SHARE = 0.25;
const SHARED_BUDGET = "#sidekicks";
const MAX_MESSAGE_CHARACTERS = 8_000;
const SENDER_TYPE = "sidekick-agent";

export class SidekickRun implements ActiveSidekick {
  readonly #parts: SidekickRunParts;
  readonly #stop = stoppable();
  readonly #broker: Broker;
  #reason: EndReason | undefined;
  #triggers: TriggerEvent[] = [];
  #current: TriggerEvent | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Messages sent since the last event. */
  #sentNow = 0;
  #spentNow: Amount = nothing;
  #sent = 0;
  #hasEnded = false;

  constructor(parts: SidekickRunParts) {
    this.#parts = parts;
    // No user is attached to a sidekick: calls that need approval are denied without asking.
    this.#broker = new Broker({ emit: parts.emit, stamp: parts.settings.stamp });
  }

  pass(news: TriggerEvent): boolean {
    if (!this.#hasEnded) this.#triggers.push(news);
    return !this.#hasEnded;
  }

  stop(reason: EndReason): void {
    this.#reason ??= reason;
    this.#stop.abort();
  }

  /** Runs until there are no more events. Its end is always logged. */
  async run(news: readonly TriggerEvent[]): Promise<void> {
    const { budget, agentId, definition } = this.#parts;
    this.#triggers.push(...news);
    const unsubscribe = budget.standsBack(agentId, () => this.stop("limit"));
    let end: AnswerEnd = { kind: "empty" };
    try {
      while (this.#triggers.length > 0 && !this.#stop.signal.aborted) end = await this.#answer();
    } catch (error) {
      end = { kind: "failed", error: error instanceof Error ? error.message : String(error) };
    } finally {
      this.#hasEnded = true;
      clearTimeout(this.#timer);
      unsubscribe();
      budget.release(agentId);
    }
    const reason = this.#reason ?? reasonOf(end);
    const error = reason === "error" && end.kind === "failed" ? { error: clip(end.error, 500) } : {};
    if (this.#current)
      await this.#emit("troupe.sidekick_ended", { name: definition.name, reason, sent: this.#sent, ...error });
  }

  async #answer(): Promise<AnswerEnd> {
    const { settings, hooks, conversation, emit } = this.#parts;
    const messages = await this.#take();
    const actor = this.#task();
    const agentSetup = await this.#agentSetup(actor);
    const { sessionId: session } = settings.log;
    const scope = { session, sessionId: `${session}/${actor.id}`, cwd: agentSetup.cwd };
    try {
      await closeOpen(conversation, emit);
      return await runAgentAnswer({
        task: actor,
        agentDescription: this.#parts.definition.description,
        messages,
        agentSetup,
        settings: { ...settings, streaming: false },
        conversation,
        emit: (type, data) => this.#emit(type, data),
        broker: this.#broker,
        hooks: hooks && bindSessionHooks(hooks, scope, emit),
        signal: this.#stop.signal,
        transcriptPath: transcriptOf(settings.log),
        priority: "low",
        takeMessages: () => [],
        takeNotices: async (say) => {
          for (const { id: interactionId, content } of await this.#take()) {
            await say("user.message", { content, interactionId, source: "agent" });
          }
        },
        limitReached: (expected) => this.#reserve(expected),
        usageCounted: () => this.#parts.budget.release(actor.id),
        activity: () => undefined,
      });
    } finally {
      await agentSetup.release();
    }
  }

  /** Returns the new events as messages. Time, sends and budget start again with each event. */
  async #take(): Promise<readonly { readonly id: string; readonly content: string }[]> {
    const taken = this.#triggers;
    this.#triggers = [];
    const { definition, resolved } = this.#parts;
    for (const next of taken) {
      this.#current = next;
      this.#sentNow = 0;
      this.#spentNow = nothing;
      this.#startClock();
      const { event: trigger, id: triggerId } = next;
      await this.#emit("troupe.sidekick_triggered", {
        name: definition.name,
        trigger,
        triggerId,
        model: resolved.model,
      });
    }
    return taken.map((news) => ({ id: news.id, content: wordsOf(news) }));
  }

  #startClock(): void {
    const { seconds } = { ...USUAL_LIMITS, ...this.#parts.definition.limits };
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.stop("limit"), Math.min(seconds * 1000, 2 ** 31 - 1)).unref();
  }

  #task(): AgentTask {
    const { definition, agentId, resolved, conversation } = this.#parts;
    const { name: agentName, displayName: agentDisplayName, description } = definition;
    const tools = [...resolved.tools];
    const isBriefed = conversation.entries.length > 0;
    return {
      id: agentId,
      parentId: undefined,
      tools,
      isBriefed,
      activeMs: 0,
      spec: {
        taskId: agentId,
        toolCallId: this.#current?.id ?? agentId,
        kind: "agent",
        agentName,
        agentDisplayName,
        description,
        prompt: "",
        mode: "background",
        depth: 1,
        multiTurn: false,
        model: resolved.model,
        tools,
      },
    };
  }

  async #agentSetup(actor: AgentTask): Promise<AgentSetup> {
    const { options, definition, notes, resolved } = this.#parts;
    const agentSetup = await options.agentSetup(actor, definition);
    const { system, tools } = agentSetup.promptAndTools;
    // An MCP server cannot vouch for its own tools: only those that the user allows by name are offered.
    const isGiven = ({ name, origin }: Tool): boolean =>
      origin?.kind === "mcp" ? allowsByName(agentSetup.policy.rules, origin) : resolved.tools.includes(name);
    const prelude = [agentSetup.prelude, ...notes].filter((text) => text !== undefined && text !== "").join("\n\n");
    return {
      ...agentSetup,
      ...(prelude !== "" && { prelude }),
      promptAndTools: {
        system: `${system}\n\n${rulesText.trim()}`,
        tools: [...tools.filter(isGiven), ...sidekickOnlyTools.map((make) => make(this.#sender()))],
      },
    };
  }

  #sender(): InboxSender {
    const { definition, send } = this.#parts;
    const { maxSendsPerTurn: maxSends } = definition.sidekick;
    return {
      maxSends,
      send: async ({ summary, content }) => {
        if (this.#stop.signal.aborted)
          throw new ToolError("Too late: the user has sent another message.", { code: "interrupted" });
        if (this.#sentNow >= maxSends) {
          throw new ToolError(`Not sent: you have already sent ${maxSends} for this message, the maximum. Stop here.`);
        }
        this.#sentNow++;
        try {
          const triggerId = this.#current?.id;
          const entryId = await send({
            senderName: definition.name,
            senderType: SENDER_TYPE,
            summary: oneLine(summary),
            content,
            ...defined({ triggerId }),
          });
          this.#sent++;
          return entryId;
        } catch (cause) {
          this.#sentNow--;
          throw new ToolError("Not sent: the session's log cannot be written at the moment.", { cause });
        }
      },
    };
  }

  /**
   * Emits an event, except warnings: denials are in the log, but no user is warned about a call they did not request.
   */
  #emit<T extends EventType>(type: T, data: EventData<T>): Promise<void> {
    if (type === "session.warning") return Promise.resolve();
    if (type === "troupe.usage") {
      const { inputTokens, outputTokens, costUsd } = data as EventData<"troupe.usage">;
      const used = { turns: 1, tokens: inputTokens + outputTokens, costUsd };
      this.#spentNow = addAmounts(this.#spentNow, used);
      this.#parts.spend(used);
    }
    return this.#parts.emit(type, data);
  }

  #reserve(expected: Expected): LimitReached | undefined {
    const { agentId, settings, definition, budget, spent } = this.#parts;
    const { seconds: _, ...own } = { ...USUAL_LIMITS, ...definition.limits };
    const { limits = {} } = settings;
    const shares = [
      { owner: agentId, limits: own, spent: this.#spentNow },
      { owner: SHARED_BUDGET, limits: partOf(limits), spent: spent() },
    ];
    return budget.reserve(agentId, { limits, shares }, expected);
  }
}

function partOf({ turns, tokens, costUsd }: Limits): Limits {
  return {
    ...(turns !== undefined && { turns: Math.floor(turns * SHARE) }),
    ...(tokens !== undefined && { tokens: Math.floor(tokens * SHARE) }),
    ...(costUsd !== undefined && { costUsd: costUsd * SHARE }),
  };
}

/** Returns the message for an event. Text written by others is quoted as data. */
function wordsOf({ about }: TriggerEvent): string {
  if ("content" in about) {
    const message = about.content === "" ? (about.transformedContent ?? "") : about.content;
    return filledIn(messageText, { message: quoted(clip(message, MAX_MESSAGE_CHARACTERS)) });
  }
  const scope = Object.entries(about).map(([key, value]) => `${key}: ${value}`);
  return filledIn(movedText, { scope: quoted(scope.join("\n")) });
}

function reasonOf(end: AnswerEnd): EndReason {
  switch (end.kind) {
    case "failed":
      return "error";
    case "limit":
      return "limit";
    case "aborted":
      return "stopped";
    default:
      return "finished";
  }
}

const oneLine = (text: string): string => text.replace(/\s+/g, " ").trim();
