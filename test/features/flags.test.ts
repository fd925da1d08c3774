import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { topics } from "../../src/cli/help/topics.ts";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { type Flag, flagDefinitions, flagNames, flagsFrom } from "../../src/protocol/flags.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { read, tableBelow } from "../docs/documents.ts";
import { HANG_MS } from "../support/work.ts";
import { repository, service, settings, wholePrompt } from "./memory-stage.ts";
import { of, onStage, resultsOf, type Stage, type StageOptions, starts, toolNames } from "./stage.ts";

/** What is seen of a feature, and how it looks while its flag is on. */
interface Probe {
  look(options: StageOptions): Promise<unknown>;
  readonly on: unknown;
  readonly off: unknown;
}

const agent = (name: string): Probe => ({
  look: (options) =>
    seen([], options, async ({ session }) =>
      session.workspace.services?.agents?.list().some((known) => known.name === name),
    ),
  on: true,
  off: false,
});

/** The model and effort that an agent of this type asks for. */
const model = (agentType: string, on: object): Probe => ({
  look: (options) =>
    seen([starts("a", agentType), says("ok"), of("a", says("words"))], options, async ({ session, firstBody }) => {
      await session.sendAndWait({ prompt: "go" });
      return { model: firstBody("a").model, effort: firstBody("a").reasoning_effort };
    }),
  on: { effort: undefined, ...on },
  off: { model: "large", effort: undefined },
});

const memoryTools = (tools: { on: string[]; off: string[] }): Probe => ({
  look: (options) =>
    seen(
      [says("ok")],
      { ...options, context: { memory: { enabled: true } }, files: repository() },
      async ({ session, first }) => {
        await session.sendAndWait({ prompt: "go" });
        return toolNames(first("main")).filter((name) => name.endsWith("_memory"));
      },
    ),
  ...tools,
});

/** A new flag is a line here. */
const probes: Record<Flag, Probe> = {
  MULTI_TURN_AGENTS: {
    look: (options) =>
      seen(
        [starts("a", "explore", { mode: "background" }), says("ok"), says("heard"), of("a", says("words"))],
        options,
        async ({ session }) => {
          await session.sendAndWait({ prompt: "go" });
          return session.agents.tasks?.view("a")?.status;
        },
      ),
    on: "idle",
    off: "completed",
  },
  SESSION_BASED_SUBAGENTS: {
    look: (options) =>
      seen(
        [
          starts("a", "explore", { mode: "background" }),
          ...[says("ok"), says("heard")],
          calls(["write_agent", { agent_id: "a", message: "more" }]),
          ...[says("asked"), says("heard again")],
          of("a", says("words"), ...(isOn(options) ? [says("more words")] : [])),
        ],
        options,
        async ({ session, reopen }) => {
          await session.sendAndWait({ prompt: "go" });
          const again = await reopen();
          await again.sendAndWait({ prompt: "ask it" });
          await again.agents.tasks?.waitForAll(HANG_MS);
          return (await again.agents.tasks?.report("a"))?.answers.map(({ response }) => response);
        },
      ),
    on: ["words", "more words"],
    off: ["words", ""],
  },
  MCP_TASKS: {
    async look(options) {
      await using folder = await tempFolder();
      const server = fileURLToPath(new URL("./task-server.mjs", import.meta.url));
      const mcpServers = { garden: { command: process.execPath, args: [server, join(folder.path, "log"), "plain"] } };
      const workspace = { ...options.workspace, mcpServers };
      const steps = [calls(["garden-dig", { how: "deep" }]), says("ok"), says("heard")];
      return await seen(steps.slice(0, isOn(options) ? 3 : 2), { ...options, workspace }, async ({ session }) => {
        await session.sendAndWait({ prompt: "go" });
        const [result = ""] = resultsOf(session.events, "garden-dig");
        return { hasResult: result.includes("dug deep"), records: session.agents.tasks?.list().length };
      });
    },
    on: { hasResult: false, records: 1 },
    off: { hasResult: true, records: 0 },
  },
  MCP_APPS: {
    look: (options) =>
      seen([], { ...options, client: { mcpApps: true } }, async ({ session }) => session.workspace.services?.showsApps),
    on: true,
    off: false,
  },
  RUBBER_DUCK_AGENT: agent("rubber-duck"),
  RUBBER_DUCK_OTHER_FAMILY: model("rubber-duck", { model: "other" }),
  EXPLORE_SMALL_MODEL: model("explore", { model: "small", effort: "low" }),
  SIDEKICK_AGENTS: {
    look: (options) => {
      const file = "---\nname: s\ndescription: d\nsidekick: { triggers: [user.message] }\n---\nLook around.\n";
      return seen([says("ok")], { ...options, files: { "home:agents/s.md": file } }, async ({ session, first }) => {
        await session.sendAndWait({ prompt: "", displayPrompt: "go", source: "system" });
        return toolNames(first("main")).includes("read_inbox");
      });
    },
    on: true,
    off: false,
  },
  COPILOT_SUBCONSCIOUS: agent("rem-agent"),
  AGENTIC_MEMORY: memoryTools({ on: ["store_memory", "vote_memory"], off: [] }),
  AGENTIC_MEMORY_USER_SCOPED: {
    async look(options) {
      const { url, requests } = await service(() => ({ body: wholePrompt }));
      const memory = { enabled: true } as const;
      const files = settings({ store: "service", url });
      await onStage([says("ok")], { ...options, context: { memory }, files }, async ({ session }) => {
        await session.sendAndWait({ prompt: "go" });
      });
      return requests.length;
    },
    on: 1,
    off: 0,
  },
  MEMORY_IN_REPO_STORE: memoryTools({ on: ["store_memory"], off: ["store_memory", "vote_memory"] }),
  GITHUB_CONTEXT_SIDEKICK_AGENT: agent("github-context"),
  AGENT_FACTORIES: {
    look: (options) => {
      const factories = { list: () => [], find: () => undefined };
      return seen([], { ...options, client: { program: { factories } } }, async ({ session }) =>
        Boolean(session.workspace.services?.factories),
      );
    },
    on: true,
    off: false,
  },
  EXTENSIONS: {
    look: (options) =>
      seen(
        [],
        { ...options, client: { extensions: {} } },
        async ({ session }) => session.workspace.services?.extensions !== undefined,
      ),
    on: true,
    off: false,
  },
};

const isOn = ({ environment = {} }: StageOptions): boolean => Object.values(environment).includes("on");

async function seen<T>(
  steps: Parameters<typeof onStage>[0],
  options: StageOptions,
  look: (stage: Stage) => Promise<T>,
) {
  const found: T[] = [];
  await onStage(steps, options, async (stage) => void found.push(await look(stage)));
  return found[0];
}

describe("feature flags", () => {
  it.each(flagNames.flatMap((flag) => (["on", "off"] as const).map((word) => [flag, word, probes[flag]] as const)))(
    "ORC-82 the feature flag %s=%s has its effect",
    async (flag, word, probe) => {
      expect(await probe.look({ environment: { [flag]: word } })).toEqual(probe[word]);
    },
  );

  it.each(["EXPLORE_SMALL_MODEL", "RUBBER_DUCK_OTHER_FAMILY", "RUBBER_DUCK_AGENT"] as const)(
    "ORC-07 ORC-08 the feature flag %s can be set in settings, and otherwise has its default",
    async (flag) => {
      const probe = probes[flag];
      const usual = flagDefinitions[flag].default;
      const other = usual === "on" ? "off" : "on";
      const files = { "home:settings.json": JSON.stringify({ enabledFeatureFlags: { [flag]: other === "on" } }) };
      expect(await probe?.look({})).toEqual(probe?.[usual]);
      expect(await probe?.look({ files })).toEqual(probe?.[other]);
    },
  );

  it("ORC-82 feature flags are decided by defaults, settings, list, variable and program, in this order", () => {
    const is = (flag: Flag, sources: Partial<Parameters<typeof flagsFrom>[0]>): boolean =>
      flagsFrom({ environment: {}, ...sources }).flags.has(flag);
    const flag = "EXPLORE_SMALL_MODEL";
    const listed = { TROUPE_FEATURE_FLAGS: ` MCP_TASKS , ${flag}` };
    expect(is(flag, {})).toBe(false);
    expect(is(flag, { settings: { [flag]: true } })).toBe(true);
    expect(is(flag, { settings: { [flag]: false }, environment: listed })).toBe(true);
    expect(is(flag, { environment: { COPILOT_CLI_ENABLED_FEATURE_FLAGS: flag } })).toBe(true);
    expect(is(flag, { environment: { ...listed, [flag]: "0" } })).toBe(false);
    expect(is(flag, { environment: { ...listed, [flag]: "0" }, program: { [flag]: true } })).toBe(true);
    expect(is("COPILOT_SUBCONSCIOUS", { environment: { TROUPE_SUBCONSCIOUS: "on" } })).toBe(true);
    expect(is("MULTI_TURN_AGENTS", { environment: { TROUPE_MULTI_TURN_AGENTS: "off" } })).toBe(false);
  });

  it("ORC-82 wrong feature flags are reported, and a project cannot set flags", async () => {
    const environment = { TROUPE_FEATURE_FLAGS: "MPC_TASKS", MCP_TASKS: "maybe" };
    const files = {
      "home:settings.json": JSON.stringify({ enabledFeatureFlags: ["RUBBER_DUCK"] }),
      ".troupe/settings.json": JSON.stringify({ enabledFeatureFlags: { RUBBER_DUCK_AGENT: false } }),
    };
    await onStage([], { environment, files, workspace: { trustFolder: true } }, async ({ session }) => {
      expect(session.workspace.services?.agents?.list().map(({ name }) => name)).toContain("rubber-duck");
      const told = session.events.flatMap(({ type, data }) => (type === "session.warning" ? [data.message] : []));
      expect(told).toEqual([
        'There is no feature flag "RUBBER_DUCK".',
        'There is no feature flag "MPC_TASKS". Did you mean MCP_TASKS?',
        'MCP_TASKS is "maybe"; it can be on or off.',
        expect.stringMatching(/settings\.json:1: enabledFeatureFlags is ignored: a project can only deny more/),
      ]);
    });
  });

  it("ORC-82 feature flags are listed with their defaults in troupe help features and in the guide", async () => {
    const rows = tableBelow(read("docs/reference/flags.md"), "Feature flags");
    expect(rows.map(([name, usual]) => [name, usual])).toEqual(
      flagNames.map((name) => [`\`${name}\``, flagDefinitions[name].default]),
    );
    const help = (await topics.find(({ name }) => name === "features")?.text()) ?? "";
    for (const name of flagNames)
      expect(help.match(new RegExp(`^  ${name} .*\\((on|off)\\)$`, "m"))?.[1]).toBe(flagDefinitions[name].default);
  });
});
