import { describe, expect, it } from "vitest";
import { createHooks } from "../../src/hooks/fire.ts";
import { programHook } from "../../src/hooks/load.ts";
import { deferred } from "../../src/lib/deferred.ts";
import { createRedactor } from "../../src/lib/redact/redact.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import { calls, fails, says, stalls } from "../../src/model/faux/faux-step.ts";
import type { SessionOptions } from "../../src/session/session.ts";
import { memoryStore } from "../support/memory-store.ts";
import { stage, tool } from "../support/stage.ts";
import { HANG_MS } from "../support/work.ts";

describe("A message", () => {
  it("a message is settled when the message before it fails repeatedly", async () => {
    const { session } = await stage([says("x")], {
      promptAndTools: { system: "s", tools: [], ready: () => Promise.reject(new Error("pins cannot be read")) },
    });
    expect((await session.sendAndWait({ prompt: "one" })).kind).toBe("failed");
    const second = await within(session.sendAndWait({ prompt: "two" }).catch(messageOf));
    expect(second).not.toBe("never settled");
  });

  it("a message is settled when it follows a restored message and the session is closed", async () => {
    const { store, session } = await resumedWithWaiting();
    const sent = session.sendAndWait({ prompt: "new" }).catch(messageOf);
    await pause(10);
    await session.close();
    expect(await within(sent)).not.toBe("never settled");
    const { events } = await store.read("session-1");
    expect(JSON.stringify(events)).toContain('"new"');
  });

  it("a message is settled as accepted without waiting for the answer to a restored message", async () => {
    const { session } = await resumedWithWaiting();
    const sent = await within(session.send({ prompt: "new" }), 500);
    session.abort();
    expect(sent).not.toBe("never settled");
  });
});

describe("An abort during a hook", () => {
  it("an abort during a hook at agentStop aborts the run", async () => {
    const asked = deferred<void>();
    const { session } = await stage([says("ok"), says("second")], { hooks: slowHook("agentStop", asked.resolve) });
    const one = session.sendAndWait({ prompt: "one" });
    await asked.promise;
    session.abort();
    expect((await one).kind).toBe("aborted");
  });

  it("an abort during a hook at errorOccurred is not reported as a defect", async () => {
    const asked = deferred<void>();
    const { session } = await stage([fails("authentication")], { hooks: slowHook("errorOccurred", asked.resolve) });
    const one = session.sendAndWait({ prompt: "one" });
    await asked.promise;
    session.abort();
    expect((await one).kind).not.toBe("failed");
  });
});

describe("A session", () => {
  it("a session is resumed in plan mode when it began in plan mode", async () => {
    const store = memoryStore();
    const first = await stage([says("ok")], { store, mode: "plan" });
    await first.session.sendAndWait({ prompt: "one" });
    await first.session.close();
    const { session } = await stage([says("ok")], { store, resume: "session-1" });
    expect(session.mainAgent.modes.current).toBe("plan");
  });

  it("the outcome of a session has no secrets in its error", async () => {
    const secret = "sk-live-Zq81mmWwPq02LkXx77Ty";
    const { session } = await stage([fails("authentication", { message: `bad key ${secret}` })], {
      redactor: createRedactor({ values: [{ name: "KEY", value: secret }] }),
    });
    const outcome = await session.sendAndWait({ prompt: "one" });
    if (outcome.kind !== "error") throw new Error(`the outcome is ${outcome.kind}`);
    expect(outcome.error.message).toContain("bad key");
    expect(outcome.error.message).not.toContain(secret);
  });

  it("a session closes its log when another part cannot be closed", async () => {
    const { session } = await stage([says("x")], { releaseResources: () => Promise.reject(new Error("shell stuck")) });
    await session.sendAndWait({ prompt: "one" });
    let closed = false;
    const { log } = session.record;
    const close = log.close.bind(log);
    log.close = async () => {
      closed = true;
      await close();
    };
    await session.close().catch(() => undefined);
    expect(closed).toBe(true);
  });

  it("a session runs hooks for a message that reaches a working agent", async () => {
    const gate = deferred<string>();
    const heard: unknown[] = [];
    const { session } = await stage([calls(["wait"]), says("ok")], {
      tools: [tool("wait", () => gate.promise)],
      hooks: hook("userPromptSubmitted", async (input) => {
        heard.push(input.prompt);
      }),
    });
    const first = session.sendAndWait({ prompt: "go" });
    await expect.poll(() => session.events.some(({ type }) => type === "tool.execution_start")).toBe(true);
    await session.send({ prompt: "steer", mode: "immediate" });
    gate.resolve("done");
    await first;
    expect(heard).toEqual(["go", "steer"]);
  });
});

/** A session that is taken up again with one message it never answered. */
async function resumedWithWaiting() {
  const store = memoryStore();
  const first = await stage([stalls()], { store });
  await first.session.send({ prompt: "one" });
  await first.session.send({ prompt: "left over" });
  await first.session.close();
  return stage([stalls()], { store, resume: "session-1" });
}

type Program = Parameters<typeof programHook>[0];

function hook(
  point: Program["point"],
  hear: (input: Readonly<Record<string, unknown>>) => Promise<void>,
): NonNullable<SessionOptions["hooks"]> {
  const run: Program["run"] = async (input) => {
    await hear({ ...input });
    return undefined;
  };
  return (emit) =>
    createHooks({
      definitions: [programHook({ point, run })],
      emit,
      stamp: systemStamp,
      environment: {},
      projectRoot: "/stage",
      prepare: () => Promise.reject(new Error("no program is run here")),
    });
}

const slowHook = (point: Program["point"], onAsked: () => void): NonNullable<SessionOptions["hooks"]> =>
  hook(point, async () => {
    onAsked();
    await pause(300);
  });

const pause = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

const within = <T>(work: Promise<T>, milliseconds = HANG_MS): Promise<T | "never settled"> =>
  Promise.race([work, pause(milliseconds).then(() => "never settled" as const)]);

const messageOf = (error: Error): string => error.message;
