import { PassThrough } from "node:stream";
import { expect, it } from "vitest";
import { deferred } from "../../src/lib/deferred.ts";
import { ClientConnection } from "../../src/server/connection.ts";
import { ExtensionHost } from "../../src/server/extensions/extension-host.ts";
import type { ExtensionPort } from "../../src/session/session-options.ts";

type Found = Awaited<ReturnType<ExtensionPort["find"]>>[number];

/** A host whose programs are only counted: what is started, and what was not ended. */
function counted(names: readonly string[] = ["one"]) {
  const found = (name: string, version = 1): Found => ({
    ...{ id: `user:${name}`, name, source: "user", scope: "user" },
    path: `/${name}/${version}/extension.mjs`,
  });
  let there: readonly Found[] = names.map((name) => found(name));
  const started: string[] = [];
  const alive = new Set<number>();
  const connections: ClientConnection[] = [];
  const warnings: string[] = [];
  const slowStop = deferred<void>();
  let stops: () => Promise<void> = async () => undefined;
  const port: ExtensionPort = {
    locationKey: "here",
    find: async () => there,
    isDisabled: () => false,
    withheld: () => ({}),
    async start({ path }) {
      const pid = started.push(path);
      alive.add(pid);
      const ended = deferred<string>();
      return {
        ...{ pid, fromExtension: new PassThrough(), toExtension: new PassThrough().resume(), ended: ended.promise },
        lastStderr: () => "",
        async stop() {
          await stops();
          alive.delete(pid);
          ended.resolve("it ended with exit code 0");
        },
      };
    },
  };
  const host = new ExtensionHost({
    port: () => port,
    accept({ fromExtension: input, toExtension: output }) {
      const connection = new ClientConnection({
        ...{ id: "c1", input, output },
        handle: async () => undefined,
        onClose: () => undefined,
        onTrouble: () => undefined,
      });
      connections.push(connection);
      return connection;
    },
    profile: async () => undefined,
    onChange: () => undefined,
    warn: (message) => void warnings.push(message),
  });
  return {
    ...{ host, started, alive, connections, warnings },
    find: (versions: Readonly<Record<string, number>>) => {
      there = Object.entries(versions).map(([name, version]) => found(name, version));
    },
    stopSlowly() {
      stops = () => slowStop.promise;
      return slowStop.resolve;
    },
  };
}

it("switching on an extension that is about to join does not start it again", async () => {
  const { host, started, alive, connections } = counted();
  host.sync();
  await host.setEnabled("user:one", true);
  expect(started).toHaveLength(1);
  for (const connection of connections) host.joined(connection);
  await host.setEnabled("user:one", true);
  expect(started).toHaveLength(1);
  await host.close();
  expect([...alive]).toEqual([]);
});

it("an extension enabled during a reload is the newly found one, and ends with the session", async () => {
  const { host, started, alive } = counted();
  host.sync();
  await host.setEnabled("user:one", false);
  await Promise.all([host.reload(), host.setEnabled("user:one", true)]);
  expect(host.list).toMatchObject([{ id: "user:one", status: "starting" }]);
  expect(started).toHaveLength(2);
  expect([...alive]).toEqual([2]);
  await host.close();
  expect([...alive]).toEqual([]);
});

it("an extension that is switched on again runs in its current form, or not at all if it may not", async () => {
  const { host, started, find } = counted(["one", "two"]);
  host.sync();
  await host.setEnabled("user:one", false);
  await host.setEnabled("user:two", false);
  find({ one: 2 });
  await host.setEnabled("user:one", true);
  expect(started.at(-1)).toBe("/one/2/extension.mjs");
  await expect(host.setEnabled("user:two", true)).rejects.toThrow(/no extension user:two/);
  expect(started).toHaveLength(3);
  await host.close();
});

it("closing waits for extensions that failed before and have not exited yet", async () => {
  const { host, alive, connections, stopSlowly } = counted();
  host.sync();
  await host.setEnabled("user:one", true);
  const finish = stopSlowly();
  for (const connection of connections) {
    connection.close("It was noisy.");
    await host.handleDisconnect(connection);
  }
  expect(host.list).toMatchObject([{ status: "failed" }]);
  let isClosed = false;
  const closing = host.close().then(() => {
    isClosed = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(isClosed).toBe(false);
  finish();
  await closing;
  expect([...alive]).toEqual([]);
});
