import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import {
  approveAll,
  CopilotClient,
  type CopilotSession,
  type PermissionRequest,
  RuntimeConnection,
} from "copilot-sdk-1.0.14";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { calls, says } from "../../src/testing/index.ts";
import { type ServerStage, serverStage } from "./stage.ts";

/** Details of the contract that programs rely on, by calls of the published SDK. */
let stage: ServerStage;
let client: CopilotClient;
beforeAll(async () => {
  stage = await serverStage();
  client = new CopilotClient({
    connection: RuntimeConnection.forStdio({ path: resolve("bin/troupe.js"), env: stage.environment(), args: [] }),
    baseDirectory: stage.folder.at("home"),
    workingDirectory: stage.folder.at("work"),
  });
});
afterAll(async () => {
  await client.stop().catch(() => client.forceStop());
  await stage[Symbol.asyncDispose]();
});
afterEach(() => stage.play());

const opened = (more: Parameters<CopilotClient["createSession"]>[0] = {}): Promise<CopilotSession> =>
  client.createSession({ onPermissionRequest: approveAll, ...more });
const lastMessages = (): { role: string; content: string }[] =>
  ((stage.model.requests.at(-1)?.body ?? {}) as { messages: { role: string; content: string }[] }).messages;

it("a client can approve reading a file outside the session's folders", async () => {
  const path = stage.folder.at("elsewhere.txt");
  await writeFile(path, "far away\n");
  const asked: PermissionRequest[] = [];
  const session = await opened({
    onPermissionRequest: (request) => {
      asked.push(request);
      return { kind: "approve-once" };
    },
  });
  stage.play(calls(["view", { path }]), says("Seen."));
  await session.sendAndWait("Read it.");
  expect(asked).toMatchObject([{ kind: "read", path }]);
  expect(JSON.stringify(lastMessages())).toContain("far away");
  await session.disconnect();
});

it("the mode of a message is recorded: its own, or else the session's", async () => {
  const session = await opened();
  stage.play(says("One."), says("Two."));
  await session.sendAndWait({ prompt: "Talk.", agentMode: "interactive" });
  await session.rpc.mode.set({ mode: "plan" });
  await session.sendAndWait("Plan.");
  const modes = (await session.getEvents()).flatMap((event) =>
    event.type === "user.message" ? [event.data.agentMode] : [],
  );
  expect(modes).toEqual(["interactive", "plan"]);
  await session.disconnect();
});

it("the model gets the results of parallel calls in the order of the calls", async () => {
  let endSecond = (): void => undefined;
  const second = new Promise<void>((done) => {
    endSecond = done;
  });
  const session = await opened({
    tools: [
      {
        ...{ name: "slow", skipPermission: true },
        handler: async () => {
          await second;
          return "first result";
        },
      },
      {
        ...{ name: "quick", skipPermission: true },
        handler: () => {
          endSecond();
          return "second result";
        },
      },
    ],
  });
  stage.play(calls(["slow", {}], ["quick", {}]), says("Both."));
  await session.sendAndWait("Go.");
  const results = lastMessages().filter(({ role }) => role === "tool");
  expect(results.map(({ content }) => content)).toEqual(["first result", "second result"]);
  await session.disconnect();
});

it("every payload of a hook has the session's id", async () => {
  const seen: Record<string, unknown>[] = [];
  const note = (name: string) => (input: object) => {
    seen.push({ name, ...input });
    return undefined;
  };
  const session = await opened({
    hooks: {
      onSessionStart: note("sessionStart"),
      onUserPromptSubmitted: note("userPromptSubmitted"),
      onPreToolUse: note("preToolUse"),
      onPostToolUse: note("postToolUse"),
    },
  });
  stage.play(calls(["view", { path: "a.txt" }]), says("Seen."));
  await session.sendAndWait("Look.");
  expect(seen.map(({ name }) => name)).toEqual(["userPromptSubmitted", "sessionStart", "preToolUse", "postToolUse"]);
  expect(new Set(seen.map(({ sessionId }) => sessionId))).toEqual(new Set([session.sessionId]));
  await session.disconnect();
});

it("/model over the contract shows the model, and switches it by name", async () => {
  const session = await opened({
    providers: [{ name: "mine", type: "openai", baseUrl: stage.model.baseUrl }],
    models: [
      { id: "one", provider: "mine" },
      { id: "two", provider: "mine" },
    ],
    model: "mine/one",
  });
  const run = (input: string) => session.rpc.commands.invoke({ name: "model", input });
  expect(await run("")).toMatchObject({ kind: "text", text: expect.stringContaining("one") });
  await run("mine/two");
  expect(await session.rpc.model.getCurrent()).toMatchObject({ modelId: expect.stringContaining("two") });
  await session.disconnect();
});

it("the form of an answer is sent to the model with the message that requests it", async () => {
  const session = await opened();
  stage.play(says('{"n":1}'));
  const jsonSchema = { name: "count", schema: { type: "object", properties: { n: { type: "number" } } } };
  await session.rpc.send({ prompt: "Count.", responseFormat: { type: "json_schema", jsonSchema }, wait: true });
  expect(stage.model.requests.at(-1)?.body).toMatchObject({
    response_format: { type: "json_schema", json_schema: { name: "count" } },
  });
  await session.disconnect();
});

it("options of a model switch without effect cause a warning", async () => {
  const session = await opened();
  await session.rpc.model.switchTo({ modelId: "faux-model", contextTier: "long_context", verbosity: "low" });
  const warnings = async (): Promise<string[]> =>
    (await session.getEvents()).flatMap((event) => (event.type === "session.warning" ? [event.data.message] : []));
  await expect
    .poll(warnings)
    .toEqual([expect.stringContaining("contextTier"), expect.stringContaining("verbosity is not used")]);
  await session.disconnect();
});

it("methods of missing parts are answered without an unhandled method", async () => {
  const session = await opened();
  const { rpc } = session;
  expect(await ask("session.limitPrediction.predict", of(session))).toEqual({
    kind: "unavailable",
    reason: "no_model",
  });
  expect(await ask("session.sandbox.disableForSession", of(session))).toEqual({ success: false, enabled: true });
  expect(await rpc.autopilotObjective.getState()).toEqual({ state: null });
  expect(await client.rpc.managedSettings.read()).toEqual({});
  await client.rpc.managedSettings.clearCache();
  const refused = { kind: "unavailable", message: expect.any(String) };
  expect(await ask("catalog.search", {})).toMatchObject({ ...refused, reason: "search-unavailable" });
  expect(await ask("mcp.planInstall", {})).toMatchObject({ ...refused, reason: "planning-unavailable" });
  await expect(ask("session.agent.setPrompt", of(session))).rejects.toThrow(/session.options.update/);
  await expect(ask("session.debug.collectLogs", of(session))).rejects.toThrow(/events.jsonl/);
  const summary = { ...of(session), title: "t", content: "c" };
  await expect(ask("session.workspaces.addSummary", summary)).rejects.toThrow(/history.compact/);
  const keeping = { ...of(session), keepCount: 1 };
  await expect(ask("session.workspaces.truncateSummaries", keeping)).rejects.toThrow(/rewind/);
  await session.disconnect();
});

it("the workspace of a session is named, and a change of autopilot's objective is reported", async () => {
  const session = await opened();
  const heard: object[] = [];
  session.on("session.autopilot_objective_changed", ({ data }) => void heard.push(data));
  const ensured = await ask("session.workspaces.ensure", of(session));
  expect(ensured).toMatchObject({ path: expect.stringContaining(session.sessionId) });
  const named = await ask("session.workspaces.updateMetadata", { ...of(session), name: "Paint" });
  expect(named).toMatchObject({ workspace: { name: "Paint" } });
  await ask("session.workspaces.writeAutopilotObjective", { ...of(session), content: "Be done." });
  await ask("session.workspaces.deleteAutopilotObjective", of(session));
  await expect.poll(() => heard).toEqual([{ operation: "create" }, { operation: "delete" }]);
  expect(
    await session.rpc.tools.taskCompleteEventData({
      ...{ toolCallId: "c", toolArgs: { summary: "Done." } },
      finalResult: { textResultForLlm: "ok", resultType: "success" },
    }),
  ).toEqual({ summary: "Done.", success: true, outcome: "completed" });
  await session.disconnect();
});

const of = ({ sessionId }: CopilotSession) => ({ sessionId });

/** Sends a request under any name. */
const ask = (method: string, params: object): Promise<Record<string, unknown>> =>
  (Reflect.get(client, "connection") as { sendRequest(m: string, p: object): Promise<never> }).sendRequest(
    method,
    params,
  );
