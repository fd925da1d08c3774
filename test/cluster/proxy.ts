/** A TCP proxy in front of Postgres that cuts a connection when the server has committed, before the client hears of it. */

import { connect, createServer, type Server, type Socket } from "node:net";

export interface CuttingProxy {
  readonly url: string;
  /** Number of commits whose answer was cut off. */
  cuts(): number;
  close(): Promise<void>;
}

/** Cuts after every n-th statement that contains `text`. */
export async function cuttingProxy(
  url: string,
  { text, every }: { text: string; every: number },
): Promise<CuttingProxy> {
  const target = new URL(url);
  const { port, hostname } = target;
  const sockets = new Set<Socket>();
  let seen = 0;
  let cut = 0;
  const server: Server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    let isCutting = false;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.once("close", () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.on("data", (bytes) => {
      if (bytes.includes(text) && ++seen % every === 0) isCutting = true;
      upstream.write(bytes);
    });
    upstream.on("data", (bytes) => {
      // ReadyForQuery outside a transaction follows the commit.
      if (isCutting && isReady(bytes)) {
        cut++;
        client.destroy();
        return;
      }
      client.write(bytes);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  target.port = String(typeof address === "object" && address !== null ? address.port : 0);
  return {
    url: target.href,
    cuts: () => cut,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Whether the bytes end with ReadyForQuery outside a transaction: "Z", length 5, "I". */
const isReady = (bytes: Buffer): boolean => bytes.subarray(-6).equals(Buffer.from([0x5a, 0, 0, 0, 5, 0x49]));
