import { describe, expect, it } from "vitest";
import type { ModelEvent } from "../../src/model/provider.ts";
import { type FauxModel, parseFauxScript, readFauxModel, tempFolder } from "../../src/testing/index.ts";

const asked = { model: "m", system: "explorer", messages: [], tools: [], stream: true };
async function play(model: FauxModel, system = "", signal = new AbortController().signal): Promise<ModelEvent[]> {
  const events: ModelEvent[] = [];
  for await (const event of model.stream({ ...asked, system }, signal)) events.push(event);
  return events;
}

describe("a faux model from a file", () => {
  it("a faux script is named in the one-line error for an extra call, not troupe", async () => {
    const steps = [{ say: "a" }, { agent: "explorer", say: "b" }, { say: "c" }];
    await using folder = await tempFolder({ "script.json": JSON.stringify({ steps }) });
    const path = folder.at("script.json");
    const model = await readFauxModel(path);
    const failure = async (system: string) => {
      const end = (await play(model, system)).at(-1);
      return end?.type === "end" ? { kind: end.error?.kind, message: end.error?.message } : undefined;
    };
    await play(model);
    await play(model);
    await play(model, "explorer");
    const message = `the faux script ${path} has only 2 steps; call 3 was not expected`;
    expect(await failure("")).toEqual({ kind: "request", message });
    expect(await failure("explorer")).toEqual({
      kind: "request",
      message: `the faux script ${path} has only 1 step for agent "explorer"; call 2 was not expected`,
    });
    expect(() => model.assertSpent()).toThrow(message);
  });

  it("a faux script can use every kind of step", async () => {
    const script = {
      steps: [
        { say: "Hello" },
        { call: { name: "view", arguments: { path: "a" } } },
        { calls: [{ name: "view" }, { name: "grep", arguments: {}, id: "mine" }], say: "I look.", think: "hm" },
        { agent: "explorer", say: "seen" },
        { say: "abcd", chunkSize: 2, usage: { outputTokens: 4 } },
        { fail: { status: 500, message: "down" } },
        { fail: { kind: "quota", code: "broke", retryAfterSeconds: 2 } },
        { rateLimit: { retryAfterSeconds: 1.5 } },
        { breakOff: "half" },
        { stall: true, say: "wait" },
      ],
      otherwise: { say: "again" },
      usage: { inputTokens: 7 },
    };
    await using folder = await tempFolder({ "script.json": JSON.stringify(script) });
    const model = await readFauxModel(folder.at("script.json"));
    const usage = { inputTokens: 7, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 };
    const text = (delta: string): ModelEvent => ({ type: "text", delta });
    const call = (toolCallId: string, name: string, args: object = {}) => ({
      type: "call",
      call: { toolCallId, name, arguments: args },
    });
    expect(await play(model, "explorer")).toEqual([text("seen"), { type: "end", stop: "done", usage }]);
    expect(await play(model)).toEqual([text("Hello"), { type: "end", stop: "done", usage }]);
    expect(await play(model)).toEqual([
      call("call_view_1", "view", { path: "a" }),
      { type: "end", stop: "tools", usage },
    ]);
    expect(await play(model)).toEqual([
      { type: "reasoning", delta: "hm" },
      text("I look."),
      call("call_view_2", "view"),
      call("mine", "grep"),
      { type: "end", stop: "tools", usage },
    ]);
    expect(await play(model)).toEqual([
      text("ab"),
      text("cd"),
      { type: "end", stop: "done", usage: { ...usage, inputTokens: 0, outputTokens: 4 } },
    ]);
    expect(await play(model)).toMatchObject([{ error: { kind: "server", statusCode: 500, message: "down" } }]);
    expect(await play(model)).toMatchObject([{ error: { kind: "quota", code: "broke", retryAfterMs: 2000 } }]);
    expect(await play(model)).toMatchObject([{ error: { kind: "rate_limit", retryAfterMs: 1500 } }]);
    expect(await play(model)).toMatchObject([text("half"), { error: { kind: "protocol" } }]);
    expect(await play(model, "", AbortSignal.timeout(20))).toEqual([text("wait"), { type: "end", stop: "aborted" }]);
    model.assertSpent();
    expect(await play(model)).toEqual([text("again"), { type: "end", stop: "done", usage }]);
  });

  it.each([
    ["{", /^faux script s\.json: is not JSON: /],
    ["[]", /^faux script s\.json: Invalid input: expected object, received array$/],
    ['{"step":[]}', /field steps: .*; Unrecognized key: "step"/],
    ['{"steps":[{"say":"a"},{"call":{"nme":"view"}}]}', /step 2, field call\.name: .*; step 2, field call: .*"nme"/],
    ['{"steps":[{"say":1}]}', /step 1, field say: expected a text or a list of texts$/],
    ['{"steps":[{}]}', /step 1: is empty: give one of say/],
    ['{"steps":[{"stall":true,"breakOff":"a"}]}', /step 1: give only one of fail, rateLimit, stall, breakOff$/],
    ['{"steps":[{"say":"a","fail":{"status":500}}]}', /step 1: fail, rateLimit and breakOff cannot be combined/],
    ['{"steps":[{"fail":{}}]}', /step 1, field fail: give either a status or a kind$/],
    ['{"steps":[{"fail":{"status":200}}]}', /step 1, field fail\.status: /],
    ['{"steps":[],"usage":{"inputTokens":-1}}', /field usage\.inputTokens: /],
  ])("a faux script with %s gets an error that explains it", (text, message) => {
    expect(() => parseFauxScript(text, "s.json")).toThrow(message);
  });

  it("a missing file of a faux script is named in the error", async () => {
    await using folder = await tempFolder();
    await expect(readFauxModel(folder.at("none.json"))).rejects.toThrow(
      /^faux script .*none\.json: there is no such file/,
    );
  });
});
