/** Serves clients over stdin and stdout, or over a loopback port. */

import { createServer, type Server as NetServer, type Socket } from "node:net";
import { deferred } from "../lib/deferred.ts";
import { defined } from "../lib/defined.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { Server } from "./server.ts";

/** A server of either kind: for sessions of this process, or for those of workers. */
export type Servable = Pick<Server, "accept" | "onLastGone" | "isShuttingDown">;

/** Resolves when stdin ends. */
export async function serveStdio(server: Servable): Promise<void> {
  const gone = deferred<void>();
  server.onLastGone = gone.resolve;
  server.accept({ input: process.stdin, output: process.stdout });
  await gone.promise;
}

export interface ServerListener {
  readonly port: number;
  /** Resolves when the server was shut down and the last client has disconnected. */
  readonly ended: Promise<void>;
  /** Accepts no new clients. */
  close(): void;
}

/** Listens on both loopback addresses if there are two: clients connect to `localhost`. */
export async function serveTcp(
  server: Servable,
  options: { port: number; token: string | undefined },
): Promise<ServerListener> {
  const { token } = options;
  const accept = (socket: Socket): void => {
    socket.setNoDelay(true);
    const accepted = server.accept({ input: socket, output: socket, ...defined({ token }) });
    if (!accepted) socket.destroy();
  };
  const first = await listen("127.0.0.1", options.port, accept);
  const address = first.address();
  const port = typeof address === "object" && address ? address.port : options.port;
  // Another program may use this port on the other address. Clients that try both still connect.
  const second = await listen("::1", port, accept).catch(() => undefined);
  const ended = deferred<void>();
  server.onLastGone = () => {
    if (server.isShuttingDown) ended.resolve();
  };
  return {
    port,
    ended: ended.promise,
    close() {
      first.close();
      second?.close();
    },
  };
}

function listen(host: string, port: number, accept: (socket: Socket) => void): Promise<NetServer> {
  const listener = createServer(accept);
  return new Promise((resolve, reject) => {
    listener.once("error", (cause: NodeJS.ErrnoException) => {
      const why = cause.code === "EADDRINUSE" ? "another program uses it" : cause.message;
      reject(
        new TroupeError("usage", `Cannot listen on port ${port}: ${why}.`, { hint: "Name another: --port.", cause }),
      );
    });
    listener.listen({ host, port, exclusive: true }, () => resolve(listener));
  });
}
