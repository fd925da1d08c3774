import type { FoundExtension } from "../catalog/extensions.ts";
import type { ExtensionProcess, LaunchProfile } from "../extensions/extensions.ts";
import { isGiven } from "../extensions/given.ts";
import type { Draft } from "./draft.ts";
import type { SandboxWishes } from "./sandbox-settings.ts";
import { openWorkspace, type Workspace } from "./workspace.ts";

/** The extensions of a session, for whoever connects them to it. */
export interface SessionExtensions {
  /** Changes when they must be started anew. */
  readonly place: string;
  /** Those that may run: as they were when the session was made, or as they are now. */
  find(how?: { readonly again: true }): Promise<readonly FoundExtension[]>;
  /** The person does not want this one. */
  isDisabled(id: string): boolean;
  start(extension: FoundExtension, profile: LaunchProfile | undefined): Promise<ExtensionProcess>;
  /** Of these variables those that are set and that extensions are not given by themselves. */
  withheld(names: readonly string[]): Record<string, string>;
}

/** Undefined where no client asks for them. */
export function sessionExtensions(
  draft: Draft,
  { workspace, wishes }: { workspace: Workspace; wishes: SandboxWishes },
): SessionExtensions | undefined {
  const { request, context, home: stateRoot, environment, listener, shared, log } = draft;
  const { extensions: asked } = request;
  if (!asked || !workspace.flags.has("EXTENSIONS")) return undefined;
  const { disabledExtensions = [], secretEnvironmentVariables: secretNames = [] } = workspace.settings.effective;
  const warn = (message: string): void => listener.warn("extension", message);
  const prepare = shared.programs([workspace.root], { wishes, onWarning: warn });
  return {
    place: JSON.stringify([workspace.root, asked.sdkPath ?? null]),
    async find(how) {
      if (!how?.again) return workspace.extensions.extensions;
      const again = await openWorkspace(request.workspace ?? {}, { context, stateRoot, environment });
      for (const { message } of again.extensions.notices) warn(message);
      return again.extensions.extensions;
    },
    isDisabled: (id) => disabledExtensions.includes(id),
    async start({ path, scope }, profile) {
      const { startExtension } = await import("../extensions/extensions.ts");
      const { sdkPath } = asked;
      const { sessionId } = log;
      return startExtension({
        path,
        scope,
        cwd: context.cwd,
        sessionId,
        environment,
        secretNames,
        sdkPath,
        profile,
        prepare,
      });
    },
    withheld(names) {
      const wanted = names.flatMap((name) => {
        const value = environment[name];
        return value === undefined || isGiven(name, secretNames) ? [] : [[name, value] as const];
      });
      return Object.fromEntries(wanted);
    },
  };
}
