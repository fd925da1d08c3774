/** Variables that troupe reads from the environment, without the keys of providers. */
export const variables: Readonly<Record<string, string>> = {
  TROUPE_HOME: "state folder (default ~/.troupe; COPILOT_HOME is read if it is not set)",
  TROUPE_MODEL: "model to use without --model",
  TROUPE_BASE_URL: "address of any compatible model server",
  TROUPE_API_KEY: "key for TROUPE_BASE_URL",
  TROUPE_WIRE_API: "protocol of TROUPE_BASE_URL: completions (default), responses or anthropic",
  TROUPE_NO_DISCOVERY: "1: do not look for model servers on this machine",
  TROUPE_SANDBOX: "auto (default), required or off",
  TROUPE_MEMORY: "on or off: use stored facts",
  TROUPE_WEB_SEARCH: "search engine of the web_search tool",
  TROUPE_WEB_FETCH_ALLOW_LOCALHOST: "1: web_fetch may reach this machine",
  TROUPE_TASK_WAIT_TIMEOUT_SECONDS: "how long -p waits for background agents (default 600)",
  TROUPE_SUBAGENT_MAX_DEPTH: "how deep agents may start agents",
  TROUPE_SUBAGENT_MAX_CONCURRENT: "how many agents work at the same time",
  TROUPE_SUBAGENT_MAX_TOTAL: "how many agents a session may start",
  TROUPE_SUBAGENT_WHEN_FULL: "queue or reject: what happens to an agent above the limit",
  TROUPE_LARGE_OUTPUT_BYTES: "tool output above this size goes to a file",
  TROUPE_BACKGROUND_COMPACTION_THRESHOLD: "share of the context window at which compaction starts, 0 to 1",
  TROUPE_BUFFER_EXHAUSTION_THRESHOLD: "share of the context window at which work waits for compaction, 0 to 1",
  TROUPE_INSTRUCTION_DIRS: "more folders with instruction files",
  TROUPE_SKILLS_DIRS: "more folders with skills",
  TROUPE_AGENTS_URL: "service with more agents",
  TROUPE_AGENTS_TOKEN: "token for TROUPE_AGENTS_URL",
  TROUPE_FEATURE_FLAGS: "features to turn on, separated by commas; see `troupe help features`",
  TROUPE_MCP_CLIENT_SECRET: "client secret for `troupe mcp login`",
  TROUPE_LANGUAGE: "language of labels in progress lines",
  TROUPE_SCREEN_READER: "1: labelled lines instead of a screen, like --plain",
  TROUPE_OTEL_ENABLED: "turn traces and metrics on or off",
  TROUPE_OTEL_EXPORTER_TYPE: "otlp-http or file",
  TROUPE_OTEL_FILE_EXPORTER_PATH: "write traces and metrics to this file",
  TROUPE_OTEL_SOURCE_NAME: "name of the instrumentation scope (default troupe)",
};

/** Variables that troupe sets for the programs it starts. */
export const internalVariables: readonly string[] = [
  "TROUPE_SHELL",
  "TROUPE_HOOK_DEPTH",
  "TROUPE_DETACHED_PARENT_SESSION_ID",
  "TROUPE_ENGAGEMENT_ID",
];

export function environmentText(): string {
  const rows = Object.entries(variables).map(([name, help]) => `| ${name} | ${help} |`);
  return `| variable | meaning |\n| --- | --- |\n${rows.join("\n")}\n`;
}
