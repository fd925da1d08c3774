/** Reports changes of agents as plain lines. */
import { clip, plural } from "../../lib/text.ts";
import type { Block } from "../../view/blocks.ts";
import { isBusy } from "../../view/draft.ts";
import type { AgentView } from "../../view/view.ts";
import { clipColumns } from "./columns.ts";

/** The fields of an agent whose change is worth a line. */
export type ShownFields = Pick<AgentView, "status" | "lastTool" | "card">;

export const shownFieldsOf = ({ status, lastTool, card }: AgentView): ShownFields => ({ status, lastTool, card });

/**
 * Returns lines for the changes of agents. The start of an agent is reported once, however many messages it answers.
 */
export class AgentLines {
  readonly #started = new Set<string>();

  /** `before` is undefined for a new agent. */
  linesOf(agent: AgentView, before: ShownFields | undefined): string[] {
    const hasBegun = agent.status === "running" && before?.status !== "running";
    if (!hasBegun || this.#started.has(agent.id)) return changes(agent, before);
    this.#started.add(agent.id);
    return [`${nameOf(agent)} started: ${clip(agent.description, 100)}`, ...changes(agent, before)];
  }
}

function changes(agent: AgentView, before: ShownFields | undefined): string[] {
  const lines: string[] = [];
  if (agent.lastTool && agent.lastTool !== before?.lastTool) lines.push(`${agent.id}: ${toolText(agent.lastTool)}`);
  const result = agent.card?.result;
  if (result && result !== before?.card?.result) {
    lines.push(`${nameOf(agent)} ${result.status}: ${clip(result.summary, 200)}`);
  }
  const state = agent.status === before?.status ? undefined : stateLine(agent, before?.status);
  if (state !== undefined) lines.push(`${nameOf(agent)} ${state}`);
  return lines;
}

export const nameOf = ({ id, name }: AgentView): string => `${id} (${name})`;

export const toolText = ({ title }: { readonly title: string }): string => clipColumns(title, 100);

function stateLine(agent: AgentView, from: AgentView["status"] | undefined): string | undefined {
  if (isBusy(agent)) return undefined;
  if (agent.isPast && agent.reason === "interrupted") return "was cut off when its process ended";
  if (from === "queued") return "was stopped before it began";
  // An agent that was idle has done nothing since.
  if (from !== "running") return agent.status === "cancelled" ? "was stopped" : undefined;
  return endText(agent);
}

const endings: Record<NonNullable<AgentView["reason"]>, string> = {
  finished: "finished in",
  empty: "ended without an answer after",
  limit: "was stopped by a limit after",
  error: "failed after",
  stopped: "was stopped after",
  interrupted: "was cut off after",
  invalid_output: "gave an answer that does not fit its schema, after",
};

function endText(agent: AgentView): string {
  const { startedAt, endedAt = startedAt, spent, spentBefore, error } = agent;
  const tokens = ({ inputTokens, outputTokens }: AgentView["spent"]): number => inputTokens + outputTokens;
  const facts = [
    `${endings[agent.reason ?? "finished"]} ${((endedAt - startedAt) / 1000).toFixed(1)} s`,
    plural(spent.tools - spentBefore.tools, "tool"),
    `${(tokens(spent) - tokens(spentBefore)).toLocaleString("en-US")} tokens`,
  ].join(", ");
  return error === undefined ? facts : `${facts}: ${clip(error, 200)}`;
}

export interface BlockLine {
  readonly level: "warning" | "info";
  readonly text: string;
}

/** Returns lines for blocks that a user should see immediately. A denial that a warning reported is not repeated. */
export class BlockLines {
  readonly #reportedDenials: string[] = [];

  lineOf(block: Block): BlockLine | undefined {
    const who = block.agentId === undefined ? "" : `${block.agentId}: `;
    if (block.kind === "notice") return this.#notice(block, who);
    if (block.kind !== "tool" || block.card.state === "done" || block.card.state === "interrupted") return undefined;
    const { name, state, error = "" } = block.card;
    const what = `${who}${name}`;
    const isDenied = state !== "failed";
    if (isDenied && this.#isRepeated(what)) return undefined;
    const [reason = ""] = error.trim().split("\n");
    return { level: "warning", text: `${what} ${isDenied ? "denied" : "failed"}: ${clip(reason, 120)}` };
  }

  #notice({ topic, text, level }: Extract<Block, { kind: "notice" }>, who: string): BlockLine {
    if (topic === "permission_denied") {
      const [, toolName = ""] = /^(\S+) denied \(/.exec(text) ?? [];
      this.#reportedDenials.push(`${who}${toolName}`);
    }
    return { level, text: `${who}${text}` };
  }

  #isRepeated(what: string): boolean {
    const index = this.#reportedDenials.indexOf(what);
    if (index >= 0) this.#reportedDenials.splice(index, 1);
    return index >= 0;
  }
}
