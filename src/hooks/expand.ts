/** Expands variables and path templates in the texts of a hook. */
import { defined } from "../lib/defined.ts";
import { childEnvironment } from "../lib/node/child-environment.ts";
import type { HookDefinition } from "./hooks.ts";
import type { HookVariables } from "./url-rules.ts";

export interface HookEnvironment {
  /** The environment of this process; secrets are removed before a program sees it. */
  readonly environment: HookVariables;
  readonly projectRoot: string;
}

/**
 * Returns the environment of a hook's program before its own `env`: the scrubbed environment plus project and plugin
 * paths.
 */
export function hookEnvironment(
  { source }: Pick<HookDefinition, "source">,
  world: HookEnvironment,
): Record<string, string> {
  const { plugin } = source;
  const paths: Record<string, string> = {
    COPILOT_PROJECT_DIR: world.projectRoot,
    CLAUDE_PROJECT_DIR: world.projectRoot,
    [DEPTH_VARIABLE]: String(depthOf(world.environment) + 1),
    ...defined({
      PLUGIN_ROOT: plugin?.root,
      COPILOT_PLUGIN_ROOT: plugin?.root,
      CLAUDE_PLUGIN_ROOT: plugin?.root,
      COPILOT_PLUGIN_DATA: plugin?.data,
      CLAUDE_PLUGIN_DATA: plugin?.data,
    }),
  };
  return childEnvironment(world.environment, { values: paths });
}

const DEPTH_VARIABLE = "TROUPE_HOOK_DEPTH";

/** Returns how many nested hooks started this process; 0 for a troupe that the user started. */
export function depthOf(environment: HookVariables): number {
  const text = environment[DEPTH_VARIABLE] ?? "";
  return /^\d{1,3}$/.test(text) ? Number(text) : 0;
}

/** Expands `$NAME` and `${NAME}`. An unknown name expands to an empty string. */
export function expandVariables(text: string, variables: HookVariables): string {
  return text.replace(/\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))/g, (_, braced: string, bare: string) => {
    const name = braced ?? bare;
    return (Object.hasOwn(variables, name) ? variables[name] : undefined) ?? "";
  });
}

/** Expands `{{project_dir}}` and `{{plugin_data_dir}}`. */
export function expandTemplates(
  text: string,
  { source }: Pick<HookDefinition, "source">,
  world: HookEnvironment,
): string {
  return text.replace(/\{\{\s*(project_dir|plugin_data_dir)\s*\}\}/g, (whole, name: string) => {
    return (name === "project_dir" ? world.projectRoot : source.plugin?.data) ?? whole;
  });
}

/**
 * Expands templates in a shell command. Throws when a path contains characters the shell would interpret, such as
 * `$(…)`.
 */
export function expandShellText(
  text: string,
  definition: Pick<HookDefinition, "source">,
  world: HookEnvironment,
): string {
  const expanded = expandTemplates(text, definition, world);
  const paths = [world.projectRoot, definition.source.plugin?.data ?? ""];
  if (expanded !== text && paths.some((path) => !/^[\p{Letter}\p{Number} _./:@%+,=-]*$/u.test(path)))
    throw new Error("a folder name contains characters that a shell interprets; use $COPILOT_PROJECT_DIR instead");
  return expanded;
}
