/** Counts whoever comes: nobody may. */
import { createSocket } from "node:dgram";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer, type Server } from "node:net";

export interface CanaryServer extends AsyncDisposable {
  readonly port: number;
  /** Connections and datagrams so far. */
  readonly count: number;
  /** Paths that were asked for. */
  readonly asked: readonly string[];
}

/** HTTP and UDP on one port number of 127.0.0.1. */
export async function canaryServer(): Promise<CanaryServer> {
  const asked: string[] = [];
  let count = 0;
  const server = createHttpServer((request, response) => {
    asked.push(`${request.url ?? ""} ${JSON.stringify(request.headers)}`);
    response.end("canary");
  });
  server.on("connection", (socket) => {
    count++;
    socket.on("error", () => undefined);
  });
  await listening(server, { host: "127.0.0.1", port: 0 });
  const { port } = server.address() as AddressInfo;
  const datagrams = createSocket("udp4", () => count++);
  await new Promise<void>((resolve) => datagrams.bind(port, "127.0.0.1", resolve));
  return {
    port,
    asked,
    get count() {
      return count;
    },
    async [Symbol.asyncDispose]() {
      datagrams.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Unix sockets, in the file system or abstract. */
export async function canarySockets(paths: readonly string[]): Promise<Omit<CanaryServer, "port" | "asked">> {
  let count = 0;
  const servers = paths.map(() =>
    createServer((socket) => {
      count++;
      socket.on("error", () => undefined).end("canary");
    }),
  );
  await Promise.all(servers.map((server, index) => listening(server, { path: paths[index] ?? "" })));
  return {
    get count() {
      return count;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
    },
  };
}

function listening(server: Server, where: { host: string; port: number } | { path: string }): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(where, resolve);
  });
}
