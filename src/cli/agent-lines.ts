import { clip, plural } from "../lib/text.ts";
import type { SessionEvent } from "../protocol/event.ts";
import { isBusy, type Member, type Tree } from "./tree.ts";

/** What became of agents, as plain lines; `tree` knows of the event already. */
export function agentLine(event: SessionEvent, tree: Tree): string | undefined {
  if (event.type === "subagent.started") {
    const member = tree.get(event.agentId);
    return member && `${nameOf(member)} started: ${clip(member.description, 100)}`;
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
