import { approveAll, type CopilotSession } from "@github/copilot-sdk";
import { describe, expect, it } from "vitest";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { calls, stalls } from "../../src/testing/index.ts";
import { SessionView } from "../../src/view/session-view.ts";
import { shared } from "../support/second-look.ts";
import { joining, type ServerStage, serverStage } from "./stage.ts";

let stage: ServerStage;
shared(
  async () => {
    stage = await serverStage({ transport: "tcp" });
    await stage.client.start();
  },
  () => stage[Symbol.asyncDispose](),
);

async function viewOf(session: CopilotSession) {
  const fold = new SessionView();
  for (const event of await session.getEvents()) fold.apply(event as unknown as SessionEvent);
  const { main, session: facts } = fold.view;
  return { main: main.status, isIdle: facts.isIdle, ...(await session.rpc.metadata.isProcessing()) };
}

const atWork = { main: "running", isIdle: false, processing: true };

describe("a second client of a session at work", () => {
  it("a second client sees that the main agent waits for its model", async () => {
    const first = await stage.client.createSession({ onPermissionRequest: approveAll });
    const before = stage.model.requests.length;
    stage.play(stalls());
    await first.send({ prompt: "go" });
    await expect.poll(() => stage.model.requests.length).toBe(before + 1);
    await using client = joining(stage.client);
    const second = await client.resumeSession(first.sessionId, { onPermissionRequest: approveAll });
    expect(await viewOf(second)).toEqual(atWork);
    expect(await viewOf(first)).toEqual(atWork);
    await first.abort();
    await expect.poll(() => viewOf(second)).toMatchObject({ main: "idle", processing: false });
    await first.disconnect();
  });

  it("a second client sees that a tool call waits for a permission", async () => {
    let answer: (() => void) | undefined;
    const asked = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const first = await stage.client.createSession({
      onPermissionRequest: async () => {
        answer?.();
        return new Promise(() => undefined);
      },
    });
    stage.play(calls(["bash", { command: "touch x", description: "d" }]));
    await first.send({ prompt: "go" });
    await asked;
    await using client = joining(stage.client);
    const second = await client.resumeSession(first.sessionId, { onPermissionRequest: approveAll });
    expect(await viewOf(second)).toEqual(atWork);
    await first.abort();
    await first.disconnect();
  });
});
