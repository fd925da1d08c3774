/**
 * Reads the registry of installed plugins: their origin, and whether they are enabled. It is read at every start, so
 * only the needed fields are checked.
 */
import { join } from "node:path";
import { isObject, parseJson } from "../../lib/json.ts";
import { readSmallFile } from "../../lib/node/small-file.ts";

/** Folder of installed plugins below the state root, each in the folder of its origin. */
export const INSTALLED_PLUGINS = "installed-plugins";

const MAX_REGISTRY_BYTES = 1024 * 1024;

export const registryPath = (stateRoot: string): string => join(stateRoot, "plugins.json");

export type RegistryFile =
  | { readonly kind: "missing" }
  /** The file must not be used or replaced. `reason` continues a sentence after the path. */
  | { readonly kind: "damaged"; readonly reason: string }
  | { readonly kind: "read"; readonly value: Readonly<Record<string, unknown>> };

/** Returns the unvalidated registry. */
export function readRegistry(stateRoot: string): RegistryFile {
  const file = readSmallFile(registryPath(stateRoot), { maxBytes: MAX_REGISTRY_BYTES });
  if (file.kind === "missing") return file;
  if (file.kind === "refused") return { kind: "damaged", reason: file.reason };
  const json = parseJson(file.text);
  if (!json.ok) return { kind: "damaged", reason: "is not valid JSON" };
  return isObject(json.value)
    ? { kind: "read", value: json.value }
    : { kind: "damaged", reason: "is not a JSON object" };
}

/** Returns the folders of disabled plugins, or why the registry cannot tell. */
export function disabledPluginFolders(stateRoot: string): ReadonlySet<string> | { readonly damaged: string } {
  const registry = readRegistry(stateRoot);
  if (registry.kind === "damaged") return { damaged: registry.reason };
  const plugins = registry.kind === "read" ? registry.value.plugins : undefined;
  const entries: readonly unknown[] = Array.isArray(plugins) ? plugins : [];
  return new Set(
    entries.flatMap((entry) =>
      isObject(entry) && entry.enabled === false && typeof entry.folder === "string"
        ? [join(stateRoot, INSTALLED_PLUGINS, entry.folder)]
        : [],
    ),
  );
}
