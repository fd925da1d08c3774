import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseSettings } from "../../src/catalog/settings/settings-parse.ts";
import { tightened } from "../../src/catalog/settings/settings-project.ts";
import { type Settings, SettingsSchema } from "../../src/catalog/settings/settings-schema.ts";
import { codeBlocks, read } from "../docs/documents.ts";

const list = fc.array(fc.constantFrom("a", "b", "c", "shell", "https://x.example"), { maxLength: 4 });
const flag = fc.boolean();
const some = <T>(record: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<Partial<T>> =>
  fc.record(record, { requiredKeys: [] }) as fc.Arbitrary<Partial<T>>;

/** One generator for every key there is: a key that is added to the schema and not here fails the first test. */
const keys: Record<keyof Required<Settings>, fc.Arbitrary<unknown>> = {
  $schema: fc.constant("x"),
  model: fc.constantFrom("a", "b"),
  effortLevel: fc.constantFrom("low", "max"),
  stream: flag,
  logLevel: fc.constantFrom("none", "debug"),
  askUser: flag,
  customInstructions: flag,
  permissions: some({
    allow: list,
    deny: list,
    ask: list,
    disableBypassPermissionsMode: fc.constantFrom("disable", "allow-auto-only"),
  }),
  allowedUrls: list,
  deniedUrls: list,
  availableTools: list,
  excludedTools: list,
  mcpServers: fc.constant({ evil: { command: "x" } }),
  mcpVariables: list,
  enabledMcpServers: list,
  disabledMcpServers: list,
  skillDirectories: list,
  disabledSkills: list,
  disabledExtensions: list,
  pluginDirectories: list,
  instructionDirectories: list,
  hooks: fc.constant({ sessionStart: [] }),
  disableAllHooks: flag,
  sandbox: some({
    mode: fc.constantFrom("auto", "required", "off"),
    network: some({ allowedHosts: list, allowLocalNetwork: flag }),
    writablePaths: list,
    deniedPaths: list,
    allowEnvironmentFiles: flag,
    limits: fc.constant({ seconds: 5 }),
  }),
  trustedFolders: list,
  enabledFeatureFlags: fc.constantFrom({ RUBBER_DUCK_AGENT: false }, { COPILOT_SUBCONSCIOUS: true }),
  environment: some({ names: list }),
  secretEnvironmentVariables: list,
  toolSearch: some({ enabled: flag, threshold: fc.nat(9) }),
  subagents: some({
    maxConcurrency: fc.integer({ min: 1, max: 9 }),
    maxDepth: fc.integer({ min: 1, max: 9 }),
    whenFull: fc.constantFrom("queue", "reject"),
    disabledSubagents: list,
    agents: fc.constant({ explore: { model: "x" } }),
  }),
  memory: fc.constant({ enabled: true }),
  webSearch: fc.record({ engine: fc.constantFrom("auto", "brave", "off"), url: fc.constant("https://x") }),
  sessionStore: fc.constantFrom("repository", "all"),
};

const settings = fc.record(keys, { requiredKeys: [] }).map((value) => SettingsSchema.parse(value));

/** What may only grow, what may only become smaller, and what must stay as it is. */
const GROWING = ["permissions.deny", "permissions.ask", "deniedUrls", "excludedTools", "disabledMcpServers"];
const GROWING_TOO = ["disabledSkills", "disabledExtensions", "sandbox.deniedPaths", "subagents.disabledSubagents"];
const COMPARED = ["sandbox.mode", "subagents.maxConcurrency", "subagents.maxDepth"];

describe("the settings of a project", () => {
  it("a project's settings cannot loosen anything, whatever key they use", async () => {
    expect(Object.keys(keys).sort()).toEqual(Object.keys(SettingsSchema.unwrap().shape).sort());
    await fc.assert(
      fc.property(settings, settings, (user, project) => {
        const before = flat(user);
        const after = flat(tightened(user, project, "/work"));
        for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
          if ([...GROWING, ...GROWING_TOO].includes(name)) {
            expect(after[name]).toEqual(expect.arrayContaining((before[name] as unknown[]) ?? []));
          } else if (!COMPARED.includes(name)) expect(after[name], name).toEqual(before[name]);
        }
        const rank = ["off", "auto", "required"];
        const mode = (found: Record<string, unknown>): number => rank.indexOf(String(found["sandbox.mode"] ?? "auto"));
        expect(mode(after)).toBeGreaterThanOrEqual(mode(before));
        for (const name of ["subagents.maxConcurrency", "subagents.maxDepth"]) {
          if (before[name] === undefined) expect(after[name]).toBeUndefined();
          else expect(Number(after[name])).toBeLessThanOrEqual(Number(before[name]));
        }
      }),
      { numRuns: 150 },
    );
  });

  it("a project's settings have the same effect when they are applied twice", async () => {
    await fc.assert(
      fc.property(settings, settings, (user, project) => {
        const once = tightened(user, project, "/work");
        expect(tightened(once, project, "/work")).toEqual(once);
      }),
      { numRuns: 40 },
    );
  });
});

it("settings are read from JSON with and without comments and trailing commas", async () => {
  await fc.assert(
    fc.property(settings, fc.constantFrom("", "  ", "\t"), (value, indent) => {
      const plain = JSON.stringify(value, null, indent);
      const commented = `// c\n${plain.replace(/[[{]\n/g, '$&// "no": [\n/* } */').replace(/\n(\s*[\]}])/g, ",\n$1")}\n/* end */`;
      expect(parseSettings("file", plain).settings).toEqual(value);
      if (indent !== "") expect(parseSettings("file", commented).settings).toEqual(value);
    }),
    { numRuns: 40 },
  );
});

/** Members of parts as `part.member`. */
function flat(value: Settings): Record<string, unknown> {
  const parts = ["permissions", "sandbox", "subagents"];
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, member]) =>
      parts.includes(key)
        ? Object.entries(member as object).map(([inner, found]) => [`${key}.${inner}`, found])
        : [[key, member]],
    ),
  );
}

describe("the guide to settings", () => {
  const guide = read("docs/how-to/settings.md");

  it("the guide to settings shows settings that can be parsed", () => {
    const [example = ""] = codeBlocks(guide, "jsonc");
    expect(parseSettings("example", example).unknown).toEqual([]);
    expect(Object.keys(parseSettings("example", example).settings)).toContain("permissions");
  });
});
