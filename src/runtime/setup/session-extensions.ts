import type { FoundExtension } from "../../catalog/extensions.ts";
import type { ExtensionProcess, LaunchProfile } from "../../extensions/extensions.ts";
import { isGiven } from "../../extensions/given.ts";
import type { RequestedSandbox } from "../permissions/sandbox-settings.ts";
import { openWorkspace, type Workspace } from "../workspace/workspace.ts";
import type { SessionSetup } from "./session-setup.ts";

/** The extensions of a session, for the server that connects them. */
export interface SessionExtensions {
  /** A key that changes when they must be restarted. */
  readonly locationKey: string;
  /** Returns the extensions that may run: as found at the session's start, or searched again. */
  find(how?: { readonly again: true }): Promise<readonly FoundExtension[]>;
  /** Returns whether the user disabled it. */
  isDisabled(id: string): boolean;
  start(extension: FoundExtension, profile: LaunchProfile | undefined): Promise<ExtensionProcess>;
  /** Returns those of the variables that are set and that the extension does not get by default. */
  withheld(id: string, names: readonly string[]): Record<string, string>;
}

/** Returns undefined if no client requests extensions. */
export function sessionExtensions(
  setup: SessionSetup,
  { workspace, requested }: { workspace: Workspace; requested: RequestedSandbox },
): SessionExtensions | undefined {
  const { request, context, stateRoot, environment, channel, shared, log } = setup;
  const { extensions: asked } = request.client ?? {};
  if (!asked || !workspace.flags.has("EXTENSIONS")) return undefined;
  const { disabledExtensions = [], secretEnvironmentVariables: secretNames = [] } = workspace.settings.effective;
  const warn = (message: string): void => channel.warn("extension", message);
  const prepare = shared.programs([workspace.root], { requested, onWarning: warn });
  const started = new Map<string, FoundExtension>();
  return {
    locationKey: JSON.stringify([workspace.root, asked.sdkPath ?? null]),
    async find(how) {
      if (!how?.again) return workspace.extensions.extensions;
      const again = await openWorkspace(request.workspace ?? {}, { context, stateRoot, environment });
      for (const { message } of again.extensions.notices) warn(message);
      return again.extensions.extensions;
    },
    isDisabled: (id) => disabledExtensions.includes(id),
    async start(extension, profile) {
      const { path, scope, needs } = extension;
      started.set(extension.id, extension);
      const { startExtension } = await import("../../extensions/extensions.ts");
      const { sdkPath } = asked;
      const { sessionId } = log;
      return startExtension({
        path,
        scope,
        cwd: context.cwd,
        sessionId,
        environment,
        secretNames,
        hosts: needs.hosts,
        variableNames: needs.env,
        sdkPath,
        profile,
        prepare,
      });
    },
    withheld(id, names) {
      const { scope = "project", needs } = started.get(id) ?? {};
      const receiver = { scope, secretNames, variableNames: needs?.env ?? [] };
      const wanted = names.flatMap((name) => {
        const value = environment[name];
        return value === undefined || isGiven(name, receiver) ? [] : [[name, value] as const];
      });
      return Object.fromEntries(wanted);
    },
  };
}
