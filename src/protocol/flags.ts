/**
 * Feature flags. A new flag is one entry here and a probe in test/features/flags.test.ts that shows its effect.
 */
import { nearest } from "../lib/text.ts";

interface FlagDefinition {
  /** The state if nothing else sets it. */
  readonly default: "on" | "off";
  /** The features that it enables. */
  readonly gates: string;
}

export const flagDefinitions = {
  MULTI_TURN_AGENTS: { default: "on", gates: "background agents stay after an answer and take messages" },
  SESSION_BASED_SUBAGENTS: {
    default: "on",
    gates: "agents belong to the session and continue after a restart; off: they end with the process",
  },
  MCP_TASKS: {
    default: "on",
    gates: "MCP calls that are tasks run in the background; off: the caller waits",
  },
  MCP_APPS: { default: "on", gates: "clients that can show apps of MCP servers get them" },
  RUBBER_DUCK_AGENT: { default: "on", gates: "the built-in agent rubber-duck" },
  RUBBER_DUCK_OTHER_FAMILY: { default: "off", gates: "rubber-duck uses a model of another family, if there is one" },
  EXPLORE_SMALL_MODEL: { default: "off", gates: "explore uses the provider's cheapest model, with low effort" },
  SIDEKICK_AGENTS: { default: "on", gates: "agents with a sidekick block start by themselves" },
  // The board. Names of the wire: this flag, `/subconscious` and the agent `rem-agent`.
  COPILOT_SUBCONSCIOUS: { default: "off", gates: "the context board, and the agents that read and tidy it" },
  AGENTIC_MEMORY: { default: "on", gates: "sessions can have memory; off: none has, whatever else is set" },
  AGENTIC_MEMORY_USER_SCOPED: { default: "off", gates: "a memory service also stores facts about the user" },
  MEMORY_IN_REPO_STORE: {
    default: "off",
    gates: "accepted facts also go into .github/copilot-memories.jsonl, unless settings name a store",
  },
  GITHUB_CONTEXT_SIDEKICK_AGENT: { default: "off", gates: "the sidekick github-context, which looks at history" },
  AGENT_FACTORIES: { default: "on", gates: "workflows of extensions can run" },
  EXTENSIONS: {
    default: "on",
    gates: "extensions join sessions whose client asks for them; named in the environment: also in untrusted folders",
  },
} as const satisfies Record<string, FlagDefinition>;

export type Flag = keyof typeof flagDefinitions;

/** The enabled flags. */
export type Flags = ReadonlySet<Flag>;

export const flagNames = Object.keys(flagDefinitions) as Flag[];

export interface FlagSources {
  /** `enabledFeatureFlags` of the user's settings. */
  readonly settings?: Readonly<Record<string, boolean>>;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Set by the embedding program. */
  readonly program?: Readonly<Partial<Record<Flag, boolean>>>;
}

/**
 * Resolves flags. Later sources win: defaults, settings, the list in the environment, the flag's own variable, the
 * program.
 */
export function flagsFrom({ settings = {}, environment, program = {} }: FlagSources): {
  readonly flags: Flags;
  readonly notices: readonly string[];
} {
  const notices: string[] = [];
  const listed = listIn(environment);
  for (const name of [...Object.keys(settings), ...listed]) if (!isFlag(name)) notices.push(unknown(name));
  const flags = flagNames.filter((flag) => {
    const own = ownVariable(flag, environment, (notice) => notices.push(notice));
    return (
      program[flag] ?? own ?? (listed.includes(flag) || (settings[flag] ?? flagDefinitions[flag].default === "on"))
    );
  });
  return { flags: new Set(flags), notices };
}

/** Whether the environment or the embedding program enabled a flag by its name. Settings do not count. */
export function isNamed(flag: Flag, { environment, program = {} }: Omit<FlagSources, "settings">): boolean {
  return (
    program[flag] ??
    ownVariable(flag, environment, () => undefined) ??
    listIn(environment).some((name) => name === flag)
  );
}

const LISTS = ["TROUPE_FEATURE_FLAGS", "COPILOT_CLI_ENABLED_FEATURE_FLAGS"];
const WORDS = new Map([
  ...["on", "1", "true", "yes"].map((word) => [word, true] as const),
  ...["off", "0", "false", "no"].map((word) => [word, false] as const),
]);

function listIn(environment: FlagSources["environment"]): string[] {
  return LISTS.flatMap((name) => (environment[name] ?? "").split(",").map((flag) => flag.trim())).filter(Boolean);
}

/**
 * Reads the flag's variable: its own name, or with our prefix in place of another (TROUPE_MULTI_TURN_AGENTS,
 * TROUPE_SUBCONSCIOUS).
 */
function ownVariable(
  flag: Flag,
  environment: FlagSources["environment"],
  note: (notice: string) => void,
): boolean | undefined {
  for (const name of [`TROUPE_${flag.replace(/^COPILOT_/, "")}`, flag]) {
    const value = environment[name]?.trim();
    if (!value) continue;
    const word = WORDS.get(value.toLowerCase());
    if (word !== undefined) return word;
    note(`${name} is ${JSON.stringify(value.slice(0, 40))}; it can be on or off.`);
  }
  return undefined;
}

const isFlag = (name: string): name is Flag => Object.hasOwn(flagDefinitions, name);

function unknown(name: string): string {
  const guess = nearest(name.slice(0, 60), flagNames);
  const hint = guess === undefined ? "" : ` Did you mean ${guess}?`;
  return `There is no feature flag ${JSON.stringify(name.slice(0, 60))}.${hint}`;
}
