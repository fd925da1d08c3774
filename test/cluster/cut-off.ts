/**
 * A network namespace whose connection to this machine can be cut: packets vanish, nothing is reset. Needs root, `ip` and
 * `iptables`.
 */

import { spawnSync } from "node:child_process";
import { connect, createServer, type Socket } from "node:net";

export interface CutOff {
  /** The address of this machine, as seen from the namespace. */
  readonly address: string;
  /** The address of the namespace. */
  readonly peer: string;
  /** The command in front of a program that runs in the namespace. */
  readonly before: readonly string[];
  /** Lets the namespace reach a port of the loopback. Returns the port on `address`. */
  forward(port: number): Promise<number>;
  /** Drops all packets from now on, or only those of this port. */
  cut(port?: number): void;
  heal(): void;
  remove(): void;
}

/** Returns the reason why a namespace cannot be made here. */
export function missingForCutOff(): string | undefined {
  if (process.getuid?.() !== 0) return "needs root";
  for (const program of ["ip", "iptables"]) {
    if (spawnSync(program, ["-V"]).status !== 0) return `needs ${program}`;
  }
  const name = `troupe-probe-${process.pid}`;
  const made = spawnSync("ip", ["netns", "add", name]).status === 0;
  const drops = spawnSync("ip", ["netns", "exec", name, "iptables", "-w", "-A", "INPUT", "-j", "DROP"]).status === 0;
  spawnSync("ip", ["netns", "del", name]);
  return made && drops ? undefined : "needs network namespaces with iptables";
}

export function cutOff(): CutOff {
  const name = `troupe-${process.pid}`;
  const [here, there] = [`tr${process.pid}a`, `tr${process.pid}b`];
  const subnet = `10.231.${process.pid % 250}`;
  const [address, peer] = [`${subnet}.1`, `${subnet}.2`];
  run("ip", "netns", "add", name);
  const before = ["ip", "netns", "exec", name];
  const inside = (...command: readonly string[]): void => run(...before, ...command);
  const closers: (() => void)[] = [];
  try {
    run("ip", "link", "add", here, "type", "veth", "peer", "name", there, "netns", name);
    run("ip", "address", "add", `${address}/30`, "dev", here);
    run("ip", "link", "set", here, "up");
    inside("ip", "address", "add", `${peer}/30`, "dev", there);
    inside("ip", "link", "set", there, "up");
    inside("ip", "link", "set", "lo", "up");
  } catch (error) {
    spawnSync("ip", ["netns", "del", name]);
    throw error;
  }
  return {
    ...{ address, peer, before },
    async forward(port) {
      const sockets = new Set<Socket>();
      const server = createServer((client) => {
        const upstream = connect(port, "127.0.0.1");
        for (const socket of [client, upstream]) {
          sockets.add(socket);
          socket
            .on("error", () => undefined)
            .once("close", () => {
              client.destroy();
              upstream.destroy();
            });
        }
        client.pipe(upstream).pipe(client);
      });
      await new Promise<void>((resolve) => server.listen(0, address, resolve));
      closers.push(() => {
        for (const socket of sockets) socket.destroy();
        server.close();
      });
      const bound = server.address();
      return typeof bound === "object" && bound !== null ? bound.port : 0;
    },
    cut(port) {
      const only = (side: string): readonly string[] => (port ? ["-p", "tcp", side, String(port)] : []);
      inside("iptables", "-w", "-A", "INPUT", ...only("--sport"), "-j", "DROP");
      inside("iptables", "-w", "-A", "OUTPUT", ...only("--dport"), "-j", "DROP");
    },
    heal: () => inside("iptables", "-w", "-F"),
    remove() {
      for (const close of closers) close();
      spawnSync("ip", ["link", "del", here]);
      spawnSync("ip", ["netns", "del", name]);
    },
  };
}

function run(...command: readonly string[]): void {
  const [program = "", ...args] = command;
  const { status, stderr } = spawnSync(program, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${command.join(" ")}: ${stderr}`);
}
