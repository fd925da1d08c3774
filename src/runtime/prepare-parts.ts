/** Small questions that `prepare.ts` answers on the way. */
import { realpathSync } from "node:fs";
import { resolve } from "node:path";
import { findAgent } from "../agents/names.ts";
import type { LoadedSettings } from "../catalog/settings.ts";
import { workingDirectory } from "../context/working-directory.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { SessionOptions } from "../session/session.ts";
import type { SessionLog } from "../store/store.ts";
import type { LateSession } from "./late-session.ts";
import type { LiveOffer } from "./offer.ts";
import type { PermissionRequest } from "./policy.ts";
import type { SessionRequest } from "./runtime.ts";
import type { SessionMcp } from "./session-mcp.ts";
import type { Workspace } from "./workspace.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export function serverEntries(mcp: SessionMcp) {
  return mcp.servers.map((server) => {
    const { status, error } = server.state();
    const tools = server.knownDefinitions()?.length ?? 0;
    return { name: server.config.name, status, tools, ...(error !== undefined && { error }) };
  });
}

export function availableTools(
  request: SessionRequest,
  configured: readonly string[] | undefined,
): { available?: readonly string[] } {
  const available = request.toolChoice?.available ?? configured;
  return available === undefined ? {} : { available };
}

/** A person may have ruled out for themselves that everything is allowed at once. */
export function withoutBypass(
  permissions: PermissionRequest,
  { effective }: LoadedSettings,
  listener: LateSession,
): PermissionRequest {
  if (effective.permissions?.disableBypassPermissionsMode === undefined) return permissions;
  const { allTools, allPaths, allUrls, ...rest } = permissions;
  if (allTools || allPaths || allUrls) {
    listener.warn("permissions", "Allowing everything is switched off in settings (disableBypassPermissionsMode).");
  }
  return rest;
}

/** Who leads can be changed while the session is open; what a model or servers of its own would change, with --agent. */
export function leadChoice(what: { offer: LiveOffer; workspace: Workspace; listener: LateSession }) {
  const { offer, workspace, listener } = what;
  const { agents } = workspace.agents;
  return {
    list: () => agents.map(({ name, description, userInvocable }) => ({ name, description, userInvocable })),
    selected: () => offer.lead?.name,
    async select(name: string | undefined) {
      const chosen = name === undefined ? undefined : findAgent(name, agents);
      offer.setLead(chosen);
      if (!chosen) return listener.say("subagent.deselected", {});
      const { name: agentName, displayName: agentDisplayName, tools } = chosen;
      return listener.say("subagent.selected", { agentName, agentDisplayName, tools: tools && [...tools] });
    },
  };
}

/** All servers a rule may name: also those that only an agent brings. */
export function serverNames(workspace: Workspace): string[] {
  const own = workspace.servers.servers.map(({ name }) => name);
  return [...own, ...workspace.agents.agents.flatMap(({ mcpServers }) => Object.keys(mcpServers ?? {}))];
}

export function placeOf(cwd: string): SessionOptions["context"] {
  try {
    return workingDirectory(cwd);
  } catch (cause) {
    throw new TroupeError("usage", `Cannot work in ${resolve(cwd)}: it does not exist or cannot be read.`, { cause });
  }
}

export function realFolder(folder: string): string {
  try {
    return realpathSync(folder);
  } catch (cause) {
    throw new TroupeError("usage", `--add-dir ${folder}: there is no such folder.`, { cause });
  }
}

export function realOrNothing(folder: string): string[] {
  try {
    return [realpathSync(folder)];
  } catch {
    return [];
  }
}

/** Who names a model for this process means it: before what a resumed session had, and what settings say. */
export function environmentNames(environment: Environment): boolean {
  return Boolean(environment.TROUPE_MODEL || environment.COPILOT_MODEL);
}

/** A limit that cannot be held is refused, not forgotten. */
export function priceUnknown(model: string): TroupeError {
  return new TroupeError("configuration", `A cost limit cannot be kept: the price of ${model} is not known.`, {
    hint: "Give its price in providers.json, or limit tokens instead (--max-tokens).",
  });
}

export function largeOutputBytes(environment: Environment): number {
  const given = Number(environment.TROUPE_LARGE_OUTPUT_BYTES ?? environment.COPILOT_LARGE_OUTPUT_THRESHOLD_BYTES);
  return Number.isInteger(given) && given >= 1_024 ? given : 20_480;
}

/** Whether an agent is older than this process: those it starts now choose their models by themselves. */
export function hasTask({ events }: SessionLog, taskId: string): boolean {
  return events.some((event) => event.type === "troupe.task_created" && event.data.taskId === taskId);
}
