/**
 * Methods of the contract for features that this server lacks or has only in part. Each one answers in a form that
 * callers handle, or refuses with a hint. Some answer with facts (`commands.list`, `models.getBuiltInCatalog`, the
 * sandbox). None changes anything.
 */

import * as z from "zod";
import { defined } from "../../lib/defined.ts";
import { providerList } from "../../model/providers/list.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { builtinCommandList } from "../../runtime/submit.ts";
import { noManagedSettings } from "../managed-settings.ts";
import { type MethodTable, method, noParams, nothing, sessionMethod } from "./method.ts";

const loose = (): z.ZodObject => z.looseObject({});
const byAnything = () => ({});

const refuses = (message: string, hint: string) => () => {
  throw new TroupeError("usage", message, { hint });
};

export const unsupportedMethods: MethodTable = {
  "managedSettings.read": method(noParams, () => ({})),
  "managedSettings.clearCache": method(noParams, () => undefined),
  "catalog.search": method(loose, () => ({
    kind: "unavailable",
    reason: "search-unavailable",
    message: "This server has no catalog. Name MCP servers in mcpServers or in a settings file.",
  })),
  "mcp.planInstall": method(loose, () => ({
    kind: "unavailable",
    reason: "planning-unavailable",
    message: "This server installs no MCP servers. Name them in mcpServers or in a settings file.",
  })),
  "models.getBuiltInCatalog": method(noParams, () => ({
    models: [...new Set(providerList.flatMap(({ models = [] }) => models.map(({ name }) => name)))].map((id) => ({
      id,
    })),
  })),
  "commands.list": method(noParams, async () => ({
    commands: (await builtinCommandList()).map(({ name, aliases, summary: description }) => ({
      name,
      aliases,
      description,
      kind: "builtin",
      allowDuringAgentExecution: false,
    })),
  })),
  "session.agent.setPrompt": sessionMethod(
    byAnything,
    refuses("The prompt of an agent cannot be changed in place.", "Give customAgents again: session.options.update."),
  ),
  "session.debug.collectLogs": sessionMethod(
    byAnything,
    refuses("This server collects no logs.", "The events of a session are in events.jsonl of its folder."),
  ),
  "session.model.setAllowedModels": sessionMethod(
    byAnything,
    refuses("This server cannot limit the models of a session.", "Give the session its own providers and models."),
  ),
  // No models are routed, so there is no tier to switch.
  "session.model.switchAutoTier": sessionMethod(byAnything, () => ({ status: "unchanged" })),
  "session.limitPrediction.predict": sessionMethod(nothing, () => ({ kind: "unavailable", reason: "no_model" })),
  "session.contentExclusion.checkPaths": sessionMethod(
    () => ({ paths: z.array(z.string()).max(10_000) }),
    ({ paths }) => ({ available: false, checks: paths.map((path) => ({ path, excluded: false })) }),
  ),
  "session.sandbox.getEnforcementStatus": sessionMethod(nothing, async (_, { session }) => {
    const { required, absence } = (await session.workspace.sandboxStatus?.()) ?? { required: false };
    const blocked = required && absence !== undefined;
    return { required, blocked, ...(blocked && { reason: absence }) };
  }),
  // Only a user leaves the sandbox, command by command.
  "session.sandbox.disableForSession": sessionMethod(nothing, () => ({ success: false, enabled: true })),
  "sandbox.getHostSupport": method(noParams, async (_, { server }) => {
    const reason = await server.runtime.sandboxAbsence();
    return { supported: reason === undefined, ...defined({ reason }), capabilities: [] };
  }),
  "session.managedSettings.get": sessionMethod(nothing, () => noManagedSettings),
  // Diagnostics are not captured. The states and errors of MCP servers are in session.mcp.list.
  "session.diagnostics.configure": sessionMethod(
    byAnything,
    refuses("This server captures no diagnostics.", "Read the states and errors of MCP servers: session.mcp.list."),
  ),
  "session.diagnostics.read": sessionMethod(byAnything, () => ({
    entries: [],
    cursor: "0",
    cursorStatus: "ok",
    hasMore: false,
  })),
  "session.mcp.oauth.prepareLogin": sessionMethod(
    byAnything,
    refuses("A sign-in belongs to an installation, and this server has none.", "Use session.mcp.oauth.login."),
  ),
  "session.mcp.oauth.cancelLogin": sessionMethod(byAnything, () => ({ cancelled: false })),
  "session.autopilotObjective.getState": sessionMethod(nothing, () => ({ state: null })),
};
