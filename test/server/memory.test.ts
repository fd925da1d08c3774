import type { PermissionRequest } from "@github/copilot-sdk";
import { afterAll, beforeAll, expect, it } from "vitest";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { input, memoryPart } from "../features/memory-stage.ts";
import { localAt } from "../memory/support.ts";
import { type ServerStage, serverStage } from "./stage.ts";

let stage: ServerStage;
beforeAll(async () => {
  stage = await serverStage();
});
afterAll(() => stage[Symbol.asyncDispose]());

const shown = () => stage.model.requests.flatMap(({ request }) => request ?? []);

it("a client switches memory on, is asked with the kind memory, and the next session sees what it accepted", async () => {
  const asked: PermissionRequest[] = [];
  const onPermissionRequest = (request: PermissionRequest) => {
    asked.push(request);
    return { kind: "approve-once" as const };
  };
  const session = await stage.client.createSession({ memory: { enabled: true }, onPermissionRequest });
  stage.play(calls(["store_memory", input]), says("ok"));
  await session.sendAndWait({ prompt: "go" });
  const { subject, fact, citations, reason } = input;
  expect(asked).toMatchObject([
    { kind: "memory", action: "store", subject, fact, citations, scope: "repository", reason },
  ]);
  const kept = localAt(stage.folder.at("home"), stage.folder.at("work")).journals;
  expect(kept.flatMap((journal) => [...journal.read().facts.values()])).toMatchObject([{ fact, status: "accepted" }]);

  const next = await stage.client.createSession({ memory: { enabled: true }, onPermissionRequest });
  stage.play(says("hello"));
  await next.sendAndWait({ prompt: "again" });
  expect(shown().slice(-1).map(memoryPart)).toEqual([expect.stringContaining(fact)]);

  const without = await stage.client.createSession({ onPermissionRequest });
  stage.play(says("hello"));
  await without.sendAndWait({ prompt: "and again" });
  expect(shown().slice(-1).map(memoryPart)).toEqual([""]);
  expect(
    shown()
      .at(-1)
      ?.tools.map(({ name }) => name),
  ).not.toContain("store_memory");
});
