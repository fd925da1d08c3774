import { duplexPair } from "node:stream";
import { deferred } from "../lib/deferred.ts";
import type { Servable } from "./serve.ts";

/** Connects a client of this process with a server of this process, with the same frames as a pipe. */
export function inProcessTransport(server: Servable & { close(): Promise<void> }, beforeClose?: () => Promise<void>) {
  const [near, far] = duplexPair();
  const ended = deferred<string>();
  server.accept({ input: far, output: far });
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closing ??= Promise.resolve(beforeClose?.())
      .then(() => server.close())
      .then(() => {
        near.destroy();
        ended.resolve("The server of this process was closed.");
      });
    return closing;
  };
  near.once("close", () => void close());
  return { input: near, output: near, ended: ended.promise, isOwned: true, close, kill: () => void close() };
}
