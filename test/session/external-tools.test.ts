import { describe, expect, it } from "vitest";
import type { Json } from "../../src/lib/json.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { externalTool } from "../../src/session/requests/external-tools.ts";
import { dataOf, stage } from "../support/stage.ts";

const DOT = "iVBORw0KGgo=";

/** One call of a program's tool, answered so; what came of it. */
async function answered(answer: { result?: Json; error?: string }, definition: { isTerminal?: boolean } = {}) {
  const tool = externalTool({ name: "lookup", skipPermission: true, ...definition });
  const { session, model, heard } = await stage([calls(["lookup", { key: "a" }]), says("done")], {
    tools: [tool],
    // A program is waited for as long as it takes, which is no time at all on a clock that jumps.
    stamp: systemStamp,
  });
  session.requests.attach({ kinds: ["external_tool"], handle: async () => answer });
  const outcome = await session.sendAndWait({ prompt: "go" });
  const [complete] = dataOf(heard, "tool.execution_complete");
  const shown = model.requests[1]?.messages.at(-1);
  await session.close();
  return { outcome, complete, shown };
}

describe("the result of a program's tool", () => {
  it.each([
    ["text", "found", "found"],
    ["an object of its own", { textResultForLlm: "found", resultType: "success" }, "found"],
    ["anything else", { a: [1] }, '{"a":[1]}'],
    ["nothing", undefined, ""],
  ])("the result of a program's tool can be %s", async (_, result, content) => {
    const { complete, shown } = await answered(result === undefined ? {} : { result });
    expect(complete).toMatchObject({ success: true, result: { content } });
    expect(shown).toMatchObject({ role: "tool", content, isError: false });
  });

  it("the result of a program's tool has images for the model, files for the log, and counts for telemetry", async () => {
    const { complete, shown } = await answered({
      result: {
        textResultForLlm: "found",
        resultType: "success",
        sessionLog: "for people",
        toolTelemetry: { metrics: { hits: 2 } },
        binaryResultsForLlm: [
          { data: DOT, mimeType: "image/png", type: "image", description: "a dot" },
          { data: "UEs=", mimeType: "application/zip", type: "resource" },
        ],
      },
    });
    expect(complete).toMatchObject({
      toolTelemetry: { metrics: { hits: 2 } },
      result: {
        content: "found",
        detailedContent: "for people",
        binaryResultsForLlm: [
          { type: "image", mimeType: "image/png", description: "a dot" },
          { type: "resource", mimeType: "application/zip" },
        ],
      },
    });
    expect(shown).toMatchObject({ images: [{ mimeType: "image/png", data: DOT, description: "a dot" }] });
  });

  it.each(["failure", "denied", "timeout"] as const)(
    "the result of a program's tool is read by the model as a %s, and the model continues",
    async (code) => {
      const result = { textResultForLlm: "not this", resultType: code, toolTelemetry: { n: 1 } };
      const { outcome, complete, shown } = await answered({ result });
      expect(outcome).toEqual({ kind: "done", answer: "done" });
      expect(complete).toMatchObject({ success: false, error: { message: "not this", code }, toolTelemetry: { n: 1 } });
      expect(shown).toMatchObject({ content: "not this", isError: true });
    },
  );

  it("a rejected tool of a program ends the answer", async () => {
    const { outcome, shown } = await answered({ result: { textResultForLlm: "no", resultType: "rejected" } });
    expect(outcome).toEqual({ kind: "done", answer: "" });
    expect(shown).toBeUndefined();
  });

  it("a program's tool ends the answer exactly if it is terminal and succeeded", async () => {
    const isTerminal = true;
    expect((await answered({ result: "good" }, { isTerminal })).outcome).toEqual({ kind: "done", answer: "" });
    const bad = await answered({ result: { textResultForLlm: "bad", resultType: "failure" } }, { isTerminal });
    expect(bad.outcome).toEqual({ kind: "done", answer: "done" });
  });

  it("the result of a program's tool contains nothing of the error that the program threw", async () => {
    const { complete, shown } = await answered({ error: "the code word is x" });
    const message =
      'Failed to execute `lookup` tool with arguments: {"key":"a"} due to error: Error: Tool execution failed';
    expect(complete).toMatchObject({ success: false, error: { message, code: "failure" } });
    expect(shown).toMatchObject({ content: message });
  });
});
