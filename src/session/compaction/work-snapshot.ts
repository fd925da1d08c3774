/**
 * The state of work that accompanies a summary, so that it does not depend on a model's memory: plan, todos, agents,
 * skills.
 */
import type { CarriedState } from "../../context/compact-summary.ts";
import { clip, sanitiseLine } from "../../lib/text.ts";
import type { EventData, SessionEvent } from "../../protocol/event.ts";
import type { Registry } from "../../tasks/registry.ts";

interface TodoRow {
  readonly id: string;
  readonly status: string;
  readonly title?: string;
}

const MAX_TODOS = 100;
const MAX_AGENTS = 50;
const MAX_SKILLS = 20;
const MAX_LINE_CHARACTERS = 200;

interface Records {
  readonly readTodos?: () => Promise<readonly TodoRow[]>;
  readonly readPlan?: () => Promise<string>;
  readonly tasks?: Registry | undefined;
  readonly events?: readonly SessionEvent[];
}

/**
 * Returns the state for one agent. Its cache key is the session's id, followed by a slash and the agent's id for
 * subagents.
 */
export async function workSnapshot(cacheKey: string, records: Records): Promise<CarriedState> {
  const viewer = cacheKey.split("/")[1];
  // Only the main agent has todos and the plan.
  const rows = viewer === undefined ? ((await records.readTodos?.().catch(() => [])) ?? []) : [];
  const plan = viewer === undefined ? ((await records.readPlan?.().catch(() => "")) ?? "").trim() : "";
  const skills = skillsOf(records.events ?? [], viewer);
  const todos = lines(
    // Done items come last, so that they are cut first.
    [...rows].sort((a, b) => Number(a.status === "done") - Number(b.status === "done")),
    MAX_TODOS,
    ({ id, status, title = "" }) => `${id} [${status}] ${title}`,
  );
  const views = (records.tasks?.list({ viewer, includeEnded: false }) ?? []).filter(({ relation }) =>
    viewer === undefined ? true : relation === "child" || relation === "descendant",
  );
  const agents = lines(
    views,
    MAX_AGENTS,
    ({ id, agentType, status, description }) => `agent_id: ${id} (${agentType}), ${status}: ${description}`,
  );
  return {
    ...(plan !== "" && { plan }),
    ...(todos !== "" && { todos }),
    ...(agents !== "" && { agents }),
    ...(skills !== "" && { skills }),
  };
}

/** Returns the agent's skills: the last one in full, earlier ones by name and path. */
function skillsOf(events: readonly SessionEvent[], agentId: string | undefined): string {
  const invoked = new Map<string, EventData<"skill.invoked">>();
  for (const event of events) {
    if (event.type !== "skill.invoked" || event.agentId !== agentId) continue;
    invoked.delete(event.data.name);
    invoked.set(event.data.name, event.data);
  }
  const last = [...invoked.values()].at(-1);
  if (!last) return "";
  const earlier = lines([...invoked.values()].slice(0, -1), MAX_SKILLS, ({ name, path }) => `${name} (${path})`);
  const used = `Used last, ${sanitiseLine(last.name)} (${sanitiseLine(last.path)}):\n${last.content}`;
  return earlier === "" ? used : `Used before, read them again if you need them:\n${earlier}\n${used}`;
}

function lines<T>(rows: readonly T[], most: number, lineOf: (row: T) => string): string {
  const shown = rows.slice(0, most).map((row) => `- ${clip(sanitiseLine(lineOf(row)).trim(), MAX_LINE_CHARACTERS)}`);
  const more = rows.length > most ? [`- and ${rows.length - most} more`] : [];
  return [...shown, ...more].join("\n");
}
