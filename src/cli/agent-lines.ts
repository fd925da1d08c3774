import { clip, plural } from "../lib/text.ts";
import type { SessionEvent } from "../protocol/event.ts";
import { RESULT } from "./cards.ts";
import { isBusy, type Member, type Tree } from "./tree.ts";

/** What became of agents, as plain lines; `tree` knows of the event already. */
export function agentLine(event: SessionEvent, tree: Tree): string | undefined {
  if (event.type === "subagent.started") {
    const member = tree.get(event.agentId);
    return member && `${nameOf(member)} started: ${clip(member.description, 100)}`;
  }
  if (event.type === "troupe.subagent_step") {
    const member = tree.get(event.agentId);
    const result = event.data.stepId === RESULT ? member?.card?.result : undefined;
    return member && result && `${nameOf(member)} ${result.status}: ${clip(result.summary, 200)}`;
  }
  if (event.type !== "troupe.task_state") return undefined;
  const { from, to, taskId } = event.data;
  const member = tree.get(taskId);
  if (!member || isBusy({ status: to })) return undefined;
  // One that was idle did nothing since it was last told of, unless someone stopped it.
  if (member.began === "past" && member.reason === "interrupted") {
    return `${nameOf(member)} was cut off when its process ended`;
  }
  if (from !== "queued" && from !== "running") return to === "cancelled" ? `${nameOf(member)} was stopped` : undefined;
  if (from === "queued") return `${nameOf(member)} was stopped before it began`;
  return `${nameOf(member)} ${endText(member)}`;
}

export const nameOf = ({ id, agentType }: Member): string => `${id} (${agentType})`;

const endings: Record<NonNullable<Member["reason"]>, string> = {
  finished: "finished in",
  empty: "ended without an answer after",
  limit: "was stopped by a limit after",
  error: "failed after",
  stopped: "was stopped after",
  interrupted: "was cut off after",
  invalid_output: "gave an answer that does not fit its schema, after",
};

function endText(member: Member): string {
  const { startedAt, endedAt = startedAt, spent, spentBefore, error } = member;
  const facts = [
    `${endings[member.reason ?? "finished"]} ${((endedAt - startedAt) / 1000).toFixed(1)} s`,
    plural(spent.tools - spentBefore.tools, "tool"),
    `${(spent.tokens - spentBefore.tokens).toLocaleString("en-US")} tokens`,
  ].join(", ");
  return error === undefined ? facts : `${facts}: ${clip(error, 200)}`;
}

/** Which calls did not succeed. A denial that a warning has told of is not told twice. */
export class CallEnds {
  readonly #names = new Map<string, string>();
  readonly #told: string[] = [];

  failureIn(event: SessionEvent): string | undefined {
    const who = event.agentId === undefined ? "" : `${event.agentId}: `;
    if (event.type === "session.warning" && event.data.warningType === "permission_denied") {
      const [, toolName = ""] = /^(\S+) denied \(/.exec(event.data.message) ?? [];
      this.#told.push(`${who}${toolName}`);
    }
    if (event.type === "tool.execution_start") this.#names.set(event.data.toolCallId, event.data.toolName);
    if (event.type !== "tool.execution_complete") return undefined;
    const { toolCallId, success, error } = event.data;
    const what = `${who}${this.#names.get(toolCallId) ?? "a tool"}`;
    this.#names.delete(toolCallId);
    if (success || error?.code === "interrupted") return undefined;
    const isDenied = error?.code === "denied" || error?.code === "rejected";
    if (isDenied && this.#isTold(what)) return undefined;
    const [reason = ""] = (error?.message ?? "").trim().split("\n");
    return `${what} ${isDenied ? "denied" : "failed"}: ${clip(reason, 120)}`;
  }

  #isTold(what: string): boolean {
    const place = this.#told.indexOf(what);
    if (place >= 0) this.#told.splice(place, 1);
    return place >= 0;
  }
}
