import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import { calls, says, thinks } from "../../src/model/faux/faux-step.ts";
import { jsonlStore } from "../../src/store/jsonl.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { view } from "../../src/tools/files/view.ts";
import { dataOf, stage, tool } from "../support/stage.ts";

/** The smallest picture there is: one pixel. */
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

describe("results too large for a model", () => {
  it("results too large for a model are stored in the session's folder, and the model gets a preview", async () => {
    await using folder = await tempFolder();
    const store = jsonlStore({ root: folder.path, disk: nodeDisk, stamp: systemStamp });
    const whole = `first line\n${"x".repeat(100_000)}`;
    const { session, model } = await stage([calls(["big"]), says("ok")], {
      store,
      tools: [tool("big", async () => whole)],
    });
    await session.sendAndWait({ prompt: "go" });
    const shown = model.requests[1]?.messages[2]?.content ?? "";
    expect(shown).toMatch(/^Output too large to read at once \(97\.7 KB\)\. Saved to: \//);
    expect(shown).toContain("Preview (first 500 chars):\nfirst line\n");
    expect(shown.length).toBeLessThan(1_000);
    const path = /Saved to: (.+)/.exec(shown)?.[1] ?? "";
    expect(path).toContain(join("session-state", "session-1", "records"));
    expect(readFileSync(path, "utf8")).toBe(whole);
    expect(Math.max(...session.events.map((event) => JSON.stringify(event).length))).toBeLessThan(5_000);
    await session.close();
  });

  it("the size of results is measured in bytes, and smaller results are unchanged", async () => {
    const fits = "é".repeat(10_240);
    const { session, model } = await stage([calls(["exact"]), calls(["over"]), says("ok")], {
      tools: [tool("exact", async () => fits), tool("over", async () => `${fits}!`)],
    });
    await session.sendAndWait({ prompt: "go" });
    expect(model.requests[1]?.messages[2]?.content).toBe(fits);
    expect(model.requests[2]?.messages[4]?.content).toMatch(/^Output too large/);
  });
});

describe("pictures", () => {
  it("images are stored beside the log, shown to the model, and shown again after resume", async () => {
    await using folder = await tempFolder();
    writeFileSync(join(folder.path, "dot.png"), Buffer.from(PNG, "base64"));
    const root = join(folder.path, "home");
    const store = jsonlStore({ root, disk: nodeDisk, stamp: systemStamp });
    const place = { store, tools: [view], cwd: folder.path, roots: [folder.path] };
    const first = await stage([calls(["view", { path: "dot.png" }]), says("a dot")], place);
    await first.session.sendAndWait({ prompt: "look" });
    const [result] = dataOf(first.session.events, "tool.execution_complete");
    expect(result).toMatchObject({
      success: true,
      result: {
        content: "Viewed image file successfully.",
        binaryResultsForLlm: [{ type: "image", mimeType: "image/png" }],
      },
    });
    await first.session.close();
    expect(readFileSync(join(root, "session-state", "session-1", "events.jsonl"), "utf8")).not.toContain(PNG);

    const second = await stage([says("still a dot")], { ...place, resume: "session-1" });
    await second.session.sendAndWait({ prompt: "again" });
    const images = [first.model.requests[1]?.messages[2], second.model.requests[0]?.messages[2]];
    for (const message of images)
      expect(message).toMatchObject({ role: "tool", images: [{ mimeType: "image/png", data: PNG }] });
    await second.session.close();
  });
});

describe("reasoning", () => {
  it("reasoning is stored with the message and sent back with it", async () => {
    const { session, model } = await stage([thinks("let me see", calls(["echo", { text: "a" }])), says("ok")]);
    await session.sendAndWait({ prompt: "go" });
    expect(dataOf(session.events, "assistant.message")[0]).toMatchObject({ reasoningText: "let me see" });
    expect(model.requests[1]?.messages[1]).toMatchObject({ role: "assistant", reasoning: { text: "let me see" } });
  });
});
