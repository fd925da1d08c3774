/** Connects one sandboxed command with the proxy: two named pipes, and a program inside that turns them into a port. */
import * as fs from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import { Duplex } from "node:stream";
import type { Disk } from "../../../lib/node/disk.ts";
import { makeFifos } from "../process/output-pipe.ts";
import { namesIn, startOf } from "../process/processes.ts";
import { bridgeProgram, networkLink } from "./network-link.ts";
import { createNetworkProxy, type ProxyOptions } from "./network-proxy.ts";

export interface NetworkBridge {
  /** Paths of the pipes, for descriptors 7 (to read) and 8 (to write) of the command after `inside`. */
  readonly pipes: readonly [string, string];
  /** Prefix of the command, inside the sandbox. */
  readonly inside: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** In its own network namespace every port is free. */
const PORT = 3128;
const MAX_CONNECTIONS = 64;
const MAX_REFUSALS = 20;
/** The command substitution ends when the bridge closes descriptor 3, which it does once it listens. */
const INSIDE = ': "$("$1" -e "$2" <&7 3>&1 1>&8 2>/dev/null &)"; exec 7<&- 8>&-; shift 2; exec "$@"';
const OWN_NAME = /^net-(\d+)-/;

export async function openNetworkBridge(
  options: Omit<ProxyOptions, "onRefused"> & { folder: string; disk: Disk; onWarning(message: string): void },
): Promise<NetworkBridge> {
  const { disk, folder } = options;
  const base = join(folder, `net-${process.pid}-${crypto.randomUUID()}`);
  const pipes = [`${base}.in`, `${base}.out`] as const;
  await makeFifos(pipes);
  const refusals = { count: 0 };
  const onRefused = (message: string): void => {
    refusals.count++;
    if (refusals.count < MAX_REFUSALS) options.onWarning(message);
    if (refusals.count === MAX_REFUSALS) options.onWarning("The sandbox refused more connections of the same command.");
  };
  const proxy = await createNetworkProxy({ ...options, onRefused });
  const output = pipeSocket(pipes[0], "writable");
  const input = pipeSocket(pipes[1], "readable");
  const link = networkLink({
    Duplex,
    maxConnections: MAX_CONNECTIONS,
    send: (bytes) => void output.write(bytes),
    unsent: () => output.writableLength,
    onConnection: (connection) => proxy.accept(connection),
    onNonsense: () => {
      input.destroy();
      output.destroy();
      options.onWarning("The network of a sandboxed command was closed: it sent invalid data.");
    },
  });
  output.on("drain", () => link.drained());
  input.on("data", (bytes: Buffer) => link.receive(bytes));
  const url = `http://127.0.0.1:${PORT}`;
  return {
    pipes,
    inside: ["/bin/sh", "-c", INSIDE, "sh", process.execPath, bridgeProgram(PORT)],
    environment: {
      ...Object.fromEntries(
        ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].flatMap((name) => [
          [name, url],
          [name.toLowerCase(), url],
        ]),
      ),
      NO_PROXY: "localhost,127.0.0.1,::1",
      no_proxy: "localhost,127.0.0.1,::1",
      NODE_USE_ENV_PROXY: "1",
    },
    async close() {
      link.close();
      input.destroy();
      output.destroy();
      for (const path of pipes) await disk.unlink(path).catch(() => undefined);
    },
  };
}

/** Removes the pipes of killed processes. */
export async function sweepNetworkPipes(folder: string, disk: Disk): Promise<void> {
  for (const name of namesIn(folder)) {
    const [, pid] = OWN_NAME.exec(name) ?? [];
    if (pid !== undefined && startOf(Number(pid)) === "") await disk.unlink(join(folder, name)).catch(() => undefined);
  }
}

/** Opened for reading and writing, so that neither side waits for the other or ends with it. */
function pipeSocket(path: string, way: "readable" | "writable"): Socket {
  const fd = fs.openSync(path, fs.constants.O_RDWR | fs.constants.O_NONBLOCK);
  const socket = new Socket({ fd, readable: way === "readable", writable: way === "writable" });
  socket.on("error", () => undefined);
  socket.unref();
  return socket;
}
