import { join } from "node:path";
import type { Disk } from "../../lib/node/disk.ts";
import type { ConfinedCall } from "../../permissions/policy.ts";
import type { SandboxStatus } from "../../permissions/request.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { MountPoints } from "../../tools/shell/sandbox/mount-points.ts";
import type { Sandbox, SandboxMode } from "../../tools/shell/sandbox/sandbox.ts";
import type { FinishedCommand, Shells, ShellsOptions } from "../../tools/shell/shells.ts";
import { ToolError } from "../../tools/tool-error.ts";
import type { SandboxSettings } from "./sandbox-settings.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Sandboxes shared by sessions with the same settings. They are created, and probed, with the first command. */
export interface SandboxSource {
  get(network: boolean, settings?: SandboxSettings): Promise<Sandbox>;
  status(network: boolean, settings?: SandboxSettings): Promise<SandboxStatus>;
  close(): Promise<void>;
}

export function sandboxSource(options: { environment: Environment; stateRoot: string; disk: Disk }): SandboxSource {
  const { environment, stateRoot, disk } = options;
  const ruled = sandboxMode(environment);
  const made = new Map<string, Promise<Sandbox>>();
  let mountPoints: MountPoints | undefined;
  const source: SandboxSource = {
    get(network, { mode = "auto", allowedHosts = [], localNetwork = false, ...settings } = {}) {
      const key = JSON.stringify([network, mode, allowedHosts, localNetwork, settings]);
      const found = made.get(key);
      if (found) return found;
      const making = Promise.all([
        import("../../tools/shell/sandbox/sandbox.ts"),
        import("../../tools/shell/sandbox/mount-points.ts"),
      ]).then(([{ createSandbox }, { MountPoints: Points }]) => {
        // Shared by all sandboxes: one must not remove a mount point that another still uses.
        mountPoints ??= new Points(join(stateRoot, "sandbox"), disk);
        return createSandbox({
          ...settings,
          mode: ruled ?? mode,
          stateRoot,
          network: network || { allowedHosts, localNetwork },
          disk,
          mountPoints,
        });
      });
      made.set(key, making);
      return making;
    },
    async status(network, settings) {
      const mode = ruled ?? settings?.mode ?? "auto";
      if (mode === "off") return { required: false, absence: "The sandbox is switched off." };
      const probed = await (await source.get(network, settings)).probe();
      return { required: mode === "required", ...(!probed.available && { absence: probed.reason }) };
    },
    async close() {
      for (const sandbox of made.values()) await (await sandbox).close();
    },
  };
  return source;
}

/** The shells of one session, loaded with its first command because most prompt sessions run none. */
export function lazyShells(
  options: Omit<ShellsOptions, "sandbox"> & {
    readonly sandbox: () => Promise<Sandbox>;
    /** Called before each command: in plan mode commands must not change anything. */
    isPlanning?(): boolean;
    /** Returns true for a call that was permitted only without write access. */
    isReadOnly?(call: ConfinedCall): boolean;
  },
): Shells {
  const isPlanning = (): boolean => options.isPlanning?.() === true;
  const listeners = new Set<(finished: FinishedCommand) => void>();
  let made: Shells | undefined;
  let making: Promise<Shells> | undefined;
  const get = (): Promise<Shells> => {
    making ??= (async () => {
      const { createShells } = await import("../../tools/shell/session-shells.ts");
      made = createShells({ ...options, sandbox: await options.sandbox() });
      made.onFinished((finished) => {
        for (const listener of listeners) listener(finished);
      });
      return made;
    })();
    return making;
  };
  return {
    async run(request) {
      const shells = await get();
      const { command, toolCallId = "" } = request;
      const confined = options.isReadOnly?.({ toolCallId, command }) ?? false;
      const planning = request.readOnly ?? isPlanning();
      const needsGit = planning || (confined && /\bgit\b/.test(command));
      const variables = needsGit && (await (await import("../../lib/node/git.ts")).neutralVariables(request.cwd));
      const readOnly = planning || confined;
      return shells.run({ ...request, readOnly, ...(confined && { confined }), ...(variables && { variables }) });
    },
    read: async (request) => (await get()).read(request),
    async write(request) {
      if (isPlanning()) throw new ToolError("Plan mode is on, and nothing is typed into commands that may write.");
      return (await get()).write(request);
    },
    stop: async (shellId) => (await get()).stop(shellId),
    leavesSandbox: (call) => made?.leavesSandbox(call) ?? false,
    expectCommand: () => made?.expectCommand?.(),
    list: () => made?.list() ?? [],
    takeFinished: () => made?.takeFinished() ?? [],
    onFinished(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    closeAll: async () => (await making)?.closeAll(),
  };
}

/** Returns the mode from the user's environment, which wins over settings. */
export function sandboxMode(environment: Environment): SandboxMode | undefined {
  const wanted = environment.TROUPE_SANDBOX || undefined;
  if (wanted === undefined || wanted === "auto" || wanted === "required" || wanted === "off") return wanted;
  throw new TroupeError("configuration", `TROUPE_SANDBOX must be auto, required or off, not "${wanted}".`);
}
