import { approveAll } from "@github/copilot-sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { says } from "../../src/testing/index.ts";
import { type ServerStage, serverStage } from "./stage.ts";

let stage: ServerStage;
beforeAll(async () => {
  stage = await serverStage();
});
afterAll(() => stage[Symbol.asyncDispose]());

const last = () => stage.model.requests.at(-1);

describe("models of a client's session", () => {
  it.each([
    ["completions", { type: "openai", wireApi: "completions" }, "/v1/chat/completions"],
    ["responses", { type: "openai", wireApi: "responses" }, "/v1/responses"],
    ["messages", { type: "anthropic" }, "/v1/messages"],
  ] as const)("a client's models answer over %s, at the client's own provider", async (_, kind, path) => {
    const session = await stage.client.createSession({
      model: "mine",
      clientName: "contract-test",
      provider: { ...kind, baseUrl: stage.model.baseUrl, apiKey: "its-own-key", headers: { "X-Own": "yes" } },
    });
    stage.play(says("hello"));
    const answer = await session.sendAndWait({ prompt: "hi", requestHeaders: { "X-Once": "1" } });
    expect(answer?.data.content).toBe("hello");
    expect(last()).toMatchObject({ path, body: { model: "mine" }, headers: { "x-own": "yes", "x-once": "1" } });
    expect(last()?.headers["user-agent"]).toContain("contract-test");
    expect(Object.keys(last()?.body ?? {})).not.toContain("stream");
    await session.disconnect();
  });

  it("a client's models are chosen from its registry, with tokens for each request", async () => {
    let count = 0;
    const session = await stage.client.createSession({
      model: "own/small",
      providers: [
        {
          ...{ name: "own", baseUrl: stage.model.baseUrl },
          bearerTokenProvider: async ({ providerName }) => `${providerName}-${++count}`,
        },
      ],
      models: [{ id: "small", provider: "own", wireModel: "wire-small" }],
    });
    stage.play(says("one"), says("two"));
    await session.sendAndWait("hi");
    await session.sendAndWait("hi");
    const sent = stage.model.requests.slice(-2);
    expect(sent.map(({ headers }) => headers.authorization)).toEqual(["Bearer own-1", "Bearer own-2"]);
    expect(sent.map(({ request }) => request?.model)).toEqual(["wire-small", "wire-small"]);
    await session.disconnect();
  });

  it("a client cannot set both one provider and a registry", async () => {
    const both = stage.client.createSession({
      provider: { baseUrl: stage.model.baseUrl },
      models: [{ id: "a", provider: "b" }],
    });
    await expect(both).rejects.toThrow(/not both/);
  });

  it("a client's models read attachments, and the log has the prompt as typed", async () => {
    const session = await stage.client.createSession({ onPermissionRequest: approveAll });
    stage.play(says("seen"));
    const path = stage.folder.at("work/a.txt");
    await session.sendAndWait({ prompt: "Look.", attachments: [{ type: "file", path }] });
    expect(last()?.request?.messages.at(-1)?.content).toMatch(
      /^<current_datetime>[^<]+<\/current_datetime>\n\nLook\.\n\n\n\n<tagged_files>\n\* .*a\.txt \(3 lines\)\n<\/tagged_files>$/,
    );
    const [message] = (await session.getEvents()).filter((event) => event.type === "user.message");
    expect(message?.data).toMatchObject({ content: "Look.", attachments: [{ type: "file", displayName: "a.txt" }] });
    await session.disconnect();
  });

  it("a client's models can be changed while the session is open, and providers can be added", async () => {
    const session = await stage.client.createSession({ reasoningEffort: "low" });
    const { model, provider } = session.rpc;
    expect(await model.getCurrent()).toEqual({ modelId: "faux-model", reasoningEffort: "low" });
    const added = await provider.add({
      providers: [{ name: "late", baseUrl: stage.model.baseUrl, apiKey: "late-key" }],
      models: [{ id: "one", provider: "late", name: "The one", wireModel: "wire-one" }],
    });
    expect(added.models).toMatchObject([{ id: "late/one", name: "The one" }]);
    expect((await model.list()).list).toContainEqual(expect.objectContaining({ id: "late/one" }));
    expect(await model.switchTo({ modelId: "late/one", reasoningEffort: "high" })).toEqual({ modelId: "late/one" });
    expect(await model.getCurrent()).toEqual({ modelId: "late/one", reasoningEffort: "high" });
    stage.play(says("hello"));
    await session.sendAndWait("hi");
    expect(last()).toMatchObject({ body: { model: "wire-one" }, headers: { authorization: "Bearer late-key" } });
    expect(await model.setReasoningEffort({ reasoningEffort: "medium" })).toEqual({ reasoningEffort: "medium" });
    await expect(provider.getEndpoint({})).rejects.toThrow(/not shown to clients/);
    const changes = (await session.getEvents()).filter((event) => event.type === "session.model_change");
    expect(changes.map(({ data }) => data)).toMatchObject([
      { newModel: "late/one", previousModel: "faux-model", reasoningEffort: "high" },
      { newModel: "late/one", previousReasoningEffort: "high", reasoningEffort: "medium" },
    ]);
    await session.disconnect();
  });

  it("a client's models are the same after a resume in another process, unless the client changes them", async () => {
    const own = {
      providers: [{ name: "own", baseUrl: stage.model.baseUrl, apiKey: "k" }],
      models: ["small", "large"].map((id) => ({ id, provider: "own", wireModel: `wire-${id}` })),
    };
    const before = stage.newClient();
    const session = await before.createSession({ ...own, model: "own/small", reasoningEffort: "low" });
    stage.play(says("small"));
    await session.sendAndWait("hi");
    await session.rpc.model.switchTo({ modelId: "own/large", reasoningEffort: "high" });
    await session.rpc.model.setReasoningEffort({ reasoningEffort: "medium" });
    await before.stop();
    const after = stage.newClient();
    const again = await after.resumeSession(session.sessionId, own);
    expect(await again.rpc.model.getCurrent()).toEqual({ modelId: "own/large", reasoningEffort: "medium" });
    stage.play(says("large"));
    await again.sendAndWait("hi");
    expect(last()?.body).toMatchObject({ model: "wire-large", reasoning_effort: "medium" });
    await again.disconnect();
    const otherwise = await after.resumeSession(session.sessionId, { ...own, model: "own/small" });
    expect(await otherwise.rpc.model.getCurrent()).toEqual({ modelId: "own/small" });
    await otherwise.disconnect();
    const effort = await after.resumeSession(session.sessionId, {
      ...own,
      model: "own/large",
      reasoningEffort: "xhigh",
    });
    expect(await effort.rpc.model.getCurrent()).toEqual({ modelId: "own/large", reasoningEffort: "xhigh" });
    await after.stop();
  });
});
