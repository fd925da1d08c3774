/** Agents on the command line: who there is, and one that leads a session, through the built program. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import type { ModelRequest } from "../../src/model/provider.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { createRuntime } from "../../src/runtime/runtime.ts";
import type { SessionRequest } from "../../src/runtime/session-request.ts";
import { limitsOfMainAgent } from "../../src/runtime/setup/select-main-agent.ts";
import { modelServer } from "../../src/testing/model-server.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { troupe } from "../support/troupe.ts";

interface Place {
  readonly cwd: string;
  readonly home: string;
  write(path: string, text: string): void;
}

async function withPlace(test: (place: Place) => Promise<void>): Promise<void> {
  await using folder = await tempFolder();
  const [cwd, home] = [join(folder.path, "project"), join(folder.path, "home")];
  for (const path of [cwd, home]) mkdirSync(path);
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(folder.path, path)), { recursive: true });
    writeFileSync(join(folder.path, path), text);
  };
  await test({ cwd, home, write });
}

const agent = (head: string, prompt = "You lead as the LEADER."): string =>
  `---\ndescription: Leads.\n${head}\n---\n\n${prompt}\n`;
const SERVED = { TROUPE_MODEL: "faux-model", TROUPE_API_KEY: "k" };

/** One prompt on the command line; what the model was asked, and everything the command said. */
async function ask(place: Place, flags: readonly string[], steps = [says("ok")]) {
  await using server = await modelServer({ steps });
  const environment = { ...SERVED, TROUPE_BASE_URL: server.baseUrl };
  const finished = await troupe(["-p", "hello", ...flags], { ...place, environment });
  const requests = server.requests.flatMap(({ request }) => (request ? [request] : []));
  return { ...finished, requests, first: requests[0] as ModelRequest };
}

/** The same in this process, in a new session or the one that was left. */
async function lead({ cwd, home }: Place, more: Partial<SessionRequest> & { resume?: string } = {}) {
  await using server = await modelServer({ steps: [says("ok")] });
  const runtime = createRuntime({ environment: { ...SERVED, TROUPE_BASE_URL: server.baseUrl }, home });
  const { resume, ...rest } = more;
  const request = { cwd, ...rest };
  const session = await (resume === undefined
    ? runtime.createSession(request)
    : runtime.resumeSession(resume, request));
  try {
    await session.sendAndWait({ prompt: "hello" });
  } finally {
    await session.close();
    await runtime.close();
  }
  return { id: session.id, events: session.events, first: server.requests[0]?.request as ModelRequest };
}

const toolsOf = ({ tools }: ModelRequest): string[] => tools.map(({ name }) => name).sort();
const eventsIn = (home: string): SessionEvent[] => {
  const [id = ""] = readdirSync(join(home, "session-state"));
  return readFileSync(join(home, "session-state", id, "events.jsonl"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as SessionEvent);
};

describe("troupe agents", () => {
  it("troupe agents lists, shows, makes and checks agents of this place", () =>
    withPlace(async (place) => {
      const made = await troupe(["agents", "new", "api tests"], place);
      expect(made.code).toBe(0);
      expect(made.stdout.trim()).toMatch(/project\/\.troupe\/agents\/api-tests\.md$/);
      place.write("home/agents/mine.md", agent("tools: [view]"));
      const list = await troupe(["agents", "list"], place);
      expect(list.stdout).toMatch(/^mine +user +- +1 tool +Leads\.$/m);
      expect(list.stdout).toMatch(/^explore +builtin/m);
      const json = JSON.parse((await troupe(["agents", "show", "mine", "--json"], place)).stdout) as object;
      expect(json).toMatchObject({ name: "mine", source: "user", tools: ["view"] });
      place.write("project/.troupe/agents/broken.md", "---\ntools: 7\n---\nx\n");
      const check = await troupe(["agents", "check"], place);
      expect(check).toMatchObject({ code: 1, stdout: expect.stringMatching(/broken\.md:\d+: error: /) });
      expect(check.stdout).toMatch(/api-tests\.md:4: warning: description is still that of the template/);
      expect(await troupe(["agents", "lits"], place)).toMatchObject({ code: 2 });
      expect((await troupe(["agnets"], place)).stderr).toContain("Did you mean troupe agents?");
    }));
});

describe("the agent of --agent", () => {
  it("SDK-05 SDK-13 SDK-16 SDK-34 the agent of --agent leads from the first request on, with its own tools", () =>
    withPlace(async (place) => {
      place.write("project/.troupe/agents/the-reader.md", agent("name: The Reader\ntools: [view, glob]"));
      const steps = [calls(["create", { path: "x.txt", file_text: "x" }]), says("could not")];
      const { code, first, requests } = await ask(place, ["--agent", "the_reader", "--allow-all"], steps);
      expect(code).toBe(0);
      expect(first.system).toContain("You lead as the LEADER.");
      expect(first.system).toContain("<agent_instructions>");
      expect(toolsOf(first)).toEqual(["glob", "view"]);
      expect(JSON.stringify(requests[1]?.messages)).toContain("Tool 'create' does not exist");
      const selected = eventsIn(place.home).filter(({ type }) => type === "subagent.selected");
      expect(selected.map(({ data }) => data)).toEqual([
        { agentName: "The Reader", agentDisplayName: "The Reader", tools: ["view", "glob"] },
      ]);
    }));

  it("SDK-06 SDK-11 the agent of --agent without a list has all tools, and no skill that it does not name", () =>
    withPlace(async (place) => {
      place.write("project/.troupe/agents/lead.md", agent(""));
      place.write("home/skills/knots/SKILL.md", "---\nname: knots\ndescription: Knots.\n---\n\nTIE A BOWLINE.\n");
      const plain = await lead(place);
      const led = await lead(place, { agents: { main: "lead" } });
      expect(toolsOf(led.first)).toEqual(toolsOf(plain.first));
      expect(JSON.stringify(led.first.messages)).not.toContain("BOWLINE");
    }));

  it("SDK-10 SDK-12 the agent of --agent gets its skills in full, and missing ones are reported", () =>
    withPlace(async (place) => {
      place.write("project/.troupe/agents/lead.md", agent("tools: [view]\nskills: [knots, sails]"));
      place.write("home/skills/knots/SKILL.md", "---\nname: knots\ndescription: Knots.\n---\n\nTIE A BOWLINE.\n");
      const { first, events } = await lead(place, { agents: { main: "lead" } });
      expect(toolsOf(first)).toEqual(["view"]);
      expect(first.messages.map(({ role }) => role)).toEqual(["user"]);
      expect(first.system).toContain("TIE A BOWLINE.");
      expect(JSON.stringify(first.messages)).toContain("hello");
      const warnings = events.flatMap((event) => (event.type === "session.warning" ? [event.data.message] : []));
      expect(warnings).toEqual([expect.stringContaining("names the skill sails")]);
    }));

  it("SDK-08 --agent can name an agent that models cannot choose, but not one that users cannot choose", () =>
    withPlace(async (place) => {
      place.write("project/.troupe/agents/hidden.md", agent("infer: false"));
      place.write("project/.troupe/agents/inner.md", agent("user-invocable: false"));
      const { code, first } = await ask(place, ["--agent", "hidden"]);
      expect(code).toBe(0);
      expect(first.system).toContain("LEADER");
      const task = first.tools.find(({ name }) => name === "task");
      expect(JSON.stringify(task)).not.toContain("hidden");
      expect(JSON.stringify(task)).toContain("inner");
      const refused = await troupe(["-p", "x", "--agent", "inner"], place);
      expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("user-invocable: false") });
    }));

  it("SDK-14 --agent fails with a clear error for an unknown name", () =>
    withPlace(async (place) => {
      place.write("project/.troupe/agents/lead.md", agent(""));
      expect(await troupe(["-p", "x", "--agent", "laed"], place)).toEqual({
        code: 2,
        stdout: "",
        stderr: expect.stringMatching(
          /^troupe: Custom agent 'laed' not found\. Did you mean lead\? Agents: .*lead.*\.\n$/,
        ),
      });
    }));

  it("the agent of --agent uses its own model and effort by default, and fails when its model is unusable", () =>
    withPlace(async (place) => {
      await using server = await modelServer({ steps: [says("a"), says("b"), says("c")] });
      place.write(
        "home/providers.json",
        JSON.stringify({
          providers: { here: { baseUrl: server.baseUrl, apiKey: "k", models: { own: {}, given: {}, usual: {} } } },
        }),
      );
      place.write("home/settings.json", JSON.stringify({ model: "here/usual" }));
      place.write("home/agents/lead.md", agent("model: here/own\nreasoning-effort: high"));
      place.write("home/agents/wish.md", agent("model: openai/gpt-5.2"));
      place.write("home/agents/must.md", agent("model: openai/gpt-5.2\nmodel-policy: required"));
      await troupe(["-p", "x", "--agent", "lead"], place);
      await troupe(["-p", "x", "--agent", "lead", "--model", "here/given", "--effort", "low"], place);
      const wish = await troupe(["-p", "x", "--agent", "wish"], place);
      expect(wish.stderr).toContain("does not run on the model it prefers");
      const asked = server.requests.map(({ body }) => body as { model: string; reasoning_effort?: string });
      expect(asked.map((body) => [body.model, body.reasoning_effort])).toEqual([
        ["own", "high"],
        ["given", "low"],
        ["usual", undefined],
      ]);
      expect(await troupe(["-p", "x", "--agent", "must"], place)).toMatchObject({ code: 2 });
    }));

  it("the agent of --agent stays within its limits, and within narrower ones that are given", () =>
    withPlace(async (place) => {
      place.write("project/.troupe/agents/lead.md", agent("limits: { turns: 1 }"));
      const steps = [calls(["view", { path: "." }]), says("too late")];
      expect(await ask(place, ["--agent", "lead", "--max-turns", "9"], steps)).toMatchObject({ code: 4, stdout: "" });
      expect(limitsOfMainAgent({ limits: { turns: 9, seconds: 3 } }, { turns: 2, tokens: 7 })).toEqual({
        turns: 2,
        tokens: 7,
      });
      expect(limitsOfMainAgent(undefined, { turns: 2 })).toEqual({ turns: 2 });
    }));

  it("the agent of --agent brings its MCP servers", () =>
    withPlace(async (place) => {
      const args = JSON.stringify([resolve("test/mcp/servers/version-one.mjs")]);
      const command = JSON.stringify(process.execPath);
      place.write("home/agents/lead.md", agent(`mcp-servers: { toolbox: { command: ${command}, args: ${args} } }`));
      const plain = await lead(place);
      const led = await lead(place, { agents: { main: "lead" } });
      const brought = toolsOf(led.first).filter((name) => !toolsOf(plain.first).includes(name));
      expect(brought.length).toBeGreaterThan(0);
      // With the tools of the server there are enough for a search.
      const others = brought.filter((name) => !name.includes("toolbox") && !name.includes("mcp"));
      expect(others).toEqual(["tool_search_tool_regex"]);
    }));

  it("the agent of --agent is kept when the session is resumed, until another agent or none is chosen", () =>
    withPlace(async (place) => {
      place.write("home/agents/lead.md", agent("tools: [view]"));
      place.write("home/agents/other.md", agent("tools: [grep]", "You are the OTHER."));
      const { id: resume } = await lead(place, { agents: { main: "lead" } });
      const kept = await lead(place, { resume });
      expect(toolsOf(kept.first)).toEqual(["view"]);
      expect(kept.first.system).toContain("LEADER");
      const other = await lead(place, { resume, agents: { main: "other" } });
      expect(toolsOf(other.first)).toEqual(["grep"]);
      expect(other.first.system).not.toContain("LEADER");
      const none = await lead(place, { resume, agents: { main: "default" } });
      expect(none.first.system).not.toContain("agent_instructions");
      expect(toolsOf(none.first)).toContain("create");
      const after = await lead(place, { resume });
      expect(toolsOf(after.first)).toContain("create");
      expect(after.events.map(({ type }) => type).filter((type) => type.startsWith("subagent."))).toEqual([
        "subagent.selected",
        "subagent.selected",
        "subagent.deselected",
      ]);
    }));

  it("the agent of --agent does not resume with more rights when the main agent no longer exists", () =>
    withPlace(async (place) => {
      place.write("home/agents/lead.md", agent("tools: [view]"));
      await lead(place, { agents: { main: "lead" } });
      place.write("home/agents/lead.md", "---\nnothing: here\n---\n");
      const { code, stderr, requests } = await ask(place, ["--continue"]);
      expect({ code, requests }).toEqual({ code: 2, requests: [] });
      expect(stderr).toMatch(/The agent 'lead' cannot be used: .*--agent default/);
    }));

  it("SDK-25 the agent of --agent has a hidden tool that it lists, and its agents have no more tools than it", () =>
    withPlace(async ({ cwd, home, write }) => {
      write("home/agents/lead.md", agent("tools: [view, grep, task]"));
      await using server = await modelServer({
        steps: [
          calls(["task", { description: "d", prompt: "p", agent_type: "general-purpose", name: "w", mode: "sync" }]),
          says("inner"),
          says("outer"),
        ],
      });
      const runtime = createRuntime({ environment: { ...SERVED, TROUPE_BASE_URL: server.baseUrl }, home });
      const toolChoice = { hiddenFromMain: ["grep"] };
      const session = await runtime.createSession({ cwd, agents: { main: "lead" }, tools: { choice: toolChoice } });
      await session.sendAndWait({ prompt: "go" });
      await session.close();
      await runtime.close();
      const [main, inner] = server.requests.flatMap(({ request }) => (request ? [toolsOf(request)] : []));
      expect(main).toEqual(["grep", "list_agents", "read_agent", "stop_agent", "task", "view", "write_agent"]);
      expect(inner?.filter((name) => !main?.includes(name))).toEqual([]);
      expect(inner).toContain("view");
    }));
});
