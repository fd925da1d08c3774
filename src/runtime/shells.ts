import type { Disk } from "../lib/node/disk.ts";
import type { Stamp } from "../lib/stamp.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { Sandbox, SandboxMode } from "../tools/shell/sandbox.ts";
import type { Shells } from "../tools/shell/shells.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** One for all sessions of a process; made, and looked for, with the first command. */
export interface SandboxSource {
  get(network: boolean): Promise<Sandbox>;
  close(): Promise<void>;
}

export function sandboxSource(options: { environment: Environment; stateRoot: string; disk: Disk }): SandboxSource {
  const { environment, stateRoot, disk } = options;
  const mode = sandboxMode(environment);
  const made = new Map<boolean, Promise<Sandbox>>();
  return {
    get(network) {
      const found = made.get(network);
      if (found) return found;
      const making = import("../tools/shell/sandbox.ts").then(({ createSandbox }) =>
        createSandbox({ mode, stateRoot, network, disk }),
      );
      made.set(network, making);
      return making;
    },
    async close() {
      for (const sandbox of made.values()) await (await sandbox).close();
    },
  };
}

/** The shells of one session, loaded with its first command: most sessions of a prompt run none. */
export function lazyShells(options: {
  sandbox: () => Promise<Sandbox>;
  folder: string;
  stamp: Stamp;
  disk: Disk;
  environment: Environment;
  onWarning: (message: string) => void;
}): Shells {
  let made: Shells | undefined;
  let making: Promise<Shells> | undefined;
  const get = (): Promise<Shells> => {
    making ??= (async () => {
      const { createShells } = await import("../tools/shell/session-shells.ts");
      made = createShells({ ...options, sandbox: await options.sandbox() });
      return made;
    })();
    return making;
  };
  return {
    run: async (request) => (await get()).run(request),
    read: async (request) => (await get()).read(request),
    write: async (request) => (await get()).write(request),
    stop: async (shellId) => (await get()).stop(shellId),
    list: () => made?.list() ?? [],
    takeFinished: () => made?.takeFinished() ?? [],
    closeAll: async () => (await making)?.closeAll(),
  };
}

/** Only the user's own environment decides; a project has no say. */
function sandboxMode(environment: Environment): SandboxMode {
  const wanted = environment.TROUPE_SANDBOX || "auto";
  if (wanted === "auto" || wanted === "required" || wanted === "off") return wanted;
  throw new TroupeError("configuration", `TROUPE_SANDBOX must be auto, required or off, not "${wanted}".`);
}
