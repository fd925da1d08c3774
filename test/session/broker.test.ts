import { describe, expect, test } from "vitest";
import type { Emit } from "../../src/protocol/event.ts";
import { type Answerer, Broker } from "../../src/session/requests/broker.ts";
import { brokerUser } from "../../src/session/requests/broker-user.ts";
import { virtualClock } from "../../src/testing/faux-stamp.ts";

interface Stage {
  readonly broker: Broker;
  readonly clock: ReturnType<typeof virtualClock>;
  readonly said: string[];
  readonly events: { type: string; data: object }[];
}

function stage(options: { graceMs?: number; emit?: Emit } = {}): Stage {
  const clock = virtualClock();
  const events: Stage["events"] = [];
  const said: string[] = [];
  const emit: Emit = async (type, data) => {
    events.push({ type, data });
    said.push(`${type} ${"requestId" in data ? data.requestId : ""}`);
  };
  return { broker: new Broker({ emit, stamp: clock, graceMs: 1000, ...options }), clock, said, events };
}

const url = { permissionRequest: { kind: "url", url: "https://example.com/", intention: "read" } } as const;
const client: Answerer = { kinds: ["permission", "user_input"] };
const settle = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));

describe("an answer to a request", () => {
  test("an answer to a request is accepted if it is the first, and both ends are announced", async () => {
    const { broker, events } = stage();
    broker.attach(client);
    const outcome = broker.request("permission", url);
    await settle();
    expect(broker.pending("permission")).toEqual([{ ...url, kind: "permission", requestId: "request-1" }]);
    expect(broker.answer("permission", "request-1", { kind: "approved" })).toBe("accepted");
    expect(broker.answer("permission", "request-1", { kind: "denied-interactively-by-user" })).toBe("already answered");
    expect(await outcome).toEqual({ kind: "approved" });
    expect(broker.answer("permission", "request-1", { kind: "approved" })).toBe("already answered");
    expect(broker.pending()).toEqual([]);
    expect(events).toEqual([
      { type: "permission.requested", data: { ...url, requestId: "request-1" } },
      { type: "permission.completed", data: { requestId: "request-1", result: { kind: "approved" } } },
    ]);
  });

  test("an answer of another kind, or to an unknown request, changes nothing", async () => {
    const { broker } = stage();
    broker.attach(client);
    const outcome = broker.request("permission", url);
    await settle();
    expect(broker.answer("user_input", "request-1", { answer: "yes", wasFreeform: true })).toBe("unknown");
    expect(broker.answer("permission", "request-9", { kind: "approved" })).toBe("unknown");
    expect(broker.answer("permission", "request-1", { kind: "denied-interactively-by-user", feedback: "no" })).toBe(
      "accepted",
    );
    expect(await outcome).toEqual({ kind: "denied-interactively-by-user", feedback: "no" });
  });

  test("an answer settles only its own request", async () => {
    const { broker, said } = stage();
    broker.attach(client);
    const first = broker.request("user_input", { question: "A?" });
    const second = broker.request("user_input", { question: "B?" });
    await settle();
    broker.answer("user_input", "request-2", { answer: "b", wasFreeform: false });
    expect(await second).toEqual({ answer: "b", wasFreeform: false });
    broker.answer("user_input", "request-1", { answer: "a", wasFreeform: true });
    expect(await first).toEqual({ answer: "a", wasFreeform: true });
    expect(said).toEqual([
      "user_input.requested request-1",
      "user_input.requested request-2",
      "user_input.completed request-2",
      "user_input.completed request-1",
    ]);
  });

  test("an answer cancels the slower handlers", async () => {
    const { broker } = stage();
    let stopped = false;
    broker.attach({
      kinds: ["user_input"],
      handle: (_, signal) =>
        new Promise((resolve) => {
          signal.addEventListener("abort", () => {
            stopped = true;
            resolve(undefined);
          });
        }),
    });
    broker.attach({ kinds: ["user_input"], handle: async () => ({ answer: "quick", wasFreeform: true }) });
    expect(await broker.request("user_input", { question: "?" })).toEqual({ answer: "quick", wasFreeform: true });
    expect(stopped).toBe(true);
  });
});

describe("a request without an answer (R28)", () => {
  test("a request without a handler ends at once, without an event", async () => {
    const { broker, said } = stage();
    broker.attach({ kinds: ["elicitation"] });
    expect(await broker.request("permission", url)).toBe("unavailable");
    expect(said).toEqual([]);
  });

  test("a request without an answer is denied some time after all clients have gone", async () => {
    const { broker, clock, events } = stage({ graceMs: 1000 });
    const detachFirst = broker.attach(client);
    const detachSecond = broker.attach({ kinds: ["permission"] });
    const outcome = broker.request("permission", url);
    await settle();
    detachFirst();
    await clock.advance(5000);
    expect(broker.pending()).toHaveLength(1);
    detachSecond();
    detachSecond();
    await clock.advance(999);
    expect(broker.pending()).toHaveLength(1);
    await clock.advance(1);
    expect(await outcome).toBe("unavailable");
    expect(events.at(-1)).toEqual({
      type: "permission.completed",
      data: {
        requestId: "request-1",
        result: { kind: "denied-no-approval-rule-and-could-not-request-from-user" },
      },
    });
    expect(broker.answer("permission", "request-1", { kind: "approved" })).toBe("expired");
    expect(clock.pending).toEqual([]);
  });

  test("a request without an answer is found and answered by a client that comes back in time", async () => {
    const { broker, clock, said } = stage({ graceMs: 1000 });
    const detach = broker.attach(client);
    const outcome = broker.request("permission", url);
    await settle();
    detach();
    await clock.advance(900);
    const detachAgain = broker.attach(client);
    await clock.advance(5000);
    detachAgain();
    await clock.advance(900);
    broker.attach({ kinds: ["permission"], handle: async () => ({ kind: "approved" }) });
    expect(await outcome).toEqual({ kind: "approved" });
    expect(clock.pending).toEqual([]);
    expect(said).toEqual(["permission.requested request-1", "permission.completed request-1"]);
  });

  test("a request refuses an answer after its time is over", async () => {
    const { broker, clock } = stage();
    broker.attach(client);
    const outcome = broker.request("user_input", { question: "?" }, { timeoutMs: 500 });
    await settle();
    await clock.advance(500);
    expect(await outcome).toBe("unavailable");
    expect(broker.answer("user_input", "request-1", { answer: "late", wasFreeform: true })).toBe("expired");
  });

  test("handlers that cannot decide or fail count as absent", async () => {
    const { broker } = stage();
    broker.attach({ kinds: ["permission"], handle: async () => undefined });
    broker.attach({
      kinds: ["permission"],
      handle: () => {
        throw new Error("broken");
      },
    });
    expect(await broker.request("permission", url)).toBe("unavailable");
    broker.attach({ kinds: ["permission"], handle: async () => ({ kind: "approved" }) });
    expect(await broker.request("permission", url)).toEqual({ kind: "approved" });
  });

  test("a request is refused, not queued, when too many are pending", async () => {
    const { broker } = stage();
    broker.attach(client);
    const requests = Array.from({ length: 1001 }, () => broker.request("user_input", { question: "?" }));
    expect(await requests[1000]).toBe("unavailable");
    expect(broker.pending()).toHaveLength(1000);
    await broker.close();
  });
});

describe("a cancelled request", () => {
  test("a request is cancelled by an abort before and during the wait", async () => {
    const { broker, events, clock } = stage();
    broker.attach(client);
    const stop = new AbortController();
    const outcome = broker.request("permission", url, { signal: stop.signal });
    await settle();
    stop.abort();
    expect(await outcome).toBe("cancelled");
    expect(events.at(-1)).toEqual({
      type: "permission.completed",
      data: { requestId: "request-1", result: { kind: "cancelled" } },
    });
    expect(broker.answer("permission", "request-1", { kind: "approved" })).toBe("expired");
    expect(await broker.request("permission", url, { signal: stop.signal })).toBe("cancelled");
    expect(events).toHaveLength(2);
    expect(clock.pending).toEqual([]);
  });

  test("a cancelled request does not stay pending after the close", async () => {
    const { broker, said, clock } = stage();
    broker.attach({ kinds: ["permission", "elicitation", "sampling", "external_tool", "exit_plan_mode"] });
    const plan = {
      summary: "s",
      planContent: "p",
      actions: ["interactive"],
      recommendedAction: "interactive",
    } as const;
    const outcomes = [
      broker.request("permission", url),
      broker.request("elicitation", { message: "Name?" }),
      broker.request("sampling", { mcpRequestId: 7, serverName: "x" }),
      broker.request("external_tool", { sessionId: "s", toolCallId: "c", toolName: "t" }),
      broker.request("exit_plan_mode", { ...plan, actions: [...plan.actions] }),
    ];
    await settle();
    await broker.close();
    expect(await Promise.all(outcomes)).toEqual(Array(5).fill("cancelled"));
    expect(said.filter((line) => line.includes(".completed"))).toHaveLength(5);
    expect(broker.pending()).toEqual([]);
    expect(clock.pending).toEqual([]);
    expect(await broker.request("permission", url)).toBe("unavailable");
  });

  test("a cancelled request that cannot be written to the log leaves nothing behind", async () => {
    const failing: Emit = () => Promise.reject(new Error("disk full"));
    const { broker, clock } = stage({ emit: failing });
    broker.attach(client);
    await expect(broker.request("permission", url)).rejects.toThrow("disk full");
    expect(broker.pending()).toEqual([]);
    expect(clock.pending).toEqual([]);
  });
});

test("a handler is asked once, and only after the request is announced", async () => {
  let release: () => void = () => undefined;
  const written = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { broker } = stage({ emit: (type) => (type.endsWith("requested") ? written : Promise.resolve()) });
  let asked = 0;
  const handle = async () => {
    asked++;
    return { answer: "x", wasFreeform: true };
  };
  broker.attach({ kinds: ["user_input"] });
  const outcome = broker.request("user_input", { question: "?" });
  broker.attach({ kinds: ["user_input"], handle });
  await settle();
  expect(asked).toBe(0);
  release();
  expect(await outcome).toEqual({ answer: "x", wasFreeform: true });
  expect(asked).toBe(1);
});

test("tools can ask the user through the broker", async () => {
  const { broker, events } = stage();
  const user = brokerUser(broker, { content: async () => "# Plan" });
  const { signal } = new AbortController();
  const question = { question: "Which?", choices: ["a", "b"], allowFreeform: false, toolCallId: "c1" };
  expect(await user.ask(question, signal)).toBe("unavailable");
  broker.attach({
    kinds: ["user_input", "exit_plan_mode"],
    handle: async ({ kind }) => (kind === "user_input" ? { answer: "a", wasFreeform: false } : { approved: true }),
  });
  expect(await user.ask(question, signal)).toEqual({ answer: "a", wasFreeform: false });
  const proposal = {
    summary: "s",
    actions: ["interactive"],
    recommendedAction: "interactive",
    toolCallId: "p",
  } as const;
  expect(await user.reviewPlan(proposal, signal)).toEqual({ approved: true });
  expect(events.map(({ data }) => data)).toEqual([
    { requestId: "request-1", kind: "user_input", toolCallId: "c1" },
    { question: "Which?", choices: ["a", "b"], allowFreeform: false, toolCallId: "c1", requestId: "request-1" },
    { requestId: "request-1", answer: "a", wasFreeform: false },
    { requestId: "request-2", kind: "exit_plan_mode", toolCallId: "p" },
    {
      summary: "s",
      actions: ["interactive"],
      recommendedAction: "interactive",
      planContent: "# Plan",
      requestId: "request-2",
    },
    { requestId: "request-2", approved: true },
  ]);
  const stop = new AbortController();
  stop.abort(new Error("stopped"));
  await expect(user.ask(question, stop.signal)).rejects.toThrow("stopped");
});
