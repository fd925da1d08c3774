import { realpathSync } from "node:fs";
import { join } from "node:path";
import type { LoadedSettings } from "../../catalog/settings/settings.ts";
import { type Grants, openGrants } from "../../permissions/grants.ts";
import { locationKey } from "../../permissions/location.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { limitingPolicy } from "../permissions/ceiling.ts";
import { CurrentRules } from "../permissions/current-rules.ts";
import { type PermissionFlags, policyOf } from "../permissions/policy.ts";
import type { Workspace } from "../workspace/workspace.ts";
import { type ModeParts, modeParts } from "./modes.ts";
import type { SessionChannel } from "./session-channel.ts";
import type { SessionSetup } from "./session-setup.ts";

/** The permissions of a session: allowed, allowed after approval, and denied. */
export interface SessionRules {
  /** The requested permissions, as far as settings allow them. */
  readonly permissions: PermissionFlags;
  /** Folders the tools may access; empty means no limit. */
  readonly roots: readonly string[];
  /** Can be changed by clients while the session is open. */
  readonly current: CurrentRules;
  readonly grants: Grants;
  /** The mode with its policy, which is narrower in some modes. */
  readonly mode: Required<ModeParts>;
}

export function sessionRules(setup: SessionSetup, workspace: Workspace): SessionRules {
  const { request, disk, stateRoot, context, files, records, channel } = setup;
  const { settings } = workspace;
  const grants = openGrants({
    disk,
    file: join(stateRoot, "permissions-config.json"),
    location: locationKey(context.cwd),
  });
  const granted = grants.allowedDirectories.flatMap((folder) => realOrNothing(folder));
  const asked = { ...request.permissions, allPaths: request.permissions?.paths === "all" };
  const permissions = withoutBypass(asked, settings, channel);
  const added = request.permissions?.paths === "all" ? [] : (request.permissions?.paths ?? []).map(realFolder);
  const roots = permissions.allPaths ? [] : [context.cwd, ...added, ...granted, files, records];
  const servers = serverNames(workspace);
  const policy = policyOf(
    permissions,
    {
      roots,
      stateRoot,
      writable: [files],
      workspace: [workspace.root, context.cwd, ...added],
      servers,
    },
    { rules: settings.rules, notice: channel.notice },
  );
  const mayAllowAll = settings.effective.permissions?.disableBypassPermissionsMode === undefined;
  const { ceiling } = permissions;
  const own = [context.cwd, files, records];
  const limited = ceiling ? { ...policy, ceiling: limitingPolicy(ceiling, policy, { own, servers }) } : policy;
  const current = new CurrentRules(limited, { cwd: context.cwd, servers, mayAllowAll });
  return {
    permissions,
    roots: current.roots,
    current,
    grants,
    mode: modeParts({ files, policy: current.policy, channel }),
  };
}

/** Removes allow-all permissions if the user's settings rule them out. */
function withoutBypass(
  permissions: PermissionFlags,
  { effective }: LoadedSettings,
  channel: SessionChannel,
): PermissionFlags {
  if (effective.permissions?.disableBypassPermissionsMode === undefined) return permissions;
  const { allTools, allPaths, allUrls, ...rest } = permissions;
  if (allTools || allPaths || allUrls) {
    channel.warn("permissions", "Allowing everything is switched off in settings (disableBypassPermissionsMode).");
  }
  return rest;
}

/** Returns all servers that a rule may name, including those of agents. */
function serverNames(workspace: Workspace): string[] {
  const own = workspace.servers.servers.map(({ name }) => name);
  return [...own, ...workspace.agents.agents.flatMap(({ mcpServers }) => Object.keys(mcpServers ?? {}))];
}

function realFolder(folder: string): string {
  try {
    return realpathSync(folder);
  } catch (cause) {
    throw new TroupeError("usage", `--add-dir ${folder}: there is no such folder.`, { cause });
  }
}

function realOrNothing(folder: string): string[] {
  try {
    return [realpathSync(folder)];
  } catch {
    return [];
  }
}
