import { mkdirSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { SessionEvent } from "../../src/sdk/index.ts";
import { says } from "../../src/testing/index.ts";
import { beside, sends, sidekickFile, until } from "../features/sidekick-stage.ts";
import { sdkStage } from "./stage.ts";

describe("a client of a session with a sidekick", () => {
  it("MEM-52 a client never receives a sidekick's text as an answer, and receives its entries", async () => {
    await using stage = await sdkStage(
      "this process",
      says("one"),
      says("two"),
      beside("scout", sends("found it"), says("I am not the answer.")),
    );
    mkdirSync(stage.folder.at("state/agents"), { recursive: true });
    writeFileSync(stage.folder.at("state/agents/scout.md"), sidekickFile("scout"));
    await using client = await stage.client();
    const heard: SessionEvent[] = [];
    const session = await client.createSession({
      provider: stage.provider,
      enableConfigDiscovery: true,
      onEvent: (event) => heard.push(event),
    });
    const ended = (count: number) =>
      until(() => heard.filter(({ type }) => type === "troupe.sidekick_ended").length === count);
    expect((await session.sendAndWait("first"))?.data.content).toBe("one");
    await ended(1);
    expect((await session.sendAndWait("second"))?.data.content).toBe("two");
    await ended(2);
    expect(heard.flatMap(({ type, data }) => (type === "assistant.message" ? [data.content] : []))).toEqual([
      "one",
      "two",
    ]);
    expect(heard.flatMap(({ type, data }) => (type === "system.notification" ? [data.kind] : []))).toEqual([
      {
        type: "new_inbox_message",
        entryId: "inbox-1",
        senderName: "scout",
        senderType: "sidekick-agent",
        summary: "found it",
      },
    ]);
  });
});
