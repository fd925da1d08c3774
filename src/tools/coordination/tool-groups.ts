import type { WorkerStep } from "./coordination.ts";

/** A worker with one of these can examine the workspace itself. */
export const WORKSPACE_TOOLS: readonly string[] = ["view", "glob", "grep"];

interface ToolGroup {
  /** Names of tools that the worker has if its coordinator has them. */
  readonly shared: readonly string[];
  /** A tool of workers only. It reads what the session's agents know anyway, so it needs no permission. */
  readonly own?: string;
  /** The worker has `own` only if its coordinator has one of these. */
  readonly ownNeeds?: readonly string[];
}

const READ_GROUPS: Readonly<Record<string, ToolGroup>> = {
  environment: { shared: [], own: "environment_detect" },
  workspace: { shared: WORKSPACE_TOOLS },
  diff: { shared: ["bash"] },
  git: { shared: ["bash"] },
  memory: { shared: [], own: "memory_read" },
  plans: { shared: [], own: "plan_read" },
  tasks: { shared: [], own: "task_list", ownNeeds: ["sql", "update_todo"] },
  rules_skills: { shared: ["skill"] },
  web: { shared: ["web_fetch", "web_search"] },
};

/** Tools that exist for workers only. They grant nothing: no coordinator has them, and its workers may. */
export const WORKER_ONLY_TOOLS: ReadonlySet<string> = new Set([
  ...Object.values(READ_GROUPS).flatMap(({ own }) => own ?? []),
  "submit_result",
]);

/** Known groups that no worker gets. */
const WITHHELD_GROUPS: ReadonlySet<string> = new Set([
  ...["shell_read", "shell_write", "git_write", "memory_write", "plans_write", "tasks_write", "rules_skills_write"],
]);

export const GROUP_NAMES: readonly string[] = Object.keys(READ_GROUPS);

export interface Provision {
  readonly groups: readonly string[];
  /** Names of the coordinator's tools, each at most once. */
  readonly tools: readonly string[];
  /** Names of worker-only tools, without `submit_result`. */
  readonly own: readonly string[];
  /** Steps that explain the choice to observers. */
  readonly steps: readonly WorkerStep[];
}

/**
 * Returns the tools of a worker: those of its groups that its coordinator has, and none that could write or start
 * agents.
 */
export function provision(what: {
  readonly asked: readonly string[] | undefined;
  readonly defaults: readonly string[];
  readonly available: readonly string[];
}): Provision {
  const { asked = [], defaults, available } = what;
  const named = [...new Set(asked.map(groupName))];
  const known = named.filter(isReadGroup);
  const withheld = named.filter((name) => WITHHELD_GROUPS.has(name));
  const unknown = named.filter((name) => !isReadGroup(name) && !WITHHELD_GROUPS.has(name));
  const fallsBack = named.length > 0 && known.length === 0;
  const groups = known.length > 0 ? known : defaults.map(groupName).filter(isReadGroup);
  const given = groups.flatMap((group) => READ_GROUPS[group] ?? []);
  const tools = [...new Set(given.flatMap(({ shared }) => shared))].filter((tool) => available.includes(tool));
  const own = ownOf(given, available);
  // Git commands require it first.
  if (tools.includes("bash") && !own.includes("environment_detect")) own.unshift("environment_detect");
  return {
    groups,
    tools,
    own,
    steps: [
      ...(unknown.length > 0 ? [warning("toolgroups-unknown", "Unknown tool groups", unknownNote(unknown))] : []),
      ...(withheld.length > 0
        ? [warning("toolgroups-withheld", "Tool groups not given to workers", withheld.join(", "))]
        : []),
      ...(fallsBack
        ? [warning("toolgroups-fallback", "No usable tool group named", `Used instead: ${groups.join(", ")}`)]
        : []),
      { stepId: "provisioned-tools", title: "Tools", status: "info", note: [...tools, ...own].join(", ") || "none" },
    ],
  };
}

function ownOf(groups: readonly ToolGroup[], available: readonly string[]): string[] {
  return groups.flatMap(({ own, ownNeeds }) =>
    own !== undefined && (ownNeeds?.some((name) => available.includes(name)) ?? true) ? [own] : [],
  );
}

/** `workspace_read` and `workspace` are the same group. */
function groupName(name: string): string {
  const plain = name.trim().toLowerCase();
  return plain.endsWith("_read") && plain !== "shell_read" ? plain.slice(0, -"_read".length) : plain;
}

function isReadGroup(name: string): boolean {
  return Object.hasOwn(READ_GROUPS, name);
}

function warning(stepId: string, title: string, note: string): WorkerStep {
  return { stepId, title, status: "warning", note };
}

function unknownNote(unknown: readonly string[]): string {
  const shown = unknown.slice(0, 10).map((name) => JSON.stringify(name.slice(0, 40)));
  return `${shown.join(", ")}. Known: ${GROUP_NAMES.join(", ")}`;
}
