import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import {
  approveAll,
  CopilotClient,
  type CopilotSession,
  RuntimeConnection,
  type SessionEvent,
} from "copilot-sdk-1.0.14";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { calls, says } from "../../src/testing/index.ts";
import { type ServerStage, serverStage } from "./stage.ts";

const PATIENT = { timeout: 60_000 };

let stage: ServerStage;
let client: CopilotClient;
beforeAll(async () => {
  stage = await serverStage();
  client = nextClient();
});
afterAll(async () => {
  await client.stop().catch(() => client.forceStop());
  await stage[Symbol.asyncDispose]();
});
afterEach(() => stage.play());

/** A client of SDK 1.0.14 with a server of its own. */
function nextClient(): CopilotClient {
  return new CopilotClient({
    connection: RuntimeConnection.forStdio({ path: resolve("bin/troupe.js"), env: stage.environment(), args: [] }),
    baseDirectory: stage.folder.at("home"),
    workingDirectory: stage.folder.at("work"),
  });
}

const opened = (more: Parameters<CopilotClient["createSession"]>[0] = {}): Promise<CopilotSession> =>
  client.createSession({ onPermissionRequest: approveAll, ...more });

describe("a program on SDK 1.0.14", () => {
  it("a program on SDK 1.0.14 leaves a session with disconnect, and resumes it", async () => {
    const session = await opened();
    stage.play(calls(["view", { path: "a.txt" }]), says("Two lines."));
    expect((await session.sendAndWait("How long is a.txt?"))?.data.content).toBe("Two lines.");
    await session.disconnect();
    const resumed = await client.resumeSession(session.sessionId, { onPermissionRequest: approveAll });
    stage.play(says("Two."));
    expect((await resumed.sendAndWait("Again?"))?.data.content).toBe("Two.");
    await resumed.disconnect();
  });
});

/** Bodies of an extension on SDK 1.0.14. They write what happens to them into a file. */
const extension = `import { defineFactory, joinSession } from "@github/copilot-sdk/extension";
import { appendFileSync } from "node:fs";
const say = (line) => appendFileSync("said.txt", line + "\\n");
const define = (name, run) => defineFactory({ meta: { name, description: "Does " + name + ".", phases: [] }, run });
await joinSession({
  factories: [
    define("waits", async ({ signal }) => {
      say("waits");
      await new Promise((_, reject) => signal.addEventListener("abort", () => { say("aborted"); reject(signal.reason); }));
    }),
    define("gates", async ({ step, phase, pause }) => {
      phase("Gate");
      const made = await step("made", () => { say("made"); return 1; });
      await pause("gate");
      say("passed");
      return made;
    }),
  ],
});`;

describe("a factory of an extension on SDK 1.0.14", () => {
  let session: CopilotSession;
  const said = async (): Promise<string[]> =>
    (await readFile(stage.folder.at("work/said.txt"), "utf8").catch(() => "")).split("\n").filter(Boolean);
  beforeAll(async () => {
    const path = stage.folder.at("home/extensions/works/extension.mjs");
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, extension);
    const extensionSdkPath = resolve("node_modules/copilot-sdk-1.0.14/dist");
    session = await opened({ requestExtensions: true, extensionSdkPath });
    const status = async () => (await session.rpc.extensions.list()).extensions.map((one) => one.status).join();
    await vi.waitFor(async () => expect(await status()).toBe("running"), PATIENT);
  });

  it("a factory of an SDK extension is aborted when its run is cancelled", async () => {
    const run = session.factory.run("waits");
    await expect.poll(said, PATIENT).toEqual(["waits"]);
    const { runs } = await session.rpc.factory.listRuns({});
    await session.factory.cancel(runs.at(-1)?.runId ?? "");
    expect(await run).toMatchObject({ status: "cancelled", attempt: 1 });
    await expect.poll(said, PATIENT).toEqual(["waits", "aborted"]);
  });

  it("a factory of an SDK extension is paused by a client, and its body is aborted", async () => {
    const run = session.factory.run("waits");
    await expect.poll(async () => (await said()).filter((line) => line === "waits").length, PATIENT).toBe(2);
    const { runs } = await session.rpc.factory.listRuns({});
    const runId = runs.at(-1)?.runId ?? "";
    expect(await session.factory.pause(runId)).toMatchObject({ runId, status: "paused", pauseInfo: { type: "user" } });
    expect(await run).toMatchObject({ status: "paused" });
    await expect.poll(async () => (await said()).filter((line) => line === "aborted").length, PATIENT).toBe(2);
    const detail = await session.factory.getRunDetail(runId);
    expect(detail).toMatchObject({ canResume: true, terminal: { pauseInfo: { type: "user" } } });
  });

  it("a factory of an SDK extension pauses at a checkpoint once, continues after a resume, and notifies the agent", async () => {
    const info: string[] = [];
    const off = session.on((event: SessionEvent) => {
      if (event.type === "session.info") info.push(event.data.message);
    });
    const paused = await session.factory.run("gates", { logPhaseNames: true, limits: { timeoutSeconds: null } });
    expect(paused).toMatchObject({ status: "paused", pauseInfo: { type: "checkpoint", key: "gate" } });
    await expect.poll(() => info, PATIENT).toContain("gates: Gate");
    stage.play(says("Noted."));
    const done = await session.factory.resume(paused.runId, { notifyOnComplete: true });
    expect(done).toMatchObject({ status: "completed", attempt: 2, result: 1 });
    expect((await said()).filter((line) => line === "made" || line === "passed")).toEqual(["made", "passed"]);
    const last = () => JSON.stringify(stage.model.requests.at(-1)?.body);
    await expect.poll(last, PATIENT).toContain("has settled: completed");
    off();
  });

  it("a factory of an SDK extension is served under the names of SDK 1.0.15 too", async () => {
    const connection = Reflect.get(session, "connection") as {
      sendRequest(method: string, params: object): Promise<Record<string, unknown>>;
    };
    const heard: string[] = [];
    const off = session.on((event: { type: string }) => void heard.push(event.type));
    const { sessionId } = session;
    const started = await connection.sendRequest("session.workflow.run", { sessionId, name: "gates", args: {} });
    const { runId } = started as { runId: string };
    const run = () => connection.sendRequest("session.workflow.getRun", { sessionId, runId });
    await expect.poll(async () => (await run()).status, PATIENT).toBe("paused");
    const { runs } = (await connection.sendRequest("session.workflow.listRuns", { sessionId })) as { runs: object[] };
    expect(runs.at(-1)).toMatchObject({ runId, workflowName: "gates", canResume: true });
    expect(runs.at(-1)).not.toHaveProperty("factoryName");
    await expect
      .poll(() => heard, PATIENT)
      .toEqual(expect.arrayContaining(["workflow.run_settled", "factory.run_settled"]));
    const unknown = connection.sendRequest("session.workflow.run", { sessionId, name: "none", args: {} });
    await expect(unknown).rejects.toMatchObject({ data: { code: "workflow_not_found" } });
    off();
  });
});

describe("tools that a program on SDK 1.0.14 executes", () => {
  it("a program's tools run through permissions and the log, and no model reads their results", async () => {
    const session = await opened();
    const heard: SessionEvent[] = [];
    const off = session.on((event: SessionEvent) => void heard.push(event));
    const done = await session.rpc.tools.execute({
      name: "bash",
      arguments: { command: "echo marker-of-mine; exit 3", description: "Exit with 3" },
      toolCallId: "mine",
    });
    expect(done).toMatchObject({ resultType: "success", textResultForLlm: expect.stringContaining("marker-of-mine") });
    const ended = () => heard.find(({ type }) => type === "tool.execution_complete")?.data;
    await expect
      .poll(ended, PATIENT)
      .toMatchObject({ toolCallId: "mine", isUserRequested: true, shellExecution: { exitCode: 3 } });
    const again = session.rpc.tools.execute({ name: "view", arguments: { path: "a.txt" }, toolCallId: "mine" });
    await expect(again).rejects.toThrow("A call with the id mine exists in this session.");
    const unknown = await session.rpc.tools.execute({ name: "none", arguments: {} });
    expect(unknown).toMatchObject({ resultType: "failure", error: expect.stringContaining("does not exist") });
    stage.play(says("Hello."));
    await session.sendAndWait("Hi.");
    expect(JSON.stringify(stage.model.requests.at(-1)?.body)).not.toContain("marker-of-mine");
    off();
  });

  it("a program's tools are denied where the client denies the permission", async () => {
    const modes: unknown[] = [];
    const session = await opened({ onPermissionRequest: () => ({ kind: "reject" }) });
    const off = session.on("permission.requested", ({ data }) => void modes.push(data.agentMode));
    const done = await session.rpc.tools.execute({ name: "create", arguments: { path: "no.txt", file_text: "no" } });
    expect(done).toMatchObject({ resultType: expect.stringMatching(/denied|rejected/) });
    await expect(readFile(stage.folder.at("work/no.txt"))).rejects.toThrow("ENOENT");
    expect(modes).toEqual(["interactive"]);
    off();
  });
});

describe("events of SDK 1.0.14", () => {
  it("events name the answered message, the route and end of a model call, and the model's source", async () => {
    const session = await opened();
    const heard: SessionEvent[] = [];
    const off = session.on((event: SessionEvent) => void heard.push(event));
    stage.play(calls(["view", { path: "a.txt" }]), says("Two."));
    const messageId = await session.send("How long is a.txt?");
    const of = (type: string) => heard.filter((event) => event.type === type).map(({ data }) => data);
    await expect.poll(() => of("session.idle").length, PATIENT).toBe(1);
    expect(of("assistant.message")).toMatchObject([
      { originatingMessageId: messageId },
      { originatingMessageId: messageId },
    ]);
    const route = { isByok: true, transport: "http", apiEndpoint: "/chat/completions" };
    expect(of("assistant.usage")).toMatchObject([
      { ...route, finishReason: "tool_calls", interactionType: "conversation-agent" },
      { ...route, finishReason: "stop" },
    ]);
    expect(of("model.call_finished")).toMatchObject([
      { turnId: "0", outcome: "success", containsBuiltInFileEditRequest: false },
      { turnId: "1", outcome: "success", containsBuiltInFileEditRequest: false },
    ]);
    expect(of("session.model_change")).toMatchObject([{ source: "startup" }]);
    off();
  });
});

describe("options of a session on SDK 1.0.14", () => {
  const warnings = (session: CopilotSession): Promise<string[]> =>
    session
      .getEvents()
      .then((events) => events.flatMap((event) => (event.type === "session.warning" ? [event.data.message] : [])));

  it("a session records the source of a message", async () => {
    const session = await opened();
    stage.play(says("Noted."), says("Yes."));
    await session.sendAndWait({ prompt: "The build is red.", source: "system" });
    await session.sendAndWait({ prompt: "Is it?", source: "user" });
    const events = await session.getEvents();
    const sources = events.flatMap((event) => (event.type === "user.message" ? [event.data.source] : []));
    expect(sources).toEqual(["system", undefined]);
    await session.disconnect();
  });

  it("user.message names the message and its mode, and a send waits for the end of autopilot", async () => {
    const session = await opened();
    stage.play(
      says("First step."),
      calls(["create", { path: "b.txt", file_text: "b" }]),
      calls(["task_complete", { summary: "made" }]),
    );
    const ids: (string | undefined)[] = [];
    session.on("user.message", ({ data }) => void ids.push(data.messageId));
    const answer = session.sendAndWait({ prompt: "Make b.txt", agentMode: "autopilot" });
    await answer;
    const events = await session.getEvents();
    expect(events.map(({ type }) => type)).toContain("session.task_complete");
    const modes = events.flatMap((event) => (event.type === "user.message" ? [event.data.agentMode] : []));
    expect(new Set(modes)).toEqual(new Set(["autopilot"]));
    expect(ids.every((id) => id !== undefined)).toBe(true);
    await session.disconnect();
  });

  it("a client sends several messages at once, and is answered when they are done", async () => {
    const session = await opened();
    stage.play(says("One."), says("Two."));
    const { messageIds } = await session.rpc.sendMessages({
      messages: [{ prompt: "first" }, { prompt: "second", requiredTool: "view" }],
      wait: true,
    });
    expect(new Set(messageIds).size).toBe(2);
    const said = (await session.getEvents()).flatMap((event) =>
      event.type === "assistant.message" ? [event.data.content] : [],
    );
    expect(said).toEqual(["One.", "Two."]);
    await expect.poll(() => warnings(session), PATIENT).toEqual([expect.stringContaining("requiredTool is not used")]);
    await session.disconnect();
  });

  it("a session gets a GitHub token from its client, and is not opened when the client cancels", async () => {
    const asked: object[] = [];
    const session = await opened({
      gitHubTokenProvider: async (request) => {
        asked.push(request);
        return { kind: "token", accessToken: "gho_test", expiresIn: 3600 };
      },
    });
    expect(asked).toEqual([expect.objectContaining({ host: "github.com", reason: "initial" })]);
    await session.disconnect();
    const cancelled = opened({ gitHubTokenProvider: async () => ({ kind: "cancelled" }) });
    await expect(cancelled).rejects.toThrow("cancelled the acquisition");
  });

  it("ask_user is a form where the client shows forms", async () => {
    const forms: string[] = [];
    const session = await opened({
      askUserVariant: "elicitation",
      onElicitationRequest: async (context) => {
        forms.push(context.message);
        return { action: "accept", content: { colour: "red" } };
      },
    });
    const requestedSchema = {
      type: "object",
      properties: {
        colour: { type: "string", enum: ["red", "blue"] },
        coats: { type: "integer", default: 2 },
      },
    };
    stage.play(calls(["ask_user", { message: "Which?", requestedSchema }]), says("Red it is."));
    await session.sendAndWait("Paint it.");
    expect(forms).toEqual(["Which?"]);
    const last = JSON.stringify(stage.model.requests.at(-1)?.body);
    expect(last).toContain('User responded: {\\"coats\\":2,\\"colour\\":\\"red\\"}');
    await session.disconnect();
  });

  it("options without effect are reported when a session is created", async () => {
    const session = await opened({
      featureFlags: { SOMETHING: true },
      authClientIdMetadataUrl: "https://example.test/client.json",
      capi: { autoTier: "fast" },
      includedBuiltinSkills: [],
    });
    await expect
      .poll(() => warnings(session), PATIENT)
      .toEqual([
        expect.stringContaining("featureFlags are not used"),
        expect.stringContaining("authClientIdMetadataUrl is not used"),
        expect.stringContaining("autoTier is not used"),
      ]);
    await session.disconnect();
  });

  it("options without effect are reported when a client resumes an open session", async () => {
    const session = await opened();
    await client.resumeSession(session.sessionId, {
      onPermissionRequest: approveAll,
      contextTier: "long_context",
      mcpOAuthTokenStorage: "persistent",
    });
    await expect
      .poll(() => warnings(session), PATIENT)
      .toEqual([
        expect.stringContaining("contextTier 'long_context' is not used"),
        expect.stringContaining("mcpOAuthTokenStorage is not used"),
      ]);
    await session.disconnect();
  });

  it("unknown options are reported, and those that request the default behaviour are accepted", async () => {
    const config = { enableFileChangeTracking: true, skipEmbeddingRetrieval: true };
    const session = await opened(config);
    await expect.poll(() => warnings(session), PATIENT).toEqual([]);
    await session.rpc.options.update({
      shellInitProfile: "None",
      askUserDisabled: true,
      logInteractiveShells: false,
      customAgentsLocalOnly: true,
    });
    await session.rpc.model.switchTo({ modelId: "faux-model", requireAvailable: true } as never);
    await expect
      .poll(() => warnings(session), PATIENT)
      .toEqual([
        "session.options.update: these options have no effect, because this version of troupe does not know them: shellInitProfile, askUserDisabled.",
        "session.model.switchTo: these options have no effect, because this version of troupe does not know them: requireAvailable.",
      ]);
    await session.disconnect();
  });

  it("unknown members of options are reported", async () => {
    const tool = { name: "mine", description: "x", handler: () => "", metadata: { "host:key": 1 } };
    const session = await opened({
      tools: [tool],
      memory: { enabled: true, scope: "all", depth: 3 } as never,
      modelCapabilities: { limits: { max_output_tokens: 900, vision: { max_prompt_images: 1 } } },
      systemMessage: {
        mode: "customize",
        sections: { tone: { action: "append", content: "Be brief.", weight: 2 } as never },
      },
      mcpServers: { files: { command: "true", args: [], retries: 2 } as never },
    });
    const names = "systemMessage.sections.tone.weight, modelCapabilities.limits.vision, memory.scope, memory.depth";
    await expect
      .poll(() => warnings(session), PATIENT)
      .toEqual([
        expect.stringContaining("server files.retries: there is no such setting, so it has no effect"),
        `session.create: these options have no effect, because this version of troupe does not know them: ${names}.`,
      ]);
    await session.disconnect();
  });

  it("policies about content are refused instead of dropped", async () => {
    const session = await opened();
    const additionalContentExclusionPolicies = [{ rules: [{ paths: ["secret/**"] }] }] as never;
    const why = "cannot enforce content exclusion policies";
    await expect(session.rpc.options.update({ additionalContentExclusionPolicies })).rejects.toThrow(why);
    await expect(session.rpc.permissions.configure({ additionalContentExclusionPolicies })).rejects.toThrow(why);
    expect(await session.rpc.options.update({ additionalContentExclusionPolicies: [] })).toEqual({ success: true });
    await session.disconnect();
  });

  it("a changed streaming option applies from the next message on", async () => {
    const session = await opened();
    const deltas: string[] = [];
    session.on("assistant.message_delta", ({ data }) => void deltas.push(data.deltaContent));
    await session.rpc.options.update({ enableStreaming: true });
    stage.play(says("In pieces."));
    await session.sendAndWait("Stream.");
    expect(deltas.join("")).toBe("In pieces.");
    await session.disconnect();
  });

  it("a fleet's attachments are sent, and its end is awaited on request", async () => {
    const session = await opened();
    stage.play(says("Nothing to divide."));
    const attachments = [{ type: "file" as const, path: stage.folder.at("work/a.txt"), displayName: "a.txt" }];
    await session.rpc.fleet.start({ prompt: "Look.", attachments, wait: true });
    expect(JSON.stringify(stage.model.requests.at(-1)?.body)).toContain("a.txt");
    expect((await session.getEvents()).filter(({ type }) => type === "assistant.message")).toHaveLength(1);
    await session.disconnect();
  });

  it("past sessions are hidden from the agent where the client switches the session store off", async () => {
    const query = { query: "SELECT count(*) FROM sessions", database: "session_store" };
    const asked = async (enableSessionStore: boolean): Promise<string> => {
      const session = await opened({ enableSessionStore });
      stage.play(calls(["sql", query]), says("Done."));
      await session.sendAndWait("How many sessions were there?");
      await session.disconnect();
      return JSON.stringify(stage.model.requests.at(-1)?.body);
    };
    expect(await asked(false)).toContain("This session has no store of past sessions");
    expect(await asked(true)).not.toContain("This session has no store of past sessions");
  });
});
