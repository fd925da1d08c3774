import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { MAX_SETTINGS_BYTES } from "../../catalog/settings/settings.ts";
import { parseSettingsText } from "../../catalog/settings/settings-parse.ts";
import { workingDirectory } from "../../context/working-directory.ts";
import { defined } from "../../lib/defined.ts";
import { readSmallFile } from "../../lib/node/small-file.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { stateRoot } from "../../runtime/home.ts";
import type { SettingsValues } from "./config-values.ts";

export const scopes = ["user", "project", "local"] as const;

export interface ConfigFile {
  readonly scope: (typeof scopes)[number];
  readonly path: string;
  /** The folder that links must not leave: a repository's link must not lead to the user's own file. */
  readonly below?: string;
}

export interface ConfigContext {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly cwd: string;
  /** The root of the repository, else `cwd`. */
  readonly root: string;
}

export function configContext(): ConfigContext {
  const { cwd, gitRoot } = workingDirectory(process.cwd());
  return { environment: process.env, home: stateRoot(process.env), cwd, root: gitRoot ?? cwd };
}

/** Returns the file that a change of this scope goes to. Throws when the folder has no settings of its own. */
export function configFile(context: ConfigContext, scope: ConfigFile["scope"]): ConfigFile {
  const { home, root } = context;
  if (scope === "user") return { scope, path: join(home, "settings.json") };
  if (isAboveState(context)) {
    throw new TroupeError(
      "configuration",
      `${join(root, ".troupe")} holds your own settings, not those of a project.`,
      {
        hint: `Use --user, or run it in a repository.`,
      },
    );
  }
  const name = scope === "project" ? "settings.json" : "settings.local.json";
  return { scope, path: join(root, ".troupe", name), below: root };
}

export const configFiles = (context: ConfigContext): ConfigFile[] =>
  scopes.filter((scope) => scope === "user" || !isAboveState(context)).map((scope) => configFile(context, scope));

/** Returns whether the project's folder for settings is the state folder, as in the home folder. */
function isAboveState({ home, root }: ConfigContext): boolean {
  const real = (path: string): string => (existsSync(path) ? realpathSync(path) : path);
  return real(join(root, ".troupe")) === real(home);
}

/** Returns undefined if there is no such file. Throws an error with the line if it cannot be parsed. */
export function readConfig({ path, below }: ConfigFile): SettingsValues | undefined {
  const file = readSmallFile(path, { maxBytes: MAX_SETTINGS_BYTES, ...defined({ below }) });
  if (file.kind === "missing") return undefined;
  if (file.kind === "refused") throw new TroupeError("configuration", `${path} ${file.reason}.`);
  return parseSettingsText(path, file.text).value as SettingsValues;
}
