import { duplexPair } from "node:stream";
import { deferred } from "../lib/deferred.ts";
import { createRuntime, type RuntimeOptions } from "../runtime/runtime.ts";
import type { SessionRequest } from "../runtime/session-request.ts";
import type { OwnProgram } from "./leave-consolidation.ts";
import { Server } from "./server.ts";

export interface InProcessOptions extends RuntimeOptions {
  /** Where sessions work that name no folder; the current one unless told. */
  readonly cwd?: string;
  /** What holds for every session. */
  readonly defaults?: Omit<SessionRequest, "cwd">;
  /** The command that starts troupe; see `ServerOptions`. */
  readonly program?: OwnProgram | undefined;
  /** For people; nothing is said unless told. */
  readonly say?: (message: string) => void;
}

/**
 * A server inside this process, for `createClient({ connection: inProcess(…) })`: the same frames as over a pipe, so that a
 * program behaves the same in both places. Every client has a server of its own; they share what is on disk.
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
