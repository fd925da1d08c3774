import { readFile } from "node:fs/promises";
import {
  approveAll,
  type CopilotRequestContext,
  CopilotRequestHandler,
  type CopilotSession,
  type SessionConfig,
  type SessionEvent,
} from "@github/copilot-sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { calls, says } from "../../src/testing/index.ts";
import { type ServerStage, serverStage } from "./stage.ts";

let stage: ServerStage;
beforeAll(async () => {
  stage = await serverStage();
  await stage.folder.files({
    "work/AGENTS.md": "Always rhyme.",
    "work/.github/agents/local.agent.md": "---\nname: local\ndescription: A local agent\n---\nYou are local.",
    "work/.github/skills/found/SKILL.md": "---\nname: found\ndescription: A skill that was found\n---\nFound.",
    "skills/knit/SKILL.md": "---\nname: knit\ndescription: How to knit\n---\nOne right, one left.",
    "instructions/.github/instructions/a.instructions.md": "Use metric units.",
    "other/b.txt": "other\n",
  });
});
afterAll(() => stage[Symbol.asyncDispose]());

/** What the model is shown of a session with these options. */
async function shown(config: SessionConfig, prompt = "hello") {
  const session = await stage.client.createSession({ onPermissionRequest: approveAll, ...config });
  stage.play(says("ok"));
  await session.sendAndWait(prompt);
  const last = stage.model.requests.at(-1);
  if (!last?.request) throw new Error("the model was not asked");
  const { system = "", tools, messages } = last.request;
  return { session, last, system, messages, tools: tools.map(({ name }) => name), offered: tools };
}

const describedBy = (offered: readonly { name: string }[], name: string): string =>
  JSON.stringify(offered.find((tool) => tool.name === name));

describe("options of a session", () => {
  it("session options choose tools by name and by where they come from, and exclusion wins", async () => {
    const tools = [{ name: "mine", handler: () => "" }];
    expect((await shown({ tools, availableTools: ["view", "edit"] })).tools.sort()).toEqual(["edit", "view"]);
    expect((await shown({ tools, availableTools: ["custom:*", "builtin:view"] })).tools.sort()).toEqual([
      "mine",
      "view",
    ]);
    const some = (await shown({ tools, availableTools: ["builtin:*"], excludedTools: ["builtin:bash", "view"] })).tools;
    expect(some).toContain("grep");
    expect(some.filter((name) => ["bash", "view", "mine"].includes(name))).toEqual([]);
    expect((await shown({ tools, defaultAgent: { excludedTools: ["mine"] } })).tools).not.toContain("mine");
  });

  it("session options decide about the system message: added to, replaced, by sections", async () => {
    expect((await shown({ systemMessage: { content: "Speak Latin." } })).system).toMatch(/GitHub.*Speak Latin\.$/s);
    expect((await shown({ systemMessage: { mode: "replace", content: "Only this." } })).system).toBe("Only this.");
    const { system } = await shown({
      systemMessage: {
        mode: "customize",
        sections: { environment_context: { action: "remove" } },
        content: "At last.",
      },
      organizationCustomInstructions: "We never deploy on Fridays.",
    });
    expect(system).not.toMatch(/Current working directory:|Operating System:/);
    expect(system).toContain("At last.");
    expect(system).toContain("never deploy on Fridays");
  });

  it("session options bring agents, and let one lead", async () => {
    const customAgents = [
      { name: "poet", displayName: "Poet", description: "Writes verse", prompt: "You are a poet.", tools: ["view"] },
      { name: "ghost", description: "Never called", prompt: "Boo.", infer: false },
    ];
    const { offered } = await shown({ customAgents, excludedBuiltinAgents: ["explore"] });
    const task = describedBy(offered, "task");
    expect(task).toContain('"poet"');
    expect(task).not.toContain('"explore"');
    expect(task).not.toContain('"ghost"');
    const led = await shown({ customAgents, agent: "poet" });
    expect(led.system).toContain("You are a poet.");
    expect(led.tools).toEqual(["view"]);
    const [selected] = (await led.session.getEvents()).filter(({ type }) => type === "subagent.selected");
    expect(selected?.data).toEqual({ agentName: "poet", agentDisplayName: "Poet", tools: ["view"] });
    await expect(stage.client.createSession({ customAgents, agent: "nobody" })).rejects.toThrow(
      /Custom agent 'nobody' not found/,
    );
  });

  it("session options find agents and skills of the folder only on request, and instructions always", async () => {
    const plain = await shown({});
    expect(plain.system).toContain("Always rhyme.");
    expect(describedBy(plain.offered, "task")).not.toContain('"local"');
    expect(describedBy(plain.offered, "skill") ?? "").not.toContain("found");
    const discovered = await shown({ enableConfigDiscovery: true });
    expect(describedBy(discovered.offered, "task")).toContain('"local"');
    expect(describedBy(discovered.offered, "skill")).toContain("found");
    const silent = await shown({ skipCustomInstructions: true });
    expect(silent.system).not.toContain("Always rhyme.");
  });

  it("session options bring skills and instructions from other folders", async () => {
    const config = {
      skillDirectories: [stage.folder.at("skills")],
      instructionDirectories: [stage.folder.at("instructions")],
    };
    const given = await shown(config);
    expect(describedBy(given.offered, "skill")).toContain("knit");
    expect(given.system).toContain("Use metric units.");
    expect(describedBy((await shown({ ...config, disabledSkills: ["knit"] })).offered, "skill") ?? "").not.toContain(
      "knit",
    );
    expect((await shown({ ...config, enableSkills: false })).tools).not.toContain("skill");
  });

  it("session options set the working folder and the other allowed folders", async () => {
    const session = await stage.client.createSession({
      workingDirectory: stage.folder.at("other"),
      additionalDirectories: ["../work"],
      onPermissionRequest: approveAll,
    });
    stage.play(calls(["view", { path: "b.txt" }], ["view", { path: stage.folder.at("work/a.txt") }]), says("seen"));
    await session.sendAndWait("look");
    const results = stage.model.requests
      .at(-1)
      ?.request?.messages.flatMap((one) => (one.role === "tool" ? [one.content] : []));
    expect(results?.sort()).toEqual([expect.stringContaining("1. one"), expect.stringContaining("1. other")]);
  });

  it("session options bring a provider and models of their own, with tokens on request", async () => {
    const asked: string[] = [];
    const { last } = await shown({
      model: "gpt-own",
      clientName: "options-test",
      provider: {
        type: "openai",
        baseUrl: stage.model.baseUrl,
        headers: { "x-own": "yes" },
        bearerTokenProvider: async ({ providerName }) => {
          asked.push(providerName);
          return "fresh-token";
        },
      },
    });
    expect(asked).toEqual(["default"]);
    expect(last.headers).toMatchObject({ authorization: "Bearer fresh-token", "x-own": "yes" });
    expect(last.headers["user-agent"]).toContain("options-test");
    expect(last.body).toMatchObject({ model: "gpt-own" });
    expect(last.body).not.toHaveProperty("stream");
    const session = await stage.client.createSession({
      providers: [{ name: "mine", type: "openai", baseUrl: stage.model.baseUrl, apiKey: "k" }],
      models: [{ id: "fast", provider: "mine", wireModel: "fast-2" }],
      model: "mine/fast",
    });
    stage.play(says("ok"));
    await session.send({ prompt: "hello", requestHeaders: { "x-turn": "1" } });
    await expect.poll(() => stage.model.requests.at(-1)?.body).toMatchObject({ model: "fast-2" });
    expect(stage.model.requests.at(-1)?.headers).toMatchObject({ authorization: "Bearer k", "x-turn": "1" });
  });

  it("session options that cannot be enforced are refused", async () => {
    await expect(stage.client.createSession({ managedSettings: { permissions: {} } as never })).rejects.toThrow(
      /cannot enforce managed settings/,
    );
    await expect(stage.client.createSession({ cloud: {} })).rejects.toThrow(/no cloud sessions/);
  });
});

describe("options on resume", () => {
  it("options on resume replace the earlier ones for an open session, and the history stays", async () => {
    const heard: SessionEvent[] = [];
    const session = await stage.client.createSession({ systemMessage: { content: "Speak Latin." } });
    stage.play(says("salve"));
    await session.sendAndWait("hello");
    const resumed = await stage.client.resumeSession(session.sessionId, {
      systemMessage: { content: "Speak Greek." },
      streaming: true,
      onEvent: (event) => heard.push(event),
    });
    stage.play(says("chaire"));
    await resumed.sendAndWait("and now?");
    const { system, messages } = stage.model.requests.at(-1)?.request ?? {};
    expect(system).toContain("Speak Greek.");
    expect(JSON.stringify(messages)).toContain("salve");
    const types = heard.map(({ type }) => type);
    expect(types).toContain("assistant.message_delta");
    expect(types).toContain("session.resume");
    expect(types).not.toContain("session.shutdown");
  });

  it("nothing comes from the machine in empty mode except what is requested", async () => {
    const client = stage.newClient({ mode: "empty" });
    const session = await client.createSession({ availableTools: ["builtin:view"], onPermissionRequest: approveAll });
    stage.play(says("ok"));
    await session.sendAndWait("hello");
    const { system = "", tools = [] } = stage.model.requests.at(-1)?.request ?? {};
    expect(tools.map(({ name }) => name)).toEqual(["view"]);
    expect(system).not.toMatch(/Always rhyme|Current working directory/);
  });
});

describe("options that name places and windows", () => {
  const tool = { name: "long", skipPermission: true, handler: () => "word ".repeat(400) };
  const opened = async (config: SessionConfig) => {
    const warnings: string[] = [];
    const onEvent = (event: SessionEvent): void => {
      if (event.type === "session.warning") warnings.push(event.data.message);
    };
    return { warnings, session: await stage.client.createSession({ tools: [tool], onEvent, ...config }) };
  };
  /** Where the large output of a call went, as the model was told. */
  const kept = async (session: CopilotSession): Promise<string> => {
    stage.play(calls(["long", {}]), says("long"));
    await session.sendAndWait("go");
    const told = JSON.stringify(stage.model.requests.at(-1)?.request?.messages);
    return /Saved to: ([^\\"]+)/.exec(told)?.[1] ?? "";
  };

  it("session options put large outputs where only the agent can read them", async () => {
    const { session, warnings } = await opened({ largeOutput: { maxSizeBytes: 1000, outputDirectory: "out/large" } });
    const path = await kept(session);
    expect(path).toMatch(
      new RegExp(`^${stage.folder.at("work/out/large")}/[0-9a-f]{8}-copilot-tool-output-long\\.txt$`),
    );
    expect(await readFile(path, "utf8")).toBe(tool.handler());
    expect(warnings).toEqual([]);
    const outputDirectory = stage.folder.at("other");
    const outside = await opened({ largeOutput: { maxSizeBytes: 1000, outputDirectory } });
    expect(await kept(outside.session)).toContain(`session-state/${outside.session.sessionId}`);
    expect(outside.warnings).toEqual([expect.stringContaining("largeOutput.outputDir is not used")]);
    const added = await opened({
      additionalDirectories: [outputDirectory],
      largeOutput: { maxSizeBytes: 1000, outputDirectory },
    });
    expect(await kept(added.session)).toContain(outputDirectory);
  });

  it("session options without effect are reported", async () => {
    const { warnings } = await opened({ configDirectory: "/elsewhere", contextTier: "long_context" });
    await expect
      .poll(() => warnings)
      .toEqual([
        expect.stringMatching(/^configDir is not used.*COPILOT_HOME=\/elsewhere/),
        expect.stringMatching(/^contextTier 'long_context' is not used/),
      ]);
    expect((await opened({ contextTier: "default" })).warnings).toEqual([]);
  });
});

describe("a client that carries model requests", () => {
  it("a client that carries model requests receives each one and replies, and an abort reaches it", async () => {
    // The handler of the SDK sends them on itself, so the scripted model sees what it carried.
    const carried: unknown[] = [];
    class Carrier extends CopilotRequestHandler {
      protected override sendRequest(request: Request, context: CopilotRequestContext) {
        carried.push({ url: request.url, sessionId: context.sessionId, agentId: context.agentId });
        return super.sendRequest(request, context);
      }
    }
    const client = stage.newClient({ requestHandler: new Carrier() });
    const session = await client.createSession({ streaming: true });
    stage.play(says("carried"));
    expect((await session.sendAndWait("hello"))?.data.content).toBe("carried");
    const { sessionId } = session;
    expect(carried).toEqual([{ url: `${stage.model.baseUrl}/chat/completions`, sessionId, agentId: sessionId }]);
  });
});
