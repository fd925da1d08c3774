/** Options of a program's session that workers run. Only a part of the options travels, and never a key. */

import * as z from "zod";
import { TroupeError } from "../../protocol/errors.ts";
import type { RemoteSessionOptions } from "../../runtime/cluster/remote-sessions.ts";
import type { SessionRequest } from "../../runtime/session-request.ts";
import type { RequestKind } from "../../session/requests/requests.ts";
import { withModelOptions } from "../model-tunnel/model-options.ts";
import {
  type CreateParams,
  type OptionsOfSession,
  sessionOptions,
  sessionRequest,
} from "../sessions/session-options.ts";

/** Options that a worker uses. They choose and restrict; they allow nothing on its machine. */
const TRAVELLING: readonly string[] = [
  ...["model", "reasoningEffort", "reasoningSummary", "modelCapabilities", "enableCitations", "sessionLimits"],
  ...["clientName", "systemMessage", "availableTools", "excludedTools", "toolSearch", "customAgents", "agent"],
  ...["excludedBuiltinAgents", "defaultAgent", "organizationCustomInstructions", "skipCustomInstructions"],
  ...["infiniteSessions", "askUserVariant", "includedBuiltinSkills", "disabledSkills", "disabledMcpServers"],
];

/** Options that would bring keys, programs or folders to a worker, or that need the program in its process. */
const REFUSED: readonly (keyof CreateParams)[] = [
  ...(["provider", "providers", "models", "gitHubToken", "mcpServers", "hooks", "pluginDirectories"] as const),
  ...(["skillDirectories", "instructionDirectories", "additionalDirectories", "requestExtensions"] as const),
  ...(["canvases", "commands", "managedSettings", "enableManagedSettings", "cloud"] as const),
];

/** Throws for options that cannot be used. */
export function remoteOptions(params: CreateParams): RemoteSessionOptions {
  const refused = REFUSED.find((name) => isSet(params[name]));
  if (refused !== undefined) {
    throw new TroupeError("usage", `The option ${refused} cannot be used for a session that workers run.`, {
      hint: "Workers have their own keys, settings and rules: configure it there.",
    });
  }
  const asks: RequestKind[] = [
    ...(params.requestPermission === false ? [] : (["permission"] as const)),
    ...(params.requestUserInput ? (["user_input"] as const) : []),
    ...(params.requestExitPlanMode ? (["exit_plan_mode"] as const) : []),
    ...(params.requestElicitation ? (["elicitation"] as const) : []),
    ...(params.tools?.length ? (["external_tool"] as const) : []),
  ];
  return { asks, options: travelling(params), tools: params.tools ?? [] };
}

const isSet = (value: unknown): boolean =>
  value !== undefined && value !== null && value !== false && JSON.stringify(value).length > 2;

const travelling = (options: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(options).filter(([name, value]) => TRAVELLING.includes(name) && value !== undefined),
  );

/** Returns the request for a session on a worker, from the worker's own request and the options of the program. */
export function remoteRequest(given: Readonly<Record<string, unknown>>, own: SessionRequest): SessionRequest {
  const parsed = z.object(sessionOptions()).safeParse(travelling(given));
  if (!parsed.success)
    throw new TroupeError("usage", `The options of the session are not valid: ${parsed.error.message}`);
  const options: OptionsOfSession = parsed.data;
  const asked = withModelOptions(sessionRequest(options, own), options, async () => "");
  // The rules and the workspace are those of the worker.
  return { ...asked, cwd: own.cwd, ...(own.permissions && { permissions: { askReads: true, ...own.permissions } }) };
}
