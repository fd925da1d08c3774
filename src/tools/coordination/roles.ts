import * as z from "zod";
import { isObject } from "../../lib/json.ts";
import review from "./roles/review.md";
import scout from "./roles/scout.md";
import securityAnalyst from "./roles/security-analyst.md";

/** A kind of worker. To add one, add a row here or in the settings. */
export interface RoleDefinition {
  readonly id: string;
  readonly label: string;
  /** Instructions for the worker, in Markdown. */
  readonly prompt: string;
  /** Names of tool groups. */
  readonly groups: readonly string[];
}

export const builtinRoles: readonly RoleDefinition[] = [
  {
    id: "scout",
    label: "Scout",
    prompt: scout,
    groups: ["environment", "workspace", "git", "memory", "plans", "rules_skills"],
  },
  { id: "review", label: "Review", prompt: review, groups: ["environment", "workspace", "diff", "tasks"] },
  {
    id: "security_analyst",
    label: "Security Analyst",
    prompt: securityAnalyst,
    groups: ["environment", "workspace", "diff", "git"],
  },
];

const MAX_CONFIGURED_ROLES = 20;
const MAX_PROMPT_CHARACTERS = 4000;
const ROLE_ID = /^[a-z][a-z0-9_]{0,39}$/;

const roleSettings = () =>
  z.object({
    label: z.string().trim().min(1).max(60).optional(),
    prompt: z.string().trim().min(1).max(MAX_PROMPT_CHARACTERS),
    groups: z.array(z.string().max(40)).max(20).optional(),
  });

/**
 * Merges the built-in roles with those of the settings, `{"<id>": {label?, prompt, groups?}}`. A role with a built-in
 * id replaces that one. Invalid roles are skipped and reported.
 */
export function rolesFrom(settings: unknown): { roles: readonly RoleDefinition[]; problems: readonly string[] } {
  if (settings === undefined) return { roles: builtinRoles, problems: [] };
  if (!isObject(settings)) return { roles: builtinRoles, problems: ["subagent roles must be an object"] };
  const roles = new Map(builtinRoles.map((role) => [role.id, role]));
  const problems: string[] = [];
  const entries = Object.entries(settings);
  const schema = roleSettings();
  if (entries.length > MAX_CONFIGURED_ROLES) problems.push(`only the first ${MAX_CONFIGURED_ROLES} roles are used`);
  for (const [id, value] of entries.slice(0, MAX_CONFIGURED_ROLES)) {
    const parsed = schema.safeParse(value);
    if (!ROLE_ID.test(id) || UNSAFE_KEYS.has(id)) problems.push(`role ${JSON.stringify(id)}: not a valid id`);
    else if (!parsed.success) problems.push(`role ${id}: ${z.prettifyError(parsed.error)}`);
    else roles.set(id, roleOf(id, parsed.data));
  }
  return { roles: [...roles.values()], problems };
}

const UNSAFE_KEYS: ReadonlySet<string> = new Set(["constructor", "prototype"]);

function roleOf(id: string, { label, prompt, groups }: z.infer<ReturnType<typeof roleSettings>>): RoleDefinition {
  const words = id.split("_").map((word) => `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`);
  return { id, label: label ?? words.join(" "), prompt, groups: groups ?? ["environment", "workspace"] };
}
