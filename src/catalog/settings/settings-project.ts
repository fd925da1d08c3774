/**
 * What a project's settings may do: tighten, and nothing else. Every key that could loosen something, or that decides
 * what is a person's to decide, is left out and named.
 */
import { resolve } from "node:path";
import { boundedNotices, type Notice } from "../catalog.ts";
import type { ParsedSettings } from "./settings-parse.ts";
import type { Settings } from "./settings-schema.ts";

export interface ProjectFile extends ParsedSettings {
  readonly path: string;
  /** The folder of the workspace it speaks for. */
  readonly folder: string;
}

/** Keys with an effect of their own, by the names under which a file gives them. */
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
/** Executable, so only with approval; or about the file's own hooks. */
const ELSEWHERE = ["hooks", "mcpServers", "disableAllHooks", "$schema"];
const PARTS = ["permissions", "sandbox", "subagents"];
const STRICTNESS = ["off", "auto", "required"] as const;

/** What an untrusted folder may say: more denials and more questions. */
export function onlyDenials({ settings }: ProjectFile): Settings {
  const { permissions, deniedUrls } = settings;
  return {
    permissions: { deny: permissions?.deny ?? [], ask: permissions?.ask ?? [] },
    deniedUrls: deniedUrls ?? [],
  };
}

/** True when the file asks for more than denials and questions. */
export function wantsTrust({ settings }: ProjectFile): boolean {
  return namesIn(settings).some(
    (name) => !["permissions.deny", "permissions.ask", "deniedUrls", "$schema"].includes(name),
  );
}

/** `base` with everything in the file that makes it stricter. Lists keep their order and lose repetitions. */
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

/** One notice for every key of the file that has no effect. */
export function ignoredKeys(base: Settings, file: ProjectFile): readonly Notice[] {
  const notices = namesIn(file.settings).flatMap((name): Notice[] => {
    if (ADDING.includes(name) || ELSEWHERE.includes(name)) return [];
    const isCompared = COMPARED.includes(name);
    if (isCompared && !isLooser(base, file.settings, name)) return [];
    const { name: path, line } = file.place(...name.split("."));
    const reason = isCompared
      ? "a project can make this stricter, not looser"
      : "a project can only deny more; this belongs in your own settings or flags";
    return [{ kind: "settings-ignored", message: `${path}:${line}: ${name} is ignored: ${reason}.` }];
  });
  return boundedNotices([...notices, ...file.unknown], file.path);
}

/** Names such as `model` and `sandbox.mode`. */
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

/** Without a limit to compare with, nobody can tell whether the project's is lower. */
function lower(key: "maxConcurrency" | "maxDepth", base: Settings, wanted: NonNullable<Settings["subagents"]>) {
  const limit = base.subagents?.[key];
  return limit === undefined ? {} : { [key]: Math.min(limit, wanted[key] ?? limit) };
}

const union = (one: readonly string[] = [], other: readonly string[] = []): string[] => [
  ...new Set([...one, ...other]),
];
