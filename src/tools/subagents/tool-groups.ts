import type { WorkerStep } from "./coordination.ts";

/** A worker that has one of these can look for itself. */
export const WORKSPACE_TOOLS: readonly string[] = ["view", "glob", "grep"];

/** What a group gives, in names of its coordinator's tools. What `environment` gives is the worker's own. */
const READ_GROUPS: Readonly<Record<string, readonly string[]>> = {
  environment: [],
  workspace: WORKSPACE_TOOLS,
  diff: ["bash"],
  git: ["bash"],
  memory: [],
  plans: ["view"],
  tasks: [],
  rules_skills: ["skill"],
  web: ["web_fetch", "web_search"],
};

/** Known, and never for a worker. */
const WITHHELD_GROUPS: ReadonlySet<string> = new Set([
  ...["shell_read", "shell_write", "git_write", "memory_write", "plans_write", "tasks_write", "rules_skills_write"],
]);

export const GROUP_NAMES: readonly string[] = Object.keys(READ_GROUPS);

export interface Provision {
  readonly groups: readonly string[];
  /** Names of tools, without `submit_result`, each at most once. */
  readonly tools: readonly string[];
  /** What whoever watches must know about the choice. */
  readonly steps: readonly WorkerStep[];
}

/** The tools of a worker: those of its groups that its coordinator has, and none that could write or start agents. */
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
  const tools = [...new Set(groups.flatMap((group) => READ_GROUPS[group] ?? []))].filter((tool) =>
    available.includes(tool),
  );
  return {
    groups,
    tools,
    steps: [
      ...(unknown.length > 0 ? [warning("toolgroups-unknown", "Unknown tool groups", unknownNote(unknown))] : []),
      ...(withheld.length > 0
        ? [warning("toolgroups-withheld", "Tool groups not given to workers", withheld.join(", "))]
        : []),
      ...(fallsBack
        ? [warning("toolgroups-fallback", "No usable tool group named", `Used instead: ${groups.join(", ")}`)]
        : []),
      { stepId: "provisioned-tools", title: "Tools", status: "info", note: tools.join(", ") || "none" },
    ],
  };
}

/** `workspace_read` and `workspace` are one group. */
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
