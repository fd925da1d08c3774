/** Which plugins were installed, from where, and whether they are on. Read at every start, so without ceremony. */
import { join } from "node:path";
import { isObject, parseJson } from "../../lib/json.ts";
import { smallText } from "../../lib/node/small-file.ts";

/** Below the state root: the plugins themselves, each in the folder of where it came from. */
export const INSTALLED_PLUGINS = "installed-plugins";

const MAX_REGISTRY_BYTES = 1024 * 1024;

export const registryPath = (stateRoot: string): string => join(stateRoot, "plugins.json");

/** The registry as it was written; undefined when there is none that can be read. */
export function readRegistry(stateRoot: string): Readonly<Record<string, unknown>> | undefined {
  const text = smallText(registryPath(stateRoot), MAX_REGISTRY_BYTES);
  const json = text === undefined ? undefined : parseJson(text);
  return json?.ok && isObject(json.value) ? json.value : undefined;
}

/** Folders of installed plugins that someone has switched off. */
export function disabledPluginFolders(stateRoot: string): ReadonlySet<string> {
  const plugins = readRegistry(stateRoot)?.plugins;
  const entries: readonly unknown[] = Array.isArray(plugins) ? plugins : [];
  return new Set(
    entries.flatMap((entry) =>
      isObject(entry) && entry.enabled === false && typeof entry.folder === "string"
        ? [join(stateRoot, INSTALLED_PLUGINS, entry.folder)]
        : [],
    ),
  );
}
