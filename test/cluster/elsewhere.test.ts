import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import type { EffectGuard } from "../../src/lib/effect-guard.ts";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { checkOut } from "../../src/runtime/cluster/checkout.ts";
import type { WorkRow } from "../../src/runtime/cluster/work.ts";
import { WorkspaceKeeper } from "../../src/runtime/cluster/workspace-keeper.ts";
import { type RemoteAnswer, runRemotely } from "../../src/session/agents/remote-agent.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";

it("the working folder is not pushed for an agent when another worker may have the session", async () => {
  await using folder = await tempFolder({ "shop/a.txt": "one\n" });
  const git = (...args: readonly string[]) =>
    execFileSync("git", ["-C", folder.at("shop"), "-c", "user.name=a", "-c", "user.email=a@b.c", ...args]).toString();
  git("init", "--quiet");
  git("add", ".");
  git("commit", "--quiet", "--message", "Add a file");
  const work = { sessionId: "s1", request: { repository: folder.at("shop") } } as WorkRow;
  const options = { folder: folder.at("work"), disk: nodeDisk, localFolders: [folder.path] };
  const { workTree } = await checkOut(work, undefined, options);
  let isValid = false;
  const assertValid = (): void => {
    if (!isValid) throw new Error("lost");
  };
  const effects: EffectGuard = {
    assertValid,
    async run(_what, signal, action) {
      assertValid();
      return action(signal);
    },
  };
  const quiet = { store: async () => undefined, report: () => undefined };
  const own = { workTree, sessionId: "s1", kept: undefined, effects, disk: nodeDisk, ...quiet };
  const keeper = new WorkspaceKeeper(own);
  await expect(keeper.sendTo("s1.helper")).rejects.toThrow("lost");
  expect(git("for-each-ref", "refs/troupe")).toBe("");
  isValid = true;
  const ref = await keeper.sendTo("s1.helper");
  expect(git("for-each-ref", "--format=%(refname)", "refs/troupe").trim()).toBe(ref);
});

it("the usage of an agent on another worker is counted, even if it does not end in time when stopped", async () => {
  const usage = { calls: 1, inputTokens: 5, outputTokens: 3, cacheReadTokens: 0, cacheWriteTokens: 0 };
  const used = { usage: { ...usage, reasoningTokens: 0, costUsd: 0.5 }, seq: 9 };
  const emitted: unknown[] = [];
  const stopping = new AbortController();
  const turn = {
    task: () => ({ id: "helper" }),
    conversation: { entries: [{ message: { role: "user", content: "Help." } }] },
    emit: async (type: string, data: object) => void emitted.push({ type, ...data }),
    ...{ reserve: () => ({}), usageCounted: () => undefined, remainingAgents: () => 0 },
    port: {
      ...{ sessionOf: (id: string) => `s1.${id}`, stop: async () => undefined, usedSoFar: async () => used },
      submit: async () => stopping.abort(),
      ended: async (_sent: unknown, signal: AbortSignal) => {
        // The time to end is over at once.
        signal.throwIfAborted();
        throw new Error("too late");
      },
    },
  };
  const ports = {
    signal: stopping.signal,
    deliver: async () => undefined,
    beforeStopping: async () => "stop" as const,
  };
  const outcome = await runRemotely(turn as unknown as RemoteAnswer, ports);
  expect(outcome).toEqual({ kind: "aborted" });
  expect(emitted.at(-1)).toMatchObject({ type: "troupe.task_returned", outcome: "aborted", ...used });
});
