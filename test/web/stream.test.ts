import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { jsonlStore } from "../../src/store/jsonl.ts";
import { LogLines } from "../../src/store/log/log-lines.ts";
import { calls, says } from "../../src/testing/index.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { Feeds } from "../../src/web/feeds.ts";
import { fileSource } from "../../src/web/log-source.ts";
import { SessionFeed } from "../../src/web/session-feed.ts";
import { readStream } from "./events.ts";
import { webStage } from "./stage.ts";

const storedIds = (home: string, sessionId: string): string[] =>
  readFileSync(join(home, "session-state", sessionId, "events.jsonl"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as { id: string }).id);

const note = (index: number, size = 0): SessionEvent =>
  ({
    ...{ id: `e${index}`, timestamp: new Date(1_700_000_000_000 + index).toISOString(), parentId: null },
    type: "session.info",
    data: { infoType: "test", message: `${index}${"x".repeat(size)}` },
  }) as SessionEvent;

describe("the stream of a session", () => {
  it("the stream of a session has every stored event once, live, late and after a cut", async () => {
    await using stage = await webStage({ steps: [says("one"), says("two"), says("three")] });
    const { sessionId } = await stage.call<{ sessionId: string }>("web.create", { prompt: "first" });
    const isAnswered = (text: string) => (stream: { events(): SessionEvent[] }) =>
      stream.events().some((event) => event.type === "assistant.message" && event.data.content === text);

    await using live = await readStream(stage, `session=${sessionId}`);
    await live.until(isAnswered("one"));
    const cut = await readStream(stage, `session=${sessionId}`);
    await cut.until(({ all }) => all.some(({ kind }) => kind === "ready"));
    const before = cut.events();
    const last = cut.last();
    await cut[Symbol.asyncDispose]();

    await stage.call("session.send", { sessionId, prompt: "second" });
    await live.until(isAnswered("two"));
    await using resumed = await readStream(stage, `session=${sessionId}`, last);
    await resumed.until(isAnswered("two"));
    await stage.call("session.send", { sessionId, prompt: "third" });
    await live.until(isAnswered("three"));
    await resumed.until(isAnswered("three"));

    const ids = storedIds(stage.home, sessionId);
    const liveIds = live.events().map(({ id }) => id);
    expect(liveIds).toEqual(ids.slice(0, liveIds.length));
    const joined = [...before, ...resumed.events()].map(({ id }) => id);
    expect(joined).toEqual(ids.slice(0, joined.length));
    expect(resumed.last()).toBe(joined.length);
  });

  it("the stream of a session continues after a server restart without gap or duplicate", async () => {
    await using stage = await webStage({ steps: [says("one"), says("two")] });
    const { sessionId } = await stage.call<{ sessionId: string }>("web.create", { prompt: "first" });
    const first = await readStream(stage, `session=${sessionId}`);
    await first.until(({ events }) => events().some(({ type }) => type === "assistant.message"));
    const had = first.events();
    const last = first.last();
    await stage.restart();
    await first[Symbol.asyncDispose]();
    await using second = await readStream(stage, `session=${sessionId}`, last);
    await stage.call("session.send", { sessionId, prompt: "second" });
    await second.until(({ events }) => events().some(({ type }) => type === "assistant.message"));
    const joined = [...had, ...second.events()].map(({ id }) => id);
    expect(joined).toEqual(storedIds(stage.home, sessionId).slice(0, joined.length));
  });

  it("the stream of a foreign process's session shows its log, with pending requests", async () => {
    const steps = [calls(["bash", { command: "touch x", description: "make" }]), says("done")];
    await using stage = await webStage({ steps });
    const other = await stage.other();
    const session = await other.createSession({ onPermissionRequest: () => new Promise(() => undefined) });
    await using list = await readStream(stage, `session=${session.sessionId}`);
    await session.send("go");
    await list.until(({ events }) => events().some(({ type }) => type === "permission.requested"));
    const rows = (): { id: string; state: string; attention: readonly unknown[] }[] =>
      list.all.flatMap(({ data }) => (data.rows ?? []) as { id: string; state: string; attention: unknown[] }[]);
    await list.until(() => rows().some(({ id, state }) => id === session.sessionId && state === "waiting"));
    expect(rows().at(-1)?.attention).toHaveLength(1);
    // The other process is at work and cannot be joined: the refusal says where the session is.
    await expect(stage.call("session.abort", { sessionId: session.sessionId })).rejects.toThrow(/open in process/);
  });
});

describe("lines of a log", () => {
  it("lines of a log are read from any position, with foreign ones and without damaged ones", async () => {
    await using folder = await tempFolder({});
    const store = jsonlStore({ root: folder.path, disk: nodeDisk, stamp: systemStamp });
    const log = await store.create("s");
    for (let index = 1; index <= 1_200; index++)
      await log.append(note(index, index === 700 ? 900_000 : 20), { barrier: false });
    await log.close();
    const path = folder.at("session-state/s/events.jsonl");
    const lines = readFileSync(path, "utf8").trimEnd().split("\n");
    lines[99] = (lines[99] ?? "").replace("100", "1o0");
    lines[1_199] = JSON.stringify(note(1_200));
    writeFileSync(path, `${lines.join("\n")}\n{"torn":`);
    const reader = new LogLines(path);
    const all = async (after: number): Promise<number[]> => {
      const numbers: number[] = [];
      for (let at = after; ; ) {
        const { lines: page, last, isEnd } = await reader.read(at);
        for (const { number, json } of page) {
          expect((JSON.parse(json) as { id: string }).id).toBe(`e${number}`);
          numbers.push(number);
        }
        if (isEnd) return numbers;
        at = last;
      }
    };
    const whole = await all(0);
    expect(whole).toHaveLength(1_199);
    expect(whole).not.toContain(100);
    for (const after of [1_199, 5, 699, 700, 255, 256, 1_200]) {
      expect(await all(after)).toEqual(whole.filter((number) => number > after));
    }
  });
});

describe("a feed", () => {
  it("a feed puts ephemeral events between the stored ones as the session emitted them", async () => {
    await using folder = await tempFolder({});
    mkdirSync(folder.at("s"));
    const path = folder.at("s/events.jsonl");
    const store = (index: number): void => appendFileSync(path, `${JSON.stringify(note(index))}\n`);
    store(1);
    const feed = new SessionFeed(fileSource(path, () => undefined));
    feed.setOpen(true);
    const got: string[] = [];
    let isReady = false;
    const reader = {
      position: 0,
      take(events: readonly string[]) {
        got.push(...events.map((json) => (JSON.parse(json) as { id: string }).id));
        return true;
      },
      caughtUp() {
        isReady = true;
      },
    };
    feed.add(reader);
    await expect.poll(() => isReady).toBe(true);
    const delta = (id: string): SessionEvent => ({ ...note(0), id, ephemeral: true }) as SessionEvent;
    // Both are stored before anyone is told: the events between them still come between them.
    store(2);
    store(3);
    feed.onEvent(note(2));
    feed.onEvent(delta("d1"));
    feed.onEvent(delta("d2"));
    feed.onEvent(note(3));
    feed.onEvent(delta("d3"));
    await expect.poll(() => got).toEqual(["e1", "e2", "d1", "d2", "e3", "d3"]);
    feed.close();
  });

  it("a feed lets a slow reader catch up from the file, and gives it nothing twice", async () => {
    await using folder = await tempFolder({});
    mkdirSync(folder.at("s"));
    const path = folder.at("s/events.jsonl");
    writeFileSync(path, "");
    const feed = new SessionFeed(fileSource(path, () => undefined));
    const got: string[] = [];
    const waits: (() => void)[] = [];
    let isReady = false;
    feed.add({
      position: 0,
      take(events: readonly string[]) {
        got.push(...events.map((json) => (JSON.parse(json) as { id: string }).id));
        return got.length === 1 ? new Promise<boolean>((resolve) => waits.push(() => resolve(true))) : true;
      },
      caughtUp() {
        isReady = true;
      },
    });
    await expect.poll(() => isReady).toBe(true);
    const seen: number[] = [];
    feed.add({ position: 0, take: (_, last) => seen.push(last) > 0, caughtUp: () => undefined });
    for (let index = 1; index <= 3; index++) {
      appendFileSync(path, `${JSON.stringify(note(index))}\n`);
      feed.readNew();
      await expect.poll(() => seen.at(-1)).toBe(index);
    }
    expect(got).toEqual(["e1"]);
    for (const go of waits) go();
    await expect.poll(() => got).toEqual(["e1", "e2", "e3"]);
    feed.close();
  });
});

it("a tab that is opened later sees a pending form, until it is answered", async () => {
  await using folder = await tempFolder({});
  const feeds = new Feeds((sessionId) => fileSource(folder.at(sessionId), () => undefined));
  const about = { timestamp: new Date().toISOString(), parentId: null, ephemeral: true } as const;
  const hear = (event: object): void => feeds.onEvent("one", { id: crypto.randomUUID(), ...about, ...event } as never);
  const heard = (): Promise<readonly string[]> =>
    new Promise((resolve) => {
      const types: string[] = [];
      const stop = feeds.follow("one", {
        position: 0,
        take(events) {
          types.push(...events.map((text) => (JSON.parse(text) as { type: string }).type));
          return true;
        },
        caughtUp() {
          setImmediate(() => {
            stop();
            resolve(types);
          });
        },
      });
    });
  feeds.setOpen("one", true);
  hear({ type: "elicitation.requested", data: { requestId: "r1", message: "How many?" } });
  expect(await heard()).toEqual(["elicitation.requested"]);
  hear({ type: "elicitation.completed", data: { requestId: "r1" } });
  expect(await heard()).toEqual([]);
  hear({ type: "elicitation.requested", data: { requestId: "r2", message: "How many?" } });
  feeds.setOpen("one", false);
  expect(await heard()).toEqual([]);
});

it("a request stays open for a tab when its session is parked, until it is answered", async () => {
  await using folder = await tempFolder({});
  const feeds = new Feeds((sessionId) => fileSource(folder.at(sessionId), () => undefined));
  const about = { timestamp: new Date().toISOString(), parentId: null };
  const line = (id: string, type: string, data: object): string => `${JSON.stringify({ id, ...about, type, data })}\n`;
  const asked = { id: "e0", ...about, ephemeral: true, type: "permission.requested", data: { requestId: "r1" } };
  const types: string[] = [];
  const stop = feeds.follow("one", {
    position: 0,
    take(events) {
      types.push(...events.map((text) => (JSON.parse(text) as { type: string }).type));
      return true;
    },
    caughtUp: () => feeds.announce("one", [asked as never]),
  });
  await expect.poll(() => types).toEqual(["permission.requested"]);
  writeFileSync(folder.at("one"), line("e1", "permission.completed", { requestId: "r1" }));
  feeds.readNew("one");
  await expect.poll(() => types.slice(1)).toEqual(["permission.completed", "permission.requested"]);
  appendFileSync(folder.at("one"), line("e2", "session.shutdown", {}));
  feeds.readNew("one");
  await expect.poll(() => types.slice(3)).toEqual(["session.shutdown", "permission.requested"]);
  feeds.announce("one", []);
  await expect.poll(() => types.slice(5)).toEqual(["user_input.completed"]);
  stop();
});
