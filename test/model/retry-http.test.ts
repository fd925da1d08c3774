/** Retries over real wires: what a server says in status and headers decides how long we stay away. */
import { describe, expect, it } from "vitest";
import { resolveModel } from "../../src/model/catalog.ts";
import type { ModelEvent } from "../../src/model/provider.ts";
import { withRetry } from "../../src/model/retry.ts";
import { readSettings } from "../../src/model/settings/settings.ts";
import { collect, request } from "./scripted.ts";
import { compatible, json, serve } from "./server.ts";

const live = new AbortController().signal;
const wallClock = Date.UTC(2026, 5, 1, 12);

interface Waited {
  readonly delays: number[];
  readonly requests: number;
  readonly end: ModelEvent | undefined;
}

/** The first answer is a refusal, the second a success; sleeping is only written down. */
async function refusedOnce(status: number, headers: Record<string, string>): Promise<Waited> {
  let answers = 0;
  await using server = await serve((asked, response) => {
    if (++answers > 1) return compatible([])(asked, response);
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    json(response, { error: { message: "not now" } }, status);
  });
  const delays: number[] = [];
  const stamp = {
    id: String,
    now: () => wallClock,
    monotonic: () => 0,
    sleep: async (milliseconds: number) => void delays.push(milliseconds),
  };
  const environment = { TROUPE_BASE_URL: `${server.url}/v1`, TROUPE_MODEL: "m" };
  const { provider, model } = await resolveModel(readSettings({ environment }), undefined, { stamp });
  const patient = withRetry(provider, { stamp, random: () => 0.5 });
  const events = await collect(patient.stream({ ...request, model }, live));
  const calls = server.requests.filter(({ url }) => url !== "/v1/models");
  return { delays, requests: calls.length, end: events.at(-1) };
}

describe("a 429", () => {
  const absent = 5_000 + 1_000 + 500;
  it.each([
    ["seconds", { "retry-after": "7" }, 7_175],
    ["fractions of a second", { "retry-after": "1.5" }, 1_538],
    ["milliseconds", { "retry-after-ms": "2500" }, 2_563],
    ["a date", { "retry-after": "Mon, 01 Jun 2026 12:00:30 GMT" }, 30_750],
    ["a date that has passed", { "retry-after": "Mon, 01 Jun 2026 11:00:00 GMT" }, absent],
    ["zero", { "retry-after": "0" }, absent],
    ["a negative number", { "retry-after": "-5" }, absent],
    ["garbage", { "retry-after": "soon" }, absent],
    ["nothing", {}, absent],
  ])(
    "a 429 is retried after the time in the header (%s), or after the back-off if that is longer",
    async (_, headers, delay) => {
      expect(await refusedOnce(429, headers)).toEqual({
        delays: [delay],
        requests: 2,
        end: { type: "end", stop: "done" },
      });
    },
  );

  it("a 429 is an error at once when the requested wait is too long, and the error says when to retry", async () => {
    expect(await refusedOnce(429, { "retry-after": "1000000000" })).toMatchObject({
      delays: [],
      requests: 1,
      end: { stop: "error", error: { kind: "rate_limit", hint: expect.stringContaining("2058-02-07 13:46 UTC") } },
    });
  });
});

it.each([400, 401, 402, 403, 404, 413, 422])(
  "the status %i is not retried, and the error says what to do",
  async (status) => {
    const { delays, requests, end } = await refusedOnce(status, {});
    expect({ delays, requests }).toEqual({ delays: [], requests: 1 });
    expect(end).toMatchObject({ stop: "error", error: { statusCode: status, hint: expect.stringMatching(/\w/) } });
  },
);

it.each([408, 409, 500, 502, 503])("the status %i is retried after the usual pause", async (status) => {
  expect(await refusedOnce(status, {})).toMatchObject({ delays: [100], requests: 2, end: { stop: "done" } });
});

it("a refused connection is retried, then explained", async () => {
  const delays: number[] = [];
  const stamp = { id: String, now: () => 0, monotonic: () => 0, sleep: async (ms: number) => void delays.push(ms) };
  const environment = { TROUPE_BASE_URL: "http://127.0.0.1:1/v1", TROUPE_MODEL: "m" };
  const { provider, model } = await resolveModel(readSettings({ environment }), undefined, { stamp });
  const patient = withRetry(provider, { stamp, random: () => 0.5 });
  const events = await collect(patient.stream({ ...request, model }, live));
  expect(delays).toEqual([100, 200, 400, 800, 1_600]);
  expect(events.at(-1)).toMatchObject({
    error: { kind: "network", message: expect.stringContaining("(gave up after 6 attempts)") },
  });
});
