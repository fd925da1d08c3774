/**
 * Loads the effective settings of a folder: defaults, the user's file, then the workspace's files, which may only
 * tighten. Environment variables and flags are applied elsewhere, after these.
 */
import { dirname, join } from "node:path";
import type { Json } from "../../lib/json.ts";
import { readSmallFile } from "../../lib/node/small-file.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { CatalogNotice, Scope } from "../catalog.ts";
import { realFolder } from "../trust.ts";
import { type ParsedSettings, parseSettings } from "./settings-parse.ts";
import { ignoredKeys, onlyDenials, type ProjectSettings, tightened, wantsTrust } from "./settings-project.ts";
import type { Settings } from "./settings-schema.ts";

export interface SettingsRequest {
  readonly stateRoot: string;
  /** Real paths: the session's working directory, and the root of its repository. */
  readonly cwd: string;
  readonly gitRoot?: string;
  /** Default values. A project's settings are compared with them. */
  readonly defaults?: Settings;
  /** Called once for each folder with settings; `user` holds the user's own settings. */
  isTrusted(folder: string, user: Settings): boolean;
}

export interface LoadedSettings {
  readonly effective: Omit<Settings, "hooks" | "mcpServers" | "$schema">;
  /** All allow, deny and ask rules, including URLs, each with its file and line. */
  readonly rules: readonly SettingsRule[];
  /** As written. The code that runs them must validate them and get approval for a workspace's. */
  readonly hooks: readonly RawSetting[];
  readonly mcpServers: readonly RawSetting[];
  /** Hooks that must not run, wherever they are defined. */
  readonly disabledHooks: "none" | "project" | "all";
  readonly notices: readonly CatalogNotice[];
}

export interface SettingsRule {
  readonly text: string;
  readonly effect: "allow" | "deny" | "ask";
  readonly scope: Scope;
  readonly source: { readonly name: string; readonly line: number };
}

interface RawSetting {
  readonly scope: Scope;
  readonly file: string;
  readonly line: number;
  /** The folder whose trust decides; the state root for the user's own file. */
  readonly folder: string;
  readonly value: Readonly<Record<string, Json>>;
}

export const MAX_SETTINGS_BYTES = 256 * 1024;
const SUBFOLDERS = [".troupe", join(".github", "copilot")];
const NAMES = { project: "settings.json", local: "settings.local.json" } as const;

const userSettingsPath = (stateRoot: string): string => join(stateRoot, "settings.json");

/**
 * Throws an error with the line if the user's own file is invalid. An invalid project file is ignored with a notice.
 */
export function loadSettings(request: SettingsRequest): LoadedSettings {
  const user = userFile(request.stateRoot);
  const files = projectFiles(request);
  const own: Settings = { ...request.defaults, ...user?.settings };
  const merged = merge(request, withDefaultParts(own, request.defaults), files.found);
  const { hooks: _, mcpServers: __, $schema: ___, ...effective } = merged.settings;
  const isAllOff = own.disableAllHooks === true;
  const isProjectOff = merged.trusted.some(({ settings }) => settings.disableAllHooks === true);
  const sources: readonly Source[] = [
    ...(user ? [{ ...user, scope: "user" as const, folder: request.stateRoot }] : []),
    ...merged.trusted,
  ];
  const hooks = isAllOff ? [] : raw("hooks", sources);
  return {
    effective,
    rules: [
      ...(user ? rulesOf({ ...user, scope: "user" }, user.settings) : []),
      ...merged.considered.flatMap((file) => rulesOf(file, onlyDenials(file))),
    ],
    hooks: isProjectOff ? hooks.filter(({ scope }) => scope === "user") : hooks,
    mcpServers: raw("mcpServers", sources),
    disabledHooks: isAllOff ? "all" : isProjectOff ? "project" : "none",
    notices: [...(user?.unknown ?? []), ...files.notices, ...merged.notices],
  };
}

type Source = ParsedSettings & { readonly scope: Scope; readonly folder: string };
type FoundFile = ProjectSettings & { readonly scope: "project" | "local" };

function userFile(stateRoot: string): (ParsedSettings & { path: string }) | undefined {
  const path = userSettingsPath(stateRoot);
  const file = readSmallFile(path, { maxBytes: MAX_SETTINGS_BYTES });
  if (file.kind === "missing") return undefined;
  if (file.kind === "refused") throw new TroupeError("configuration", `${path} ${file.reason}.`);
  return { ...parseSettings(path, file.text), path };
}

function projectFiles({ stateRoot, cwd, gitRoot = cwd }: SettingsRequest): {
  found: FoundFile[];
  notices: CatalogNotice[];
} {
  const found: FoundFile[] = [];
  const notices: CatalogNotice[] = [];
  for (const scope of ["project", "local"] as const) {
    for (const folder of new Set([gitRoot, cwd])) {
      for (const subfolder of SUBFOLDERS) {
        const path = join(folder, subfolder, NAMES[scope]);
        const file = readSmallFile(path, { maxBytes: MAX_SETTINGS_BYTES, below: folder });
        if (file.kind === "missing") continue;
        if (file.kind === "refused") {
          notices.push(leftOut(`${path} is ignored: it ${file.reason}.`));
          continue;
        }
        // When working in the folder above the state root, the user's own file appears here again.
        if (dirname(file.realPath) === realFolder(stateRoot)) continue;
        const parsed = parseOrNotice(path, file.text);
        if ("message" in parsed) notices.push(parsed);
        else found.push({ ...parsed, path, folder, scope });
      }
    }
  }
  return { found, notices };
}

/** Returns a notice for an invalid file: a repository must not be able to block the user's work. */
function parseOrNotice(path: string, text: string): ParsedSettings | CatalogNotice {
  try {
    return parseSettings(path, text);
  } catch (error) {
    if (!(error instanceof TroupeError)) throw error;
    return leftOut(`${error.message.replace(/\.$/, "")}. The whole file is ignored.`);
  }
}

function merge(request: SettingsRequest, own: Settings, files: readonly FoundFile[]) {
  const trust = new Map<string, boolean>();
  const considered: FoundFile[] = [];
  const trusted: FoundFile[] = [];
  const untrusted: string[] = [];
  const notices: CatalogNotice[] = [];
  let settings = own;
  for (const file of files) {
    const { folder, path } = file;
    const isTrusted = trust.get(folder) ?? request.isTrusted(folder, own);
    trust.set(folder, isTrusted);
    considered.push(file);
    settings = tightened(settings, isTrusted ? file.settings : onlyDenials(file), folder);
    if (isTrusted) {
      trusted.push(file);
      notices.push(...ignoredKeys(own, file));
    } else if (wantsTrust(file)) untrusted.push(path);
  }
  if (untrusted.length > 0) notices.push(untrustedNotice(untrusted));
  return { settings, considered, trusted, notices };
}

function untrustedNotice(paths: readonly string[]): CatalogNotice {
  const message = `The folder is not trusted, so only the deny and ask rules in ${paths.join(", ")} are used. Review and trust it with: troupe trust`;
  return { kind: "folder-untrusted", message };
}

const leftOut = (message: string): CatalogNotice => ({ kind: "settings-ignored", message });

/** Merges the nested objects key by key; the user's keys win. */
function withDefaultParts(own: Settings, defaults: Settings = {}): Settings {
  return {
    ...own,
    ...(defaults.permissions && { permissions: { ...defaults.permissions, ...own.permissions } }),
    ...(defaults.sandbox && { sandbox: { ...defaults.sandbox, ...own.sandbox } }),
    ...(defaults.subagents && { subagents: { ...defaults.subagents, ...own.subagents } }),
    ...(defaults.toolSearch && { toolSearch: { ...defaults.toolSearch, ...own.toolSearch } }),
  };
}

function rulesOf({ scope, positionOf }: Pick<Source, "scope" | "positionOf">, settings: Settings): SettingsRule[] {
  const rules = (effect: SettingsRule["effect"], list: readonly string[] = []): SettingsRule[] =>
    list.map((text, index) => ({ text, effect, scope, source: positionOf("permissions", effect, index) }));
  const urls = (effect: "allow" | "deny", list: readonly string[] = []): SettingsRule[] =>
    list.map((address, index) => {
      const source = positionOf(effect === "allow" ? "allowedUrls" : "deniedUrls", index);
      return { text: `url(${address})`, effect, scope, source };
    });
  return [
    ...rules("deny", settings.permissions?.deny),
    ...urls("deny", settings.deniedUrls),
    ...rules("ask", settings.permissions?.ask),
    ...rules("allow", settings.permissions?.allow),
    ...urls("allow", settings.allowedUrls),
  ];
}

function raw(key: "hooks" | "mcpServers", sources: readonly Source[]): RawSetting[] {
  return sources.flatMap(({ settings, scope, folder, positionOf }) => {
    const value = settings[key];
    if (value === undefined) return [];
    const { name, line } = positionOf(key);
    return [{ scope, file: name, line, folder, value }];
  });
}
