/** What a hook's words stand for: variables it may see, and the two places it may name. */
import { childEnvironment } from "../lib/node/child-environment.ts";
import type { HookDefinition } from "./hooks.ts";
import type { Environment } from "./url-rules.ts";

export interface HookWorld {
  /** Of this process; scrubbed before any program sees it. */
  readonly environment: Environment;
  readonly projectRoot: string;
}

/** The environment of a hook's program, before its own `env`: the scrubbed one and the places it works with. */
export function hookEnvironment({ source }: Pick<HookDefinition, "source">, world: HookWorld): Record<string, string> {
  const { plugin } = source;
  const places: Record<string, string> = {
    COPILOT_PROJECT_DIR: world.projectRoot,
    CLAUDE_PROJECT_DIR: world.projectRoot,
    [DEPTH_VARIABLE]: String(depthOf(world.environment) + 1),
    ...(plugin && {
      PLUGIN_ROOT: plugin.root,
      COPILOT_PLUGIN_ROOT: plugin.root,
      CLAUDE_PLUGIN_ROOT: plugin.root,
      COPILOT_PLUGIN_DATA: plugin.data,
      CLAUDE_PLUGIN_DATA: plugin.data,
    }),
  };
  return childEnvironment(world.environment, { values: places });
}

const DEPTH_VARIABLE = "TROUPE_HOOK_DEPTH";

/** How many hooks stand between this process and the person. */
export function depthOf(environment: Environment): number {
  const text = environment[DEPTH_VARIABLE] ?? "";
  return /^\d{1,3}$/.test(text) ? Number(text) : 0;
}

/** `$NAME` and `${NAME}`; a name that is not among the variables stands for nothing. */
export function expandVariables(text: string, variables: Environment): string {
  return text.replace(/\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))/g, (_, braced: string, bare: string) => {
    const name = braced ?? bare;
    return (Object.hasOwn(variables, name) ? variables[name] : undefined) ?? "";
  });
}

/** `{{project_dir}}` and `{{plugin_data_dir}}`. */
export function expandTemplates(text: string, { source }: Pick<HookDefinition, "source">, world: HookWorld): string {
  return text.replace(/\{\{\s*(project_dir|plugin_data_dir)\s*\}\}/g, (whole, name: string) => {
    return (name === "project_dir" ? world.projectRoot : source.plugin?.data) ?? whole;
  });
}

/** The same inside a shell command, where a folder with a name like `$(…)` would be run. */
export function expandShellText(text: string, definition: Pick<HookDefinition, "source">, world: HookWorld): string {
  const expanded = expandTemplates(text, definition, world);
  const places = [world.projectRoot, definition.source.plugin?.data ?? ""];
  if (expanded !== text && places.some((place) => !/^[\p{Letter}\p{Number} _./:@%+,=-]*$/u.test(place)))
    throw new Error("a folder has characters in its name that a shell would act on; use $COPILOT_PROJECT_DIR instead");
  return expanded;
}
