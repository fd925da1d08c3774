import { connect } from "node:net";
import { describe, expect, it } from "vitest";
import { type Stamp, systemStamp } from "../../src/lib/stamp.ts";
import {
  breaksOff,
  calls,
  type Faults,
  fails,
  httpStatus,
  type ModelServer,
  modelServer,
  rawBytes,
  says,
  together,
  virtualClock,
  withFaults,
} from "../../src/testing/index.ts";
import { processorTime } from "../support/work.ts";
import { ask, eventsOf, wires } from "./wires.ts";

/** Time without a byte after which a reply counts as silent. */
const QUIET_MS = 400;

/** Reads until the body ends or breaks, or until nothing follows a body that is whole. The request must have arrived before. */
async function watch(server: ModelServer, path: string, isWhole: (body: string) => boolean = () => false) {
  const abort = new AbortController();
  const chunks: Uint8Array[] = [];
  const isQuiet = (): boolean => server.requests.length > 0 && isWhole(Buffer.concat(chunks).toString());
  const wait = (): NodeJS.Timeout =>
    setTimeout(() => {
      if (isQuiet()) abort.abort();
      else timer = wait();
    }, QUIET_MS);
  let timer = wait();
  let ending = "ended";
  try {
    const response = await fetch(`${server.baseUrl}${path}`, {
      method: "POST",
      body: JSON.stringify({ model: "m", stream: true, messages: [], input: "go" }),
      signal: abort.signal,
    });
    for await (const chunk of response.body ?? []) {
      chunks.push(chunk);
      clearTimeout(timer);
      timer = wait();
    }
  } catch {
    ending = abort.signal.aborted ? "silent" : "broken";
  }
  clearTimeout(timer);
  return { ending, body: Buffer.concat(chunks), reads: chunks.length };
}

const reply = together(says(["one ", "two "]), calls(["view", { path: "a" }]));

/** Real waits, but the same `created` in every reply. */
const frozenDate: Stamp = { ...systemStamp, now: () => 0 };

async function sent(path: string, faults: Faults, moves = reply, isWhole?: (body: string) => boolean) {
  await using server = await modelServer({ steps: [withFaults(moves, faults)], stamp: frozenDate });
  const result = await watch(server, path, isWhole);
  await server.close();
  server.assertSpent();
  return result;
}

describe.each(wires)("faults on the $name wire", ({ path, name }) => {
  it("a stall works at every border between events, and nowhere else", async () => {
    const { body } = await sent(path, {});
    const blocks = body.toString().split("\n\n").slice(0, -1);
    expect(blocks.length).toBeGreaterThan(7);
    const places = blocks.map((_, place) => place).concat(blocks.length);
    const blocksOf = (text: string): number => text.split("\n\n").length - 1;
    const stalled = await Promise.all(
      places.map((place) => sent(path, { stall: place }, reply, (text) => blocksOf(text) >= place)),
    );
    expect(stalled.map((result) => [result.ending, blocksOf(result.body.toString())])).toEqual(
      places.map((place) => ["silent", place]),
    );
  });

  it("a stall works before the headers, in the middle of arguments, and before the end", async () => {
    const whole = (await sent(path, {})).body.toString();
    const [headers, inArguments, end] = await Promise.all([
      sent(path, { stall: "headers" }, reply, () => true),
      sent(path, { stall: "arguments" }, reply, (text) => text.includes('"{\\"pa"')),
      sent(path, { stall: "end" }, reply, (text) => text.includes('a\\"}')),
    ]);
    expect([headers, inArguments, end].map((result) => result?.ending)).toEqual(["silent", "silent", "silent"]);
    expect(headers?.reads).toBe(0);
    expect(inArguments?.body.toString()).toContain('"{\\"pa"');
    expect(inArguments?.body.toString()).not.toContain('"th\\":');
    const finish = { chat: '"tool_calls"}', responses: "response.completed", messages: "message_delta" }[name];
    expect([whole.includes(finish), end?.body.toString().includes(finish)]).toEqual([true, false]);
  });

  it("a faulty model server continues after a stall that a promise ends", async () => {
    const stallUntil = new Promise((resolve) => setTimeout(resolve, 10));
    const result = await sent(path, { stall: "arguments", stallUntil });
    expect([result.ending, eventsOf(result.body.toString()).length > 7]).toEqual(["ended", true]);
  });

  it("a faulty model server drops the connection at a given byte", async () => {
    const whole = (await sent(path, {})).body;
    const places = [0, 1, 100, whole.length - 1, whole.length];
    for (const drop of places) {
      const { ending, body } = await sent(path, { drop });
      expect({ ending, length: body.length }).toEqual({ ending: "broken", length: drop });
    }
    expect(await sent(path, { drop: "headers" })).toMatchObject({ ending: "broken", reads: 0 });
  });

  it("a faulty model server delivers the text from before the network failure", async () => {
    const { ending, body } = await sent(path, {}, together(breaksOff("so far"), fails("network")));
    expect([ending, body.toString().includes("so far")]).toEqual(["broken", true]);
  });

  it("a faulty model server ends a stream in good order but too early", async () => {
    const whole = (await sent(path, {})).body.toString();
    for (const cut of ["arguments", "end", 0, 2] as const) {
      const { ending, body } = await sent(path, { cut });
      expect(ending).toBe("ended");
      expect(whole.startsWith(body.toString()) && body.length < whole.length).toBe(true);
    }
  });

  it("a faulty model server sends byte by byte, through the middle of characters", async () => {
    const moves = says("ü😀");
    const whole = await sent(path, {}, moves);
    const dripped = await sent(path, { drip: { bytes: 1, everyMs: 0 } }, moves);
    expect(dripped.body.equals(whole.body)).toBe(true);
    expect(dripped.reads).toBeGreaterThan(20);
  });

  it("a faulty model server sends nothing but pings", async () => {
    await using server = await modelServer({ steps: [withFaults(reply, { pingsOnlyEveryMs: 2 })] });
    const response = await fetch(`${server.baseUrl}${path}`, { method: "POST", body: '{"stream":true}' });
    let body = "";
    for await (const chunk of response.body ?? []) {
      body += Buffer.from(chunk).toString();
      if (body.length > 40) break;
    }
    expect(body).toMatch(/^(: ping\n\n)+$/);
    server.assertSpent();
  });

  it("a faulty model server garbles its data and sends a wrong content type", async () => {
    await using server = await modelServer({
      steps: [
        withFaults(says("a"), { garble: (body) => `\uFEFF${body.replaceAll("\n", "\r\n")}`, contentType: "text/html" }),
      ],
    });
    const response = await fetch(`${server.baseUrl}${path}`, { method: "POST", body: '{"stream":true}' });
    expect(response.headers.get("content-type")).toBe("text/html");
    const bytes = Buffer.from(await response.arrayBuffer()).toString();
    expect([bytes.startsWith("\uFEFF"), bytes.endsWith("\r\n\r\n"), /[^\r]\n/.test(bytes)]).toEqual([
      true,
      true,
      false,
    ]);
  });
});

describe("statuses and raw bytes", () => {
  const [chat] = wires;

  it("the model server sends any status with any form of Retry-After", async () => {
    const forms = ["1", "Fri, 31 Dec 1999 23:59:59 GMT", "0", "-5", "1000000000", "soon"];
    const steps = [
      ...forms.map((form) => httpStatus(429, { headers: { "retry-after": form } })),
      httpStatus(503),
      httpStatus(502, { body: "<html>", contentType: "text/html" }),
    ];
    await using server = await modelServer({ steps });
    const got = [];
    for (const _ of steps) {
      const { status, headers, body } = await ask(server, chat, { stream: true });
      got.push([status, headers.get("retry-after"), body === "<html>" ? body : JSON.parse(body).error.message]);
    }
    expect(got).toEqual([
      ...forms.map((form) => [429, form, "scripted HTTP 429"]),
      [503, null, "scripted HTTP 503"],
      [502, null, "<html>"],
    ]);
    server.assertSpent();
  });

  it("the model server sends raw bytes as they are, faults included", async () => {
    const bytes = Uint8Array.of(0xff, 0xfe, 0x0a, 0x64);
    await using server = await modelServer({ steps: [rawBytes(bytes), rawBytes("data: x", { drop: 3 })] });
    const first = await watch(server, chat.path);
    expect([first.ending, [...first.body]]).toEqual(["ended", [...bytes]]);
    expect(await watch(server, chat.path)).toMatchObject({ ending: "broken", body: Buffer.from("dat") });
    server.assertSpent();
  });

  it("the model server waits before the headers on the clock it was given", async () => {
    const stamp = virtualClock();
    await using server = await modelServer({ steps: [withFaults(says("a"), { delayMs: 60_000 })], stamp });
    const asked = ask(server, chat, { stream: false });
    await stamp.untilAsleep();
    expect(stamp.pending).toEqual([{ milliseconds: 60_000, dueMs: 60_000 }]);
    await stamp.advance(60_000);
    expect((await asked).status).toBe(200);
    expect(server.requests.map(({ atMs }) => atMs)).toEqual([0]);
  });

  it("the model server applies faults to a reply that is not streamed", async () => {
    await using server = await modelServer({
      steps: [withFaults(says("a"), { drop: 10 }), withFaults(says("a"), { cut: "end" }), breaksOff("a")],
    });
    await expect(ask(server, chat, { stream: false })).rejects.toThrow();
    expect((await ask(server, chat, { stream: false })).body).toBe("");
    expect((await ask(server, chat, { stream: false })).body).toMatch(/^\{"id":"chatcmpl-3".*[^}]$/);
    server.assertSpent();
  });

  it("the model server survives a client that sends garbage", async () => {
    await using server = await modelServer({ steps: [says("a")] });
    const socket = connect(server.port, "127.0.0.1");
    socket.on("error", () => {});
    socket.end("nonsense\r\n\r\n");
    await new Promise((resolve) => socket.once("close", resolve));
    const half = connect(server.port, "127.0.0.1");
    half.on("error", () => {});
    half.write("POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{", () => half.destroy());
    await new Promise((resolve) => half.once("close", resolve));
    expect((await ask(server, chat, { stream: true })).status).toBe(200);
    server.assertSpent();
  });

  it("the model server streams a great many events without waiting for each one", async () => {
    await using server = await modelServer({ steps: [says(Array.from({ length: 20_000 }, () => "x"))] });
    const spent = processorTime();
    const { body } = await ask(server, chat, { stream: true });
    expect(chat.parse(body, true).text.length).toBe(20_000);
    expect(spent()).toBeLessThan(10_000);
  });
});
