import { duplexPair } from "node:stream";
import { deferred } from "../lib/deferred.ts";
import { createRuntime, type RuntimeOptions } from "../runtime/runtime.ts";
import type { SessionRequest } from "../runtime/session-request.ts";
import type { OwnProgram } from "./leave-consolidation.ts";
import { Server } from "./server.ts";

export interface InProcessOptions extends RuntimeOptions {
  /** Working directory of sessions that name none. Default: the current directory. */
  readonly cwd?: string;
  /** Defaults for every session. */
  readonly defaults?: Omit<SessionRequest, "cwd">;
  /** The command that starts troupe; see `ServerOptions`. */
  readonly program?: OwnProgram | undefined;
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
      const { cwd = process.cwd(), defaults = {}, say = () => undefined, program, ...runtimeOptions } = options;
      const server = new Server({
        runtime: createRuntime(runtimeOptions),
        environment: options.environment,
        ...{ cwd, defaults, say, program },
      });
      const [near, far] = duplexPair();
      const ended = deferred<string>();
      server.accept({ input: far, output: far });
      let closing: Promise<void> | undefined;
      const close = (): Promise<void> => {
        closing ??= server.close().then(() => {
          near.destroy();
          ended.resolve("The server of this process was closed.");
        });
        return closing;
      };
      near.once("close", () => void close());
      return { input: near, output: near, ended: ended.promise, isOwned: true, close, kill: () => void close() };
    },
  };
}
