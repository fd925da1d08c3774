/** What stands beside a summary because it must not depend on a model's memory: who is at work, and what is to be done. */
import type { Standing } from "../context/compact-summary.ts";
import { clip, sanitiseLine } from "../lib/text.ts";
import type { Registry } from "../tasks/registry.ts";

interface TodoRow {
  readonly id: string;
  readonly status: string;
  readonly title?: string;
}

const MAX_TODOS = 100;
const MAX_AGENTS = 50;
const MAX_LINE_CHARACTERS = 200;

/** For the agent with this cache key: the session's id, and for all but the main agent a slash and its own. */
export async function standingOf(
  cacheKey: string,
  what: { readonly readTodos?: () => Promise<readonly TodoRow[]>; readonly tasks?: Registry | undefined },
): Promise<Standing> {
  const viewer = cacheKey.split("/")[1];
  // Todos are the main agent's list.
  const rows = viewer === undefined ? ((await what.readTodos?.().catch(() => [])) ?? []) : [];
  const todos = lines(
    // What is done may be forgotten first.
    [...rows].sort((a, b) => Number(a.status === "done") - Number(b.status === "done")),
    MAX_TODOS,
    ({ id, status, title = "" }) => `${id} [${status}] ${title}`,
  );
  const views = (what.tasks?.list({ viewer, includeEnded: false }) ?? []).filter(({ relation }) =>
    viewer === undefined ? true : relation === "child" || relation === "descendant",
  );
  const agents = lines(
    views,
    MAX_AGENTS,
    ({ id, agentType, status, description }) => `agent_id: ${id} (${agentType}), ${status}: ${description}`,
  );
  return { ...(todos !== "" && { todos }), ...(agents !== "" && { agents }) };
}

function lines<T>(rows: readonly T[], most: number, lineOf: (row: T) => string): string {
  const shown = rows.slice(0, most).map((row) => `- ${clip(sanitiseLine(lineOf(row)).trim(), MAX_LINE_CHARACTERS)}`);
  const more = rows.length > most ? [`- and ${rows.length - most} more`] : [];
  return [...shown, ...more].join("\n");
}
