import * as z from "zod";
import { DEFAULT_CONCURRENCY, MAX_WORKERS } from "./coordination.ts";
import type { RoleDefinition } from "./roles.ts";
import { GROUP_NAMES } from "./tool-groups.ts";

const MAX_TASK_CHARACTERS = 20_000;
const WORKER_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

const worker = () =>
  z.object({
    id: z.string().regex(WORKER_ID, { error: "must be 1 to 64 letters, digits, dots, hyphens or underscores" }),
    role: z.string(),
    task: z.string().trim().min(1).max(MAX_TASK_CHARACTERS),
    title: z.string().max(80).optional(),
    successCriteria: z.array(z.string().min(1).max(1000)).max(20).optional(),
    allowedToolGroups: z.array(z.string().max(100)).max(20).optional(),
  });

export type WorkerRequest = Readonly<z.infer<ReturnType<typeof worker>>>;

/** Validates the whole request before any worker starts. */
export function runRequest(roles: readonly RoleDefinition[]) {
  return z
    .strictObject({
      agents: z.array(worker()).describe(`1 to ${MAX_WORKERS} workers`),
      mode: z.enum(["parallel"]).optional().describe("The only mode"),
      maxConcurrency: z
        .number()
        .int()
        .min(1)
        .optional()
        .meta({ description: "At once", maximum: MAX_WORKERS, default: DEFAULT_CONCURRENCY }),
    })
    .superRefine(({ agents }, context) => {
      for (const message of problemsOf(agents, roles)) context.addIssue({ code: "custom", path: ["agents"], message });
    });
}

/** Returns how many workers run at a time. */
export function concurrencyOf(wanted: number | undefined): number {
  return Math.max(1, Math.min(wanted ?? DEFAULT_CONCURRENCY, MAX_WORKERS));
}

function problemsOf(agents: readonly WorkerRequest[], roles: readonly RoleDefinition[]): string[] {
  const known = new Set(roles.map(({ id }) => id));
  const seen = new Set<string>();
  const problems: string[] = [];
  if (agents.length === 0) problems.push("at least one worker is needed");
  if (agents.length > MAX_WORKERS) problems.push(`at most ${MAX_WORKERS} workers per call, not ${agents.length}`);
  for (const { id, role } of agents) {
    if (seen.has(id.toLowerCase())) problems.push(`the id ${JSON.stringify(id)} is used twice`);
    seen.add(id.toLowerCase());
    if (known.has(role)) continue;
    problems.push(`there is no role ${JSON.stringify(role.slice(0, 60))}; roles: ${[...known].join(", ")}`);
  }
  return problems;
}

/** Returns names for display: the title or the role's label, numbered from the second use on. */
export function displayNames(agents: readonly WorkerRequest[], roles: readonly RoleDefinition[]): string[] {
  const taken = new Set<string>();
  return agents.map(({ title, role }) => {
    const label = title?.trim() || (roles.find(({ id }) => id === role)?.label ?? role);
    let name = label;
    for (let number = 2; taken.has(name.toLowerCase()); number++) name = `${label} ${number}`;
    taken.add(name.toLowerCase());
    return name;
  });
}

/** A handwritten schema: the derived one would spell out every limit. */
export function workersSchema(roles: readonly RoleDefinition[]): Record<string, unknown> {
  const text = { type: "string" };
  return {
    minItems: 1,
    maxItems: MAX_WORKERS,
    items: {
      type: "object",
      properties: {
        id: { ...text, description: "Unique" },
        role: { ...text, enum: roles.map(({ id }) => id) },
        task: { ...text, description: "All the worker needs to know" },
        title: { ...text, description: "Display name" },
        successCriteria: { type: "array", items: text },
        allowedToolGroups: { type: "array", items: { ...text, enum: GROUP_NAMES }, description: "Default: the role's" },
      },
      required: ["id", "role", "task"],
    },
  };
}
