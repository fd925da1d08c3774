import { describe, expect, it } from "vitest";
import * as z from "zod";
import { forAgent } from "../../src/model/faux/faux-plan.ts";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { type CoordinationParts, coordinationOf } from "../../src/session/agents/coordination.ts";
import { PendingMessages } from "../../src/session/turn/pending-messages.ts";
import type { WorkerSpec } from "../../src/tools/coordination/coordination.ts";
import { defineTool } from "../../src/tools/tool.ts";
import { agentPool, task } from "../support/agent-pool.ts";
import { echo } from "../support/stage.ts";

describe("An agent in the background", () => {
  it("a background agent is interrupted, not denied, when the session closes during its permission request", async () => {
    const poke = defineTool({
      name: "poke",
      description: "pokes",
      input: z.object({}),
      access: () => ({ kind: "custom-tool", toolName: "poke", toolDescription: "pokes", args: {} }),
      run: async () => ({ content: "poked" }),
    });
    const steps = [
      task("w", "writer", { mode: "background" }),
      says("started"),
      forAgent("w", calls(["poke", {}]), says("I was denied")),
      forAgent("writer", calls(["poke", {}]), says("I was denied")),
    ];
    const { session } = await agentPool(steps, { tools: [echo, poke], permissions: {}, wakes: false });
    let handed = false;
    session.requests.attach({
      kinds: ["permission"],
      handle: () => {
        handed = true;
        return new Promise(() => undefined);
      },
    });
    await session.send({ prompt: "go" });
    await expect.poll(() => handed).toBe(true);
    await session.close();
    const ends = session.events.filter(({ agentId, type }) => agentId !== undefined && told.has(type));
    expect(ends.length).toBeGreaterThan(0);
    expect(JSON.stringify(ends.map(({ data }) => data))).not.toContain("denied");
  });

  it("a background agent lets its workers work in its own worktree", async () => {
    let worktree: unknown;
    const parts = {
      agentId: "parent",
      callbackTasks: { add: () => () => undefined },
      stamp: { monotonic: () => 0 },
      tools: () => [],
      emitOf: () => async () => undefined,
      registry: {
        get: () => ({ id: "parent", spec: { worktree: "/s/worktrees" } }),
        async create(made: { worktree?: string }) {
          worktree = made.worktree;
          throw new Error("that is all we wanted to know");
        },
      },
    } as unknown as CoordinationParts;
    const worker = { id: "w", role: "scout", task: "t", tools: [], limits: {}, displayName: "W", parentCallId: "c" };
    const run = coordinationOf(parts).runWorker(worker as unknown as WorkerSpec, new AbortController().signal);
    await expect(run).rejects.toThrow("all we wanted");
    expect(worktree).toBe("/s/worktrees/parent");
  });
});

describe("the second of two steering messages", () => {
  it("the second of two steering messages survives a failed write of the first", async () => {
    const pending = new PendingMessages();
    pending.steer({ messageId: "1", content: "a", mode: "immediate" });
    pending.steer({ messageId: "2", content: "b", mode: "immediate" });
    const fails = (): Promise<never> => Promise.reject(new Error("the disk is full"));
    await expect(pending.deliver(fails, async (message) => [message])).rejects.toThrow("full");
    expect(pending.takeNext(() => "n")?.messageId).toBe("2");
  });
});

const told = new Set(["tool.execution_complete", "session.warning", "troupe.permission"]);
