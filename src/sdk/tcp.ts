import { connect } from "node:net";
import { defined } from "../lib/defined.ts";
import type { Connection, Transport } from "./transport.ts";

const CONNECT_MS = 10_000;

/** Connects to a running server. Disconnecting does not end it. */
export async function joinServer(connection: Extract<Connection, { kind: "tcp" }>): Promise<Transport> {
  const { port, host = "localhost", token } = connection;
  const socket = connect({ port, host, noDelay: true });
  await new Promise<void>((resolve, reject) => {
    const fail = (why: string): void => {
      socket.destroy();
      reject(new Error(`No server answers at ${host}:${port}: ${why}`));
    };
    const timer = setTimeout(() => fail(`nothing after ${CONNECT_MS / 1000} s`), CONNECT_MS);
    socket.once("error", (error) => fail(error.message));
    socket.once("connect", () => {
      clearTimeout(timer);
      socket.removeAllListeners("error");
      resolve();
    });
  });
  const ended = new Promise<string>((resolve) => {
    socket.once("error", (error) => resolve(`The connection to ${host}:${port} broke: ${error.message}`));
    socket.once("close", () => resolve(`The connection to ${host}:${port} was closed.`));
  });
  return {
    input: socket,
    output: socket,
    ended,
    ...defined({ token }),
    isOwned: false,
    async close() {
      socket.end();
      socket.destroySoon();
      await ended;
    },
    kill: () => void socket.destroy(),
  };
}
