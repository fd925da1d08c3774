/**
 * Reads the registry of installed plugins: their origin, and whether they are enabled. It is read at every start, so
 * only the needed fields are checked.
 */
import { join } from "node:path";
import { isObject, parseJson } from "../../lib/json.ts";
import { smallText } from "../../lib/node/small-file.ts";

/** Folder of installed plugins below the state root, each in the folder of its origin. */
export const INSTALLED_PLUGINS = "installed-plugins";

const MAX_REGISTRY_BYTES = 1024 * 1024;

export const registryPath = (stateRoot: string): string => join(stateRoot, "plugins.json");

/** Returns the unvalidated registry; undefined if it is missing or unreadable. */
export function readRegistry(stateRoot: string): Readonly<Record<string, unknown>> | undefined {
  const text = smallText(registryPath(stateRoot), MAX_REGISTRY_BYTES);
  const json = text === undefined ? undefined : parseJson(text);
  return json?.ok && isObject(json.value) ? json.value : undefined;
}

/** Returns the folders of disabled plugins. */
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
