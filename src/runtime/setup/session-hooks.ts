import { asSent } from "../../hooks/dialect.ts";
import type { Hooks } from "../../hooks/fire.ts";
import { DEFAULT_TIMEOUT_MS, type HookDefinition, MAX_TIMEOUT_MS } from "../../hooks/hooks.ts";
import { defined } from "../../lib/defined.ts";
import type { Emit } from "../../protocol/event.ts";
import type { RequestedSandbox } from "../permissions/sandbox-settings.ts";
import type { HookListener } from "../session-request.ts";
import type { Workspace } from "../workspace/workspace.ts";
import type { SessionSetup } from "./session-setup.ts";

/**
 * Returns a factory for the session's hooks, or undefined if it has none. The code of hooks is loaded only if needed.
 */
export async function loadSessionHooks(
  { stamp, environment, shared, channel, request }: SessionSetup,
  { workspace, requested }: { workspace: Workspace; requested: RequestedSandbox },
): Promise<((emit: Emit) => Hooks) | undefined> {
  const { hooks: definitions, root: projectRoot } = workspace;
  const warn = (message: string): void => channel.warn("hook", message);
  const prepare = shared.programs([projectRoot], { requested, onWarning: warn });
  const listeners = request.client?.program?.hooks;
  if (definitions.length === 0 && !listeners) return undefined;
  const { createHooks } = await import("../../hooks/fire.ts");
  const all = { definitions, ...(listeners && { live: await listening(listeners) }) };
  const { effects: effectGuard } = request;
  return (emit) =>
    createHooks({ ...all, stamp, environment, projectRoot, prepare, warn, emit, ...defined({ effectGuard }) });
}

/** Gives each listener a hook at every point. */
async function listening(listeners: () => readonly HookListener[]): Promise<() => readonly HookDefinition[]> {
  const [{ programHook }, { hookPoints }] = await Promise.all([
    import("../../hooks/load.ts"),
    import("../../hooks/points.ts"),
  ]);
  const made = new WeakMap<HookListener, readonly HookDefinition[]>();
  const hooksOf = (listener: HookListener): readonly HookDefinition[] => {
    const known = made.get(listener);
    if (known) return known;
    const hooks = hookPoints.map((point) =>
      programHook({
        point,
        name: listener.name,
        timeoutMs: listener.owner ? DEFAULT_TIMEOUT_MS : MAX_TIMEOUT_MS,
        ...defined({ owner: listener.owner }),
        run: (input, signal) => listener.invoke(point, asSent(input), signal),
      }),
    );
    made.set(listener, hooks);
    return hooks;
  };
  return () => listeners().flatMap(hooksOf);
}
