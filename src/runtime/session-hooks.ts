import type { Hooks } from "../hooks/fire.ts";
import type { Emit } from "../protocol/event.ts";
import type { Draft } from "./draft.ts";
import type { SandboxWishes } from "./sandbox-settings.ts";
import type { Workspace } from "./workspace.ts";

/** Makes the hooks of a session when it has any; a session without pays nothing. */
export async function sessionHooks(
  { stamp, environment, shared, listener }: Draft,
  { workspace, wishes }: { workspace: Workspace; wishes: SandboxWishes },
): Promise<((emit: Emit) => Hooks) | undefined> {
  const { hooks: definitions, root: projectRoot } = workspace;
  const warn = (message: string): void => listener.warn("hook", message);
  const prepare = shared.programs([projectRoot], { wishes, onWarning: warn });
  if (definitions.length === 0) return undefined;
  const { createHooks } = await import("../hooks/fire.ts");
  return (emit) => createHooks({ definitions, stamp, environment, projectRoot, prepare, warn, emit });
}
