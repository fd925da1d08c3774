import { createRuntime, type RuntimeOptions } from "../runtime/runtime.ts";
import type { SessionRequest } from "../runtime/session-request.ts";
import { inProcessTransport } from "./in-process-transport.ts";
import type { OwnProgram } from "./leave-consolidation.ts";
import { Server } from "./server.ts";

export interface InProcessOptions extends RuntimeOptions {
  /** Working directory of sessions that name none. Default: the current directory. */
  readonly cwd?: string;
  /** Defaults for every session. */
  readonly defaults?: Omit<SessionRequest, "cwd">;
  /** The command that starts troupe; see `ServerOptions`. */
  readonly program?: OwnProgram | undefined;
  /** Other programs of this user may join its sessions. Default: false. */
  readonly isJoinable?: boolean;
  /** Receives messages for the user. Default: they are discarded. */
  readonly say?: (message: string) => void;
}

/**
 * A server inside this process, for `createClient({ connection: inProcess(…) })`. It uses the same frames as a pipe, so
 * that a program behaves the same in both cases. Every client has its own server; the servers share the data on disk.
 */
export function inProcess(options: InProcessOptions) {
  return {
    kind: "custom" as const,
    async open() {
      const {
        cwd = process.cwd(),
        defaults = {},
        say = () => undefined,
        program,
        isJoinable,
        ...runtimeOptions
      } = options;
      const server = new Server({
        runtime: createRuntime(runtimeOptions),
        environment: options.environment,
        cwd,
        defaults,
        say,
        program,
      });
      const joinable = isJoinable ? joinableOrNot(server, say) : undefined;
      return inProcessTransport(server, async () => (await joinable)?.());
    },
  };
}

/** A machine without loopback still has its sessions. */
async function joinableOrNot(server: Server, say: (message: string) => void): Promise<() => Promise<void>> {
  try {
    return await (await import("./joinable.ts")).makeJoinable(server);
  } catch (error) {
    say(`other terminals cannot join: ${error instanceof Error ? error.message : String(error)}`);
    return async () => undefined;
  }
}
