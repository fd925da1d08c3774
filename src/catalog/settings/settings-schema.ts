/** The schema of a settings file. */
import * as z from "zod";
import type { Json } from "../../lib/json.ts";

/** Lazy: most users have no such file, so a start should not pay for it. */
export const SettingsSchema = z.lazy(() => {
  const text = z.string().trim().min(1).max(4096);
  const list = z.array(text).max(1000);
  const raw = z.record(z.string(), anything());
  return z.strictObject({
    $schema: text.exactOptional(),
    model: text.exactOptional(),
    effortLevel: z.enum(["low", "medium", "high", "xhigh", "max"]).exactOptional(),
    stream: z.boolean().exactOptional(),
    logLevel: z
      .enum(["none", "error", "warning", "info", "debug", "all", "default"])
      .transform((level) => (level === "all" ? "debug" : level === "default" ? "warning" : level))
      .exactOptional(),
    askUser: z.boolean().exactOptional(),
    customInstructions: z.boolean().exactOptional(),
    permissions: permissions(list).exactOptional(),
    allowedUrls: list.exactOptional(),
    deniedUrls: list.exactOptional(),
    availableTools: list.exactOptional(),
    excludedTools: list.exactOptional(),
    mcpServers: raw.exactOptional(),
    mcpVariables: list.exactOptional(),
    enabledMcpServers: list.exactOptional(),
    disabledMcpServers: list.exactOptional(),
    skillDirectories: list.exactOptional(),
    disabledSkills: list.exactOptional(),
    disabledExtensions: list.exactOptional(),
    pluginDirectories: list.exactOptional(),
    instructionDirectories: list.exactOptional(),
    hooks: raw.exactOptional(),
    disableAllHooks: z.boolean().exactOptional(),
    sandbox: sandbox(list).exactOptional(),
    trustedFolders: list.exactOptional(),
    environment: z.strictObject({ names: list.exactOptional() }).exactOptional(),
    secretEnvironmentVariables: list.exactOptional(),
    toolSearch: toolSearch().exactOptional(),
    subagents: subagents(list).exactOptional(),
    enabledFeatureFlags: z
      .preprocess(
        (value) => (Array.isArray(value) ? Object.fromEntries(value.map((name) => [String(name), true])) : value),
        z.record(z.string().max(100), z.boolean()),
      )
      .exactOptional(),
    webSearch: webSearch(text).exactOptional(),
    memory: anything().exactOptional(),
    sessionStore: z.enum(["repository", "all"]).exactOptional(),
  });
});

export type Settings = z.infer<typeof SettingsSchema>;

/** Accepts any JSON; the consumer validates it. */
function anything() {
  return z.custom<Json>();
}

/** Returns every known name, to suggest one for an unknown name. */
export function knownNames(): string[] {
  const { shape } = SettingsSchema.unwrap();
  const nested = [shape.permissions, shape.sandbox, shape.subagents, shape.environment, shape.webSearch].flatMap(
    (part) => Object.keys(part.unwrap().shape),
  );
  return [...Object.keys(shape), ...nested, "allowedHosts", "allowLocalNetwork", "enabled", "threshold"];
}

function permissions(list: z.ZodArray<z.ZodString>) {
  return z.strictObject({
    allow: list.exactOptional(),
    deny: list.exactOptional(),
    ask: list.exactOptional(),
    disableBypassPermissionsMode: z.enum(["disable", "allow-auto-only"]).exactOptional(),
  });
}

/** Accepts `true` and `false` for `{ enabled }`. */
function toolSearch() {
  return z.preprocess(
    (value) => (typeof value === "boolean" ? { enabled: value } : value),
    z.strictObject({
      enabled: z.boolean().exactOptional(),
      threshold: z.number().nonnegative().exactOptional(),
    }),
  );
}

/** Returns the path of every setting: `model`, `permissions`, `permissions.allow`. */
export function settingPaths(): string[] {
  const { shape } = SettingsSchema.unwrap();
  const { permissions, sandbox: box, subagents: agents, environment, webSearch: search } = shape;
  const parts = { permissions, sandbox: box, subagents: agents, environment, webSearch: search };
  const nested = Object.entries(parts).flatMap(([name, part]) =>
    Object.keys(part.unwrap().shape).map((inner) => `${name}.${inner}`),
  );
  return [...Object.keys(shape), ...nested];
}

function webSearch(text: z.ZodString) {
  return z.strictObject({
    engine: z.enum(["auto", "model", "searxng", "brave", "tavily", "exa", "off"]).exactOptional(),
    url: text.exactOptional(),
    apiKey: text.exactOptional(),
    apiKeyVariable: text.exactOptional(),
  });
}

function sandbox(list: z.ZodArray<z.ZodString>) {
  return z.strictObject({
    mode: z.enum(["auto", "required", "off"]).exactOptional(),
    network: z
      .strictObject({ allowedHosts: list.exactOptional(), allowLocalNetwork: z.boolean().exactOptional() })
      .exactOptional(),
    writablePaths: list.exactOptional(),
    deniedPaths: list.exactOptional(),
    allowEnvironmentFiles: z.boolean().exactOptional(),
    limits: z.record(z.string(), z.number().positive()).exactOptional(),
  });
}

function subagents(list: z.ZodArray<z.ZodString>) {
  return z.strictObject({
    maxConcurrency: z.number().int().min(1).max(256).exactOptional(),
    maxDepth: z.number().int().min(1).max(256).exactOptional(),
    whenFull: z.enum(["queue", "reject"]).exactOptional(),
    disabledSubagents: list.exactOptional(),
    agents: z.record(z.string(), anything()).exactOptional(),
    maxCostRatio: z.number().min(1).exactOptional(),
    roles: z.record(z.string(), anything()).exactOptional(),
    workers: z
      .strictObject({
        turns: z.number().int().min(1).max(1000).exactOptional(),
        outputTokens: z.number().int().min(1).exactOptional(),
        seconds: z.number().positive().max(86_400).exactOptional(),
        requestSeconds: z.number().positive().max(3600).exactOptional(),
      })
      .exactOptional(),
  });
}
