/**
 * Applies a project's settings, which may only tighten. Keys that could loosen something, or that only the user may
 * decide, are ignored with a notice.
 */
import { resolve } from "node:path";
import { boundedNotices, type CatalogNotice } from "../catalog.ts";
import type { ParsedSettings } from "./settings-parse.ts";
import type { Settings } from "./settings-schema.ts";

export interface ProjectSettings extends ParsedSettings {
  readonly path: string;
  /** The folder of the workspace that the file belongs to. */
  readonly folder: string;
}

/** Keys whose values are added to the user's, as named in the file. */
const ADDING = [
  "permissions.deny",
  "permissions.ask",
  "deniedUrls",
  "excludedTools",
  "disabledMcpServers",
  "disabledSkills",
  "disabledExtensions",
  "sandbox.deniedPaths",
  "subagents.disabledSubagents",
];
const COMPARED = ["sandbox.mode", "subagents.maxConcurrency", "subagents.maxDepth"];
/** Keys handled elsewhere: they run programs and need approval, or concern the file's own hooks. */
const ELSEWHERE = ["hooks", "mcpServers", "disableAllHooks", "$schema"];
const PARTS = ["permissions", "sandbox", "subagents"];
const STRICTNESS = ["off", "auto", "required"] as const;

/** Returns the settings that apply for an untrusted folder: additional `deny` and `ask` rules. */
export function onlyDenials({ settings }: ProjectSettings): Settings {
  const { permissions, deniedUrls } = settings;
  return {
    permissions: { deny: permissions?.deny ?? [], ask: permissions?.ask ?? [] },
    deniedUrls: deniedUrls ?? [],
  };
}

/** Returns true if the file has more than `deny` and `ask` rules. */
export function wantsTrust({ settings }: ProjectSettings): boolean {
  return namesIn(settings).some(
    (name) => !["permissions.deny", "permissions.ask", "deniedUrls", "$schema"].includes(name),
  );
}

/** Returns `base` with everything in the file that is stricter. Lists keep their order without duplicates. */
export function tightened(base: Settings, project: Settings, folder: string): Settings {
  const { permissions = {}, sandbox = {}, subagents = {} } = project;
  const deniedPaths = (sandbox.deniedPaths ?? []).map((path) => (path.startsWith("~") ? path : resolve(folder, path)));
  return {
    ...base,
    permissions: {
      ...base.permissions,
      deny: union(base.permissions?.deny, permissions.deny),
      ask: union(base.permissions?.ask, permissions.ask),
    },
    deniedUrls: union(base.deniedUrls, project.deniedUrls),
    excludedTools: union(base.excludedTools, project.excludedTools),
    disabledMcpServers: union(base.disabledMcpServers, project.disabledMcpServers),
    disabledSkills: union(base.disabledSkills, project.disabledSkills),
    disabledExtensions: union(base.disabledExtensions, project.disabledExtensions),
    sandbox: {
      ...base.sandbox,
      deniedPaths: union(base.sandbox?.deniedPaths, deniedPaths),
      mode: stricter(base.sandbox?.mode ?? "auto", sandbox.mode),
    },
    subagents: {
      ...base.subagents,
      ...lower("maxConcurrency", base, subagents),
      ...lower("maxDepth", base, subagents),
      disabledSubagents: union(base.subagents?.disabledSubagents, subagents.disabledSubagents),
    },
  };
}

/** Returns one notice for every key of the file that has no effect. */
export function ignoredKeys(base: Settings, file: ProjectSettings): readonly CatalogNotice[] {
  const notices = namesIn(file.settings).flatMap((name): CatalogNotice[] => {
    if (ADDING.includes(name) || ELSEWHERE.includes(name)) return [];
    const isCompared = COMPARED.includes(name);
    if (isCompared && !isLooser(base, file.settings, name)) return [];
    const { name: path, line } = file.positionOf(...name.split("."));
    const reason = isCompared
      ? "a project can make this stricter, not looser"
      : "a project can only deny more; this belongs in your own settings or flags";
    return [{ kind: "settings-ignored", message: `${path}:${line}: ${name} is ignored: ${reason}.` }];
  });
  return boundedNotices([...notices, ...file.unknown], file.path);
}

/** Returns names such as `model` and `sandbox.mode`. */
function namesIn(settings: Settings): string[] {
  return Object.entries(settings).flatMap(([key, value]) =>
    PARTS.includes(key) ? Object.keys(value as object).map((inner) => `${key}.${inner}`) : [key],
  );
}

function isLooser(base: Settings, project: Settings, name: string): boolean {
  if (name === "sandbox.mode") {
    const wanted = project.sandbox?.mode ?? "auto";
    return stricter(base.sandbox?.mode ?? "auto", wanted) !== wanted;
  }
  const key = name === "subagents.maxDepth" ? "maxDepth" : "maxConcurrency";
  const limit = base.subagents?.[key];
  return limit === undefined || (project.subagents?.[key] ?? 0) > limit;
}

function stricter(base: (typeof STRICTNESS)[number], wanted: (typeof STRICTNESS)[number] | undefined) {
  return wanted !== undefined && STRICTNESS.indexOf(wanted) > STRICTNESS.indexOf(base) ? wanted : base;
}

/** Returns nothing without a base limit, because it is unknown whether the project's is lower. */
function lower(key: "maxConcurrency" | "maxDepth", base: Settings, wanted: NonNullable<Settings["subagents"]>) {
  const limit = base.subagents?.[key];
  return limit === undefined ? {} : { [key]: Math.min(limit, wanted[key] ?? limit) };
}

const union = (one: readonly string[] = [], other: readonly string[] = []): string[] => [
  ...new Set([...one, ...other]),
];
