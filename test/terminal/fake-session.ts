import { EventEmitter } from "node:events";
import type { ReadStream, WriteStream } from "node:tty";
import type { SessionEvent } from "../../src/protocol/event.ts";
import type { Client } from "../../src/sdk/client.ts";
import type { SessionConfig } from "../../src/sdk/config.ts";
import { App } from "../../src/terminal/app.ts";
import { firstFrame } from "../../src/terminal/first-frame.ts";
import { InputReader } from "../../src/terminal/input/stdin.ts";
import { TerminalSession } from "../../src/terminal/session.ts";
import { Tty } from "../../src/terminal/tty.ts";
import { type VirtualTerminal, virtualTerminal } from "./virtual-terminal.ts";

/** The terminal on an emulator, with events and answers in the hands of the test in place of a server. */
export async function appWithEvents(options: {
  readonly columns: number;
  readonly rows: number;
  readonly home: string;
  readonly past?: readonly SessionEvent[];
}) {
  const { columns, rows, home, past = [] } = options;
  const terminal: VirtualTerminal = virtualTerminal({ columns, rows });
  const writes: string[] = [];
  const requests: { readonly method: string; readonly params: unknown }[] = [];
  let written: Promise<void> = Promise.resolve();
  const input = Object.assign(new EventEmitter(), {
    setRawMode: () => undefined,
    pause: () => undefined,
    resume: () => undefined,
  });
  const output = Object.assign(new EventEmitter(), {
    columns,
    rows,
    write(bytes: string): boolean {
      writes.push(bytes);
      written = written.then(() => terminal.write(bytes));
      return true;
    },
  });
  let hear: (event: SessionEvent) => void = () => undefined;
  const client = {
    async createSession(config: SessionConfig) {
      hear = (event) => config.onEvent?.(event);
      return {
        sessionId: "11111111-2222-3333-4444-555555555555",
        getEvents: async () => [...past],
        disconnect: async () => undefined,
        async request(method: string, params: unknown) {
          requests.push({ method, params });
          return method === "session.commands.list" ? { commands: [] } : { success: true, removed: true };
        },
      };
    },
  } as unknown as Client;
  const first = firstFrame(input as unknown as ReadStream, output as unknown as WriteStream);
  const environment = { NO_COLOR: "1" };
  const tty = new Tty({
    input: input as unknown as ReadStream,
    output: output as unknown as WriteStream,
    first,
    environment,
  });
  const app = new App({ tty, environment, cwd: "/work", home, version: "0", open: async () => undefined });
  const reader = new InputReader((event) => app.input(event));
  tty.listen(
    (chunk) => reader.read(chunk),
    () => app.screen.resized(),
  );
  const session = await TerminalSession.open({
    client,
    cwd: "/work",
    resumeId: undefined,
    onChange: (changed) => {
      if (app.session === changed) app.viewChanged();
    },
  });
  app.attach(session, { isResumed: false, sends: true });
  return {
    app,
    terminal,
    writes,
    requests,
    emit: (event: SessionEvent) => hear(event),
    send: (bytes: string) => void input.emit("data", Buffer.from(bytes)),
    resize(toColumns: number, toRows: number) {
      terminal.resize(toColumns, toRows);
      Object.assign(output, { columns: toColumns, rows: toRows });
      output.emit("resize");
    },
    /** Waits until nothing is left to draw, then for the emulator. */
    async settle(): Promise<void> {
      await new Promise((resolve) => setTimeout(resolve, 140));
      await written;
    },
    async close(): Promise<void> {
      await app.close();
      reader.close();
      app.screen.close([]);
      tty.close();
      await written;
    },
  };
}

/** Makes events as a session would, with ids and times in order. */
export function eventMaker() {
  let count = 0;
  let parentId: string | null = null;
  return (
    type: SessionEvent["type"],
    data: object,
    more: { agentId?: string; ephemeral?: boolean } = {},
  ): SessionEvent => {
    count++;
    const id = `e${count}`;
    const timestamp = new Date(Date.UTC(2026, 0, 1) + count * 1000).toISOString();
    const event = { id, timestamp, parentId, type, data, ...more } as unknown as SessionEvent;
    if (!more.ephemeral) parentId = id;
    return event;
  };
}
