/** Finds a program's entry points: from its manifest, then from file names. */
import { isCode, isTest, stemOf } from "./languages.ts";
import type { Manifest, ManifestFact } from "./manifests.ts";

export interface EntryPoint {
  /** The manifest's name for it; empty if only the file name indicates it. */
  readonly label: string;
  readonly facts: readonly ManifestFact[];
  /** A source file that exists. */
  readonly source?: string;
}

const MAX_ENTRY_POINTS = 6;

export function entryPointsOf(files: readonly string[], manifests: readonly Manifest[]): EntryPoint[] {
  const known = new Set(files);
  const entries = new Map<string, EntryPoint>();
  for (const fact of manifests.flatMap((manifest) => manifest.entries)) {
    const source = sourceOf(fact.value, files, known);
    const key = source ?? `built ${fact.label}`;
    const facts = [...(entries.get(key)?.facts ?? []), fact];
    entries.set(key, { label: facts[0]?.label ?? fact.label, facts, ...(source === undefined ? {} : { source }) });
  }
  for (const path of files.filter(isNamedLikeOne).sort(shallowFirst)) {
    if (!entries.has(path)) entries.set(path, { label: "", facts: [], source: path });
  }
  return [...entries.values()].slice(0, MAX_ENTRY_POINTS);
}

function isNamedLikeOne(path: string): boolean {
  if (!isCode(path) || isTest(path) || /(^|\/)(examples?|docs?|scripts|bench(marks?)?|tools)\//.test(path))
    return false;
  if (/(^|\/)(main\.(go|rs)|[Mm]ain\.(java|kt)|\w*Application\.(java|kt))$/.test(path)) return true;
  if (path === "src/lib.rs") return true;
  const named = /^(main|__main__|manage|wsgi|asgi|app|server|cli|Program|App)$/.test(stemOf(path));
  return named && path.split("/").length <= 3;
}

/**
 * Returns the source of a built file: `dist/cli/main.js` comes from `src/cli/main.ts`; `pkg.cli:main` is `pkg/cli.py`.
 */
function sourceOf(target: string, files: readonly string[], known: ReadonlySet<string>): string | undefined {
  if (known.has(target)) return target;
  const module = /^([\w.]+):\w+$/.exec(target)?.[1]?.replaceAll(".", "/");
  if (module !== undefined) {
    const endings = [`${module}.py`, `${module}/__init__.py`];
    return files.find((path) => endings.some((ending) => path === ending || path.endsWith(`/${ending}`)));
  }
  const inside = target.replace(/^(dist|build|lib|out)\/(esm\/|cjs\/|lib\/)?/, "").replace(/\.[mc]?jsx?$/, "");
  const candidates = ["src/", ""].flatMap((root) =>
    ["ts", "tsx", "mts", "js"].map((ending) => `${root}${inside}.${ending}`),
  );
  return candidates.find((path) => known.has(path));
}

function shallowFirst(a: string, b: string): number {
  return a.split("/").length - b.split("/").length || (a < b ? -1 : 1);
}
