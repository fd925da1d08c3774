/**
 * The examples of the seed as the SDKs of Python, Go, .NET and Java send them: the same calls with the fields that each
 * language's serialiser adds or leaves out. Spoken frame by frame, so no runtime of these languages is needed.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { calls, says } from "../../src/testing/index.ts";
import { HANG_MS } from "../support/work.ts";
import { type RawClient, rawClient } from "./raw-client.ts";
import { type ServerStage, serverStage } from "./stage.ts";

const languages: Readonly<Record<string, (config: object) => object>> = {
  python: (config) => ({
    ...config,
    ...{ toolFilterPrecedence: "excluded", requestPermission: true, requestElicitation: false },
    ...{ requestExitPlanMode: false, requestAutoModeSwitch: false },
    ...{ includeSubAgentStreamingEvents: true, envValueMode: "direct" },
  }),
  // A list without `omitempty` is sent as null when nobody has set it.
  go: (config) => ({
    ...config,
    ...{ sessionId: crypto.randomUUID(), availableTools: null, toolFilterPrecedence: "excluded" },
    ...{ requestPermission: true, includeSubAgentStreamingEvents: true, envValueMode: "direct" },
  }),
  dotnet: (config) => ({
    ...config,
    ...{ sessionId: crypto.randomUUID(), requestPermission: true, requestUserInput: false, hooks: false },
    ...{ includeSubAgentStreamingEvents: true, envValueMode: "direct", toolFilterPrecedence: "excluded" },
  }),
  java: (config) => ({
    ...config,
    ...{ sessionId: crypto.randomUUID(), requestPermission: true, envValueMode: "direct" },
  }),
};

const prompt = "Research how authentication works in this codebase";
const researcher = {
  name: "researcher",
  displayName: "Research Agent",
  description: "Explores codebases and answers questions using read-only tools",
  tools: ["grep", "glob", "view"],
  prompt: "You are a research assistant. Analyze code and answer questions. Do not modify any files.",
};
const editor = {
  name: "editor",
  displayName: "Editor Agent",
  description: "Makes targeted code changes",
  tools: ["view", "edit", "bash"],
  prompt: "You are a code editor. Make minimal, surgical changes to files as requested.",
};
const delegates = calls(["task", { description: "look", prompt: "look", agent_type: "researcher", name: "r" }]);

let stage: ServerStage;
let client: RawClient;
beforeAll(async () => {
  stage = await serverStage({ transport: "tcp" });
  await stage.client.start();
  client = await rawClient(Reflect.get(stage.client, "runtimePort"));
  await client.ask("connect", { token: Reflect.get(stage.client, "effectiveConnectionToken") });
});
afterAll(async () => {
  client.socket.destroy();
  await stage[Symbol.asyncDispose]();
});

interface Heard {
  readonly type: string;
  readonly agentId?: string;
  readonly data: Record<string, unknown>;
}

/** Creates the session, sends the prompt and answers requests until it is idle, as `sendAndWait` of the SDKs does. */
async function transcript(
  config: object,
): Promise<{ events: Heard[]; requests: { tools: string[]; system: string }[] }> {
  const before = stage.model.requests.length;
  const created = await client.ask("session.create", config);
  const { sessionId } = created.result as { sessionId: string };
  const events: Heard[] = [];
  let seen = client.heard.length;
  await client.ask("session.send", { sessionId, prompt });
  await expect
    .poll(
      async () => {
        for (; seen < client.heard.length; seen++) {
          const { method, params } = client.heard[seen] as {
            method?: string;
            params?: { sessionId: string; event: Heard };
          };
          if (method !== "session.event" || params?.sessionId !== sessionId) continue;
          events.push(params.event);
          await answer(sessionId, params.event);
        }
        return events.at(-1)?.type;
      },
      { timeout: HANG_MS, interval: 10 },
    )
    .toBe("session.idle");
  await client.ask("session.destroy", { sessionId });
  const requests = stage.model.requests.slice(before).map(({ request }) => ({
    tools: request?.tools.map(({ name }) => name) ?? [],
    system: request?.system ?? "",
  }));
  return { events, requests };
}

async function answer(sessionId: string, { type, data }: Heard): Promise<void> {
  const { requestId } = data;
  if (type === "permission.requested" && !data.resolvedByHook) {
    const result = { kind: "approve-once" };
    await client.ask("session.permissions.handlePendingPermissionRequest", { sessionId, requestId, result });
  }
  if (type === "external_tool.requested") {
    const result = { textResultForLlm: '{"analysis":"42 modules"}', resultType: "success" };
    await client.ask("session.tools.handlePendingToolCall", { sessionId, requestId, result });
  }
}

const lifecycle = (events: readonly Heard[]) => events.filter(({ type }) => type.startsWith("subagent."));

describe.each(Object.entries(languages))("the examples in %s", (_, frame) => {
  it("SDK-42 defines two agents, chooses one for the prompt, and reports its life event by event", async () => {
    stage.play(delegates, says("With tokens."), says("It uses tokens."));
    const { events, requests } = await transcript(frame({ model: "gpt-4.1", customAgents: [researcher, editor] }));
    expect(lifecycle(events).map(({ type, data }) => [type, data])).toMatchObject([
      ["subagent.selected", { agentName: "researcher", agentDisplayName: "Research Agent", tools: researcher.tools }],
      [
        "subagent.started",
        {
          agentName: "researcher",
          agentDisplayName: "Research Agent",
          agentDescription: researcher.description,
          toolCallId: expect.any(String),
        },
      ],
      ["subagent.configured", { model: "custom/gpt-4.1" }],
      ["subagent.completed", { agentName: "researcher", agentDisplayName: "Research Agent" }],
      ["subagent.deselected", {}],
    ]);
    expect(requests[1]?.tools.toSorted()).toEqual(researcher.tools.toSorted());
    expect(requests[1]?.system).toContain(researcher.prompt);
    // The session is not narrowed by fields that were left out or sent as null.
    expect(requests[0]?.tools).toEqual(expect.arrayContaining(["task", "bash", "edit", "create", "view"]));
    const said = events.flatMap(({ type, agentId, data }) =>
      type === "assistant.message" && agentId === undefined && data.content !== "" ? [data.content] : [],
    );
    expect(said).toEqual(["It uses tokens."]);
  });

  it("SDK-42 SDK-13 an agent that is chosen at creation leads from the first request on", async () => {
    stage.play(says("I am the researcher."));
    const agents = [researcher, editor].map(({ name, prompt: text }) => ({ name, prompt: text }));
    const { events, requests } = await transcript(frame({ customAgents: agents, agent: "researcher" }));
    expect(requests).toHaveLength(1);
    expect(requests[0]?.system).toContain(researcher.prompt);
    expect(events.some(({ type }) => type === "session.error")).toBe(false);
  });

  it("SDK-42 SDK-25 a tool that is hidden from the default agent is the client's own, and its agent uses it", async () => {
    const name = "analyze-codebase";
    stage.play(delegates, calls([name, { query: "auth" }]), says("42 modules."), says("Done."));
    const { events, requests } = await transcript(
      frame({
        tools: [
          {
            ...{ name, description: "Performs deep analysis of the codebase" },
            parameters: { type: "object", properties: { query: { type: "string" } } },
          },
        ],
        defaultAgent: { excludedTools: [name] },
        customAgents: [{ ...researcher, tools: [name] }],
      }),
    );
    expect(requests.map(({ tools }) => tools.includes(name))).toEqual([false, true, true, false]);
    expect(requests[1]?.tools).toEqual([name]);
    expect(events.filter(({ type }) => type === "external_tool.requested")).toHaveLength(1);
    expect(lifecycle(events).map(({ type }) => type)).toContain("subagent.completed");
  });

  it("SDK-26 SDK-27 SDK-28 availableTools and excludedTools hold for the main agent and for its agents", async () => {
    const both = ["view", "grep", "task"];
    const all = { ...researcher, tools: ["view", "grep", "glob"] };
    const cases = [
      [{ availableTools: both }, ["view", "grep", "task"], ["view", "grep"]],
      [{ availableTools: [...both, "glob"], excludedTools: ["grep"] }, ["view", "glob", "task"], ["view", "glob"]],
      [
        {
          availableTools: [...both, "glob"],
          excludedTools: ["grep"],
          defaultAgent: { excludedTools: ["grep", "view"] },
        },
        ["glob", "task"],
        ["view", "glob"],
      ],
    ] as const;
    for (const [filters, main, agent] of cases) {
      stage.play(delegates, says("Found."), says("Done."));
      const { requests } = await transcript({ ...frame({ customAgents: [all] }), ...filters });
      const own = (tools: readonly string[] = []) => tools.filter((name) => [...both, "glob", "bash"].includes(name));
      expect([own(requests[0]?.tools).toSorted(), requests[1]?.tools.toSorted()]).toEqual([
        main.toSorted(),
        agent.toSorted(),
      ]);
    }
  });
});
