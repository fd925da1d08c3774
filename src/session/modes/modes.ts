/**
 * Session modes: interactive, plan and autopilot.
 *
 * A mode determines a section of the system prompt and the available tools. Plan mode also denies writes regardless of
 * permission rules. The mode is stored in the log. This folder also holds scheduled prompts.
 */

import { resolve } from "node:path";
import type { SessionMode } from "../../commands/command.ts";
import { filledIn } from "../../commands/lines.ts";
import { baseName } from "../../permissions/case-fold.ts";
import { isSink } from "../../permissions/devices.ts";
import type { PermissionQuestion, Policy } from "../../permissions/policy.ts";
import { allowsByName, type Rule } from "../../permissions/rules.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { Tool } from "../../tools/tool.ts";
import type { PlanAction } from "../../tools/user/user.ts";
import autopilotSection from "./mode-autopilot.md";
import planSection from "./mode-plan.md";

const sessionModes: readonly SessionMode[] = ["interactive", "plan", "autopilot"];

/** `data` of `session.mode_changed`. */
export interface ModeChange {
  readonly previousMode: SessionMode;
  readonly newMode: SessionMode;
}

/** Returns the mode from the flags. Throws a `TroupeError` if they name different modes. */
export function initialMode(flags: { mode?: string; autopilot?: boolean; plan?: boolean }): SessionMode {
  const named = sessionModes.find((mode) => mode === flags.mode);
  if (flags.mode !== undefined && named === undefined) {
    const hint = `Choose one of ${sessionModes.join(", ")}.`;
    throw new TroupeError("usage", `--mode ${JSON.stringify(flags.mode.slice(0, 40))} is not a mode.`, { hint });
  }
  const wanted = new Set([
    ...(named === undefined ? [] : [named]),
    ...(flags.autopilot ? (["autopilot"] as const) : []),
    ...(flags.plan ? (["plan"] as const) : []),
  ]);
  if (wanted.size > 1) {
    const hint = "Give one of --mode, --autopilot and --plan.";
    throw new TroupeError("usage", `A session starts in one mode, not in ${[...wanted].join(" and ")}.`, { hint });
  }
  const [mode = "interactive"] = wanted;
  return mode;
}

/** Returns the last mode in the log, or undefined if it was never changed. Accepts events of unknown types. */
export function modeOf(events: Iterable<{ readonly type: string; readonly data: unknown }>): SessionMode | undefined {
  let found: SessionMode | undefined;
  for (const { type, data } of events) {
    if (type !== "session.mode_changed") continue;
    const { newMode } = data as Partial<ModeChange>;
    found = sessionModes.find((mode) => mode === newMode) ?? found;
  }
  return found;
}

/** Returns undefined if the mode stays the same: nothing is emitted then. */
export function modeChange(previousMode: SessionMode, newMode: SessionMode): ModeChange | undefined {
  return previousMode === newMode ? undefined : { previousMode, newMode };
}

/** Returns the mode that follows an approved plan. */
export function afterPlan(action: PlanAction): { readonly mode: SessionMode; readonly startsFleet: boolean } {
  const isAlone = action === "autopilot" || action === "autopilot_fleet";
  return { mode: isAlone ? "autopilot" : "interactive", startsFleet: action === "autopilot_fleet" };
}

/** Returns the mode's section of the system prompt. */
export function modeSection(mode: SessionMode, { planFile }: { readonly planFile: string }): string | undefined {
  switch (mode) {
    case "interactive":
      return undefined;
    case "autopilot":
      return autopilotSection.trim();
    case "plan":
      return filledIn(planSection, { plan: planFile });
  }
}

export function toolsInMode(mode: SessionMode, tools: readonly Tool[]): readonly Tool[] {
  return tools.filter(({ modes }) => modes?.includes(mode) ?? true);
}

export interface PlanPolicy {
  /** The given policy, plus permission to write the plan without asking. */
  readonly policy: Policy;
  /** Returns the reason to deny, or undefined. Evaluated before every rule, approval and mode, for each agent. */
  reasonToRefuse(question: PermissionQuestion): string | undefined;
}

/**
 * Plan mode for the main agent and its subagents: only the plan may be written. A deny rule cannot express "all but one
 * file", so this check comes before the rules and nothing overrides it. `planFile` is absolute.
 */
export function planPolicy(policy: Policy, planFile: string): PlanPolicy {
  const plan: Rule = {
    text: `write(${planFile})`,
    effect: "allow",
    source: { name: "plan mode" },
    target: { kind: "write", path: planFile },
  };
  return {
    policy: {
      ...policy,
      // Read again each time: clients may change the rules while the session is open.
      get rules() {
        return [...policy.rules, plan];
      },
    },
    reasonToRefuse: (question) => refusedWhilePlanning(question, policy, planFile),
  };
}

function refusedWhilePlanning(question: PermissionQuestion, policy: Policy, planFile: string): string | undefined {
  const { access, cwd } = question;
  switch (access.kind) {
    case "write": {
      // File tools resolve `..` textually.
      const isPlan = policy.resolvePath(resolve(cwd, access.path), cwd) === resolvedPlanPath(planFile, policy, cwd);
      return isPlan ? undefined : `plan mode is on, and ${access.path} is not the plan`;
    }
    case "shell":
      return onlyReads(question) ? undefined : "plan mode is on, and this is not certain to only read";
    case "sandbox-off":
      return "plan mode is on, and nothing leaves the sandbox";
    case "mcp":
      if (access.readOnly || allowsByName(policy.rules, access)) return undefined;
      return `plan mode is on, and no rule names this tool, such as ${access.serverName}(${access.toolName})`;
    default:
      return undefined;
  }
}

/** Resolves only the plan's folder: a plan that is a link to another file is not the plan. */
function resolvedPlanPath(planFile: string, policy: Policy, cwd: string): string {
  const slash = planFile.lastIndexOf("/");
  return `${policy.resolvePath(planFile.slice(0, slash) || "/", cwd)}${planFile.slice(slash)}`;
}

/** Whether a command is plain, redirects into no file, and uses only programs known to be read-only. */
function onlyReads({ analysis }: PermissionQuestion): boolean {
  if (!analysis?.plain) return false;
  const { commands, redirections, directories } = analysis;
  // Another directory may be another repository, whose configuration could make git run programs.
  if (directories.length > 0 && commands.some(({ words }) => baseName(words[0] ?? "") === "git")) return false;
  const writesNothing = redirections.every(({ write, target }) => !write || isSink(target));
  return writesNothing && commands.length > 0 && commands.every(({ readOnly, escapes }) => readOnly && !escapes);
}
