/** Loads a package from one given folder and nowhere else: never from parent folders or a project. */
import { readFile, realpath } from "node:fs/promises";
import { join, resolve, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { isObject, parseJson } from "../../lib/json.ts";
import { TroupeError } from "../../protocol/errors.ts";

/** Loads a module by its URL. Bundled code may need something other than its own `import()`. */
export type ImportModule = (specifier: string) => Promise<unknown>;

export async function importPackage(
  npm: string,
  folder: string | undefined,
  importModule: ImportModule = (specifier) => import(specifier),
): Promise<Record<string, unknown>> {
  if (folder === undefined) throw new TroupeError("configuration", `${npm}: provider packages are not available here`);
  const home = join(folder, "node_modules", ...npm.split("/"));
  const manifest = await readFile(join(home, "package.json"), "utf8").catch(() => undefined);
  if (manifest === undefined) {
    throw new TroupeError("configuration", `The provider package ${npm} is not installed`, {
      hint: `Run: npm install --prefix ${JSON.stringify(folder)} ${npm}`,
    });
  }
  const parsed = parseJson(manifest);
  const entry = parsed.ok ? entryOf(parsed.value) : undefined;
  const file = entry === undefined ? undefined : resolve(home, entry);
  if (file === undefined || !file.startsWith(home + sep)) {
    throw new TroupeError("configuration", `${npm}: its package.json names no file to load`);
  }
  try {
    const module = await importModule(pathToFileURL(await realpath(file)).href);
    return isObject(module) ? { ...asObject(module.default), ...module } : {};
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new TroupeError("configuration", `${npm} could not be loaded: ${message}`, { cause });
  }
}

/** Returns `default` as an object: it has the exports of a CommonJS package. */
function asObject(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {};
}

/** Returns the main entry as `import` would resolve it. */
export function entryOf(manifest: unknown): string | undefined {
  if (!isObject(manifest)) return undefined;
  const { exports } = manifest;
  const main = isObject(exports) && "." in exports ? exports["."] : exports;
  const entry = main === undefined ? (manifest.module ?? manifest.main ?? "index.js") : byCondition(main);
  return typeof entry === "string" ? entry : undefined;
}

const conditions = new Set(["node", "import", "module-sync", "default", "require"]);

/** Returns the first matching condition, in the package's order. Skips types and browser conditions. */
function byCondition(target: unknown): string | undefined {
  if (typeof target === "string") return target;
  if (Array.isArray(target)) return target.map(byCondition).find((found) => found !== undefined);
  if (!isObject(target)) return undefined;
  for (const [condition, inner] of Object.entries(target)) {
    const found = conditions.has(condition) ? byCondition(inner) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}
