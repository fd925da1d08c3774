/**
 * Every environment variable that troupe reads or sets, for the reference page. A test compares it with the source.
 * Keys of providers and switches of feature flags are in tables of their own.
 */
interface Variable {
  readonly name: string;
  /** An older name with the same meaning. It is read if `name` is not set. */
  readonly alias?: string;
  readonly text: string;
}

interface VariableGroup {
  readonly title: string;
  readonly variables: readonly Variable[];
}

const OWN: VariableGroup = {
  title: "State and behaviour",
  variables: [
    {
      name: "TROUPE_HOME",
      alias: "COPILOT_HOME",
      text: "Folder of settings, sessions and memory. Default `~/.troupe`.",
    },
    { name: "TROUPE_SANDBOX", text: "`auto` (default), `required` or `off`. Wins over `sandbox.mode` in settings." },
    { name: "TROUPE_MEMORY", text: "`on` or `off`: turns memory on or off for this run." },
    { name: "TROUPE_LANGUAGE", text: "Language of role and state names in the tree of agents: `en`, `de` or `ru`." },
    { name: "TROUPE_SCREEN_READER", text: "`1`: the same as `--plain`." },
    { name: "NO_COLOR", text: "Set: no colours and no rendered Markdown." },
    { name: "VISUAL", alias: "EDITOR", text: "Editor for the prompt in the terminal." },
    {
      name: "TROUPE_LARGE_OUTPUT_BYTES",
      alias: "COPILOT_LARGE_OUTPUT_THRESHOLD_BYTES",
      text: "Tool output above this size is saved to a file and shown in part. Default 20480, at least 1024.",
    },
    {
      name: "TROUPE_BACKGROUND_COMPACTION_THRESHOLD",
      alias: "COPILOT_BACKGROUND_COMPACTION_THRESHOLD",
      text: "Share of the context window at which a summary is written in the background. Default 0.80.",
    },
    {
      name: "TROUPE_BUFFER_EXHAUSTION_THRESHOLD",
      alias: "COPILOT_BUFFER_EXHAUSTION_THRESHOLD",
      text: "Share of the context window at which the agent waits for the summary. Default 0.95.",
    },
  ],
};

const MODELS: VariableGroup = {
  title: "Models",
  variables: [
    { name: "TROUPE_MODEL", alias: "COPILOT_MODEL", text: "Model, unless `--model` is given." },
    { name: "TROUPE_BASE_URL", alias: "COPILOT_PROVIDER_BASE_URL", text: "URL of a compatible model server." },
    { name: "TROUPE_API_KEY", alias: "COPILOT_PROVIDER_API_KEY", text: "Key of the server at `TROUPE_BASE_URL`." },
    {
      name: "TROUPE_WIRE_API",
      alias: "COPILOT_PROVIDER_WIRE_API",
      text: "`completions` (default), `responses` or `anthropic`.",
    },
    { name: "TROUPE_NO_DISCOVERY", text: "`1`: do not look for Ollama, LM Studio and llama.cpp on this machine." },
    { name: "COPILOT_PROVIDER_MODEL_ID", text: "Read if neither `TROUPE_MODEL` nor `COPILOT_MODEL` is set." },
    { name: "COPILOT_PROVIDER_TYPE", text: "`openai`, `azure` or `anthropic`." },
    { name: "COPILOT_PROVIDER_BEARER_TOKEN", text: "Bearer token instead of a key." },
    { name: "COPILOT_PROVIDER_API_KEY_COMMAND", text: "Program that prints the key." },
    { name: "COPILOT_PROVIDER_HEADERS", text: "Extra headers, as JSON or as `name: value` lines." },
    { name: "COPILOT_PROVIDER_AZURE_API_VERSION", text: "API version of Azure." },
    { name: "COPILOT_PROVIDER_WIRE_MODEL", text: "Name of the model in requests." },
    { name: "COPILOT_PROVIDER_MAX_PROMPT_TOKENS", text: "Size of the prompt that the model accepts." },
    { name: "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS", text: "Size of the reply that the model may give." },
    { name: "COPILOT_PROVIDERS_CONFIG", text: "Providers as JSON, for programs that start troupe." },
  ],
};

const AGENTS: VariableGroup = {
  title: "Agents",
  variables: [
    {
      name: "TROUPE_SUBAGENT_MAX_CONCURRENT",
      alias: "COPILOT_SUBAGENT_MAX_CONCURRENT",
      text: "How many agents may run at once, 1 to 256. Default: `subagents.maxConcurrency`, else 32.",
    },
    {
      name: "TROUPE_SUBAGENT_MAX_DEPTH",
      alias: "COPILOT_SUBAGENT_MAX_DEPTH",
      text: "How many levels of agents may be nested, up to 128. Default: `subagents.maxDepth`, else 6.",
    },
    { name: "TROUPE_SUBAGENT_MAX_TOTAL", text: "How many agents one message may start, up to 10,000. Default 256." },
    { name: "TROUPE_SUBAGENT_WHEN_FULL", text: "`queue` or `reject`: what happens to agents above the limit." },
    {
      name: "TROUPE_TASK_WAIT_TIMEOUT_SECONDS",
      alias: "COPILOT_TASK_WAIT_TIMEOUT_SECONDS",
      text: "How long prompt mode waits for background agents after the answer. Default 600; 0 does not wait.",
    },
    { name: "TROUPE_AGENTS_URL", text: "URL of a server that provides agent definitions." },
    { name: "TROUPE_AGENTS_TOKEN", text: "Token for that server." },
    {
      name: "TROUPE_FEATURE_FLAGS",
      alias: "COPILOT_CLI_ENABLED_FEATURE_FLAGS",
      text: "Feature flags that are on, separated by commas.",
    },
  ],
};

const CONTENT: VariableGroup = {
  title: "Instructions, skills, plugins, hooks",
  variables: [
    {
      name: "TROUPE_INSTRUCTION_DIRS",
      alias: "COPILOT_CUSTOM_INSTRUCTIONS_DIRS",
      text: "More folders with instructions, separated by commas.",
    },
    {
      name: "TROUPE_SKILLS_DIRS",
      alias: "COPILOT_SKILLS_DIRS",
      text: "More folders with skills, separated by commas.",
    },
    { name: "COPILOT_PLUGIN_DIR_ONLY", text: "`true`: use only plugins of `--plugin-dir`." },
    { name: "COPILOT_HOOK_ALLOW_LOCALHOST", text: "`1`: HTTP hooks may call this machine." },
    { name: "COPILOT_HOOK_ALLOW_HTTP_AUTH_HOOKS", text: "`1`: HTTP hooks that decide about calls may use `http:`." },
  ],
};

const WEB: VariableGroup = {
  title: "Web and MCP",
  variables: [
    { name: "TROUPE_WEB_SEARCH", text: "`auto`, `model`, `off` or the name of an engine. Wins over settings." },
    {
      name: "TROUPE_WEB_FETCH_ALLOW_LOCALHOST",
      alias: "COPILOT_WEB_FETCH_ALLOW_LOCALHOST",
      text: "`1`: `web_fetch` may reach this machine.",
    },
    { name: "SEARXNG_URL", text: "Address of a SearXNG instance for `web_search`." },
    { name: "BRAVE_API_KEY", alias: "BRAVE_SEARCH_API_KEY", text: "Key for Brave Search." },
    { name: "TAVILY_API_KEY", text: "Key for Tavily." },
    { name: "EXA_API_KEY", text: "Key for Exa." },
    { name: "TROUPE_MCP_CLIENT_SECRET", text: "Client secret or private key for `troupe mcp login`." },
  ],
};

const SERVER: VariableGroup = {
  title: "Server and GitHub",
  variables: [
    { name: "TROUPE_DATABASE_URL", text: "Postgres database of all commands with the flag `--database`." },
    { name: "COPILOT_CONNECTION_TOKEN", text: "Token that clients of a port must present, at least 16 characters." },
    { name: "COPILOT_API_URL", text: "Address of a model service for GitHub accounts." },
    { name: "COPILOT_DEBUG_GITHUB_API_URL", text: "Address of GitHub's API." },
    { name: "COPILOT_GITHUB_TOKEN", text: "Token of the GitHub account. Then `GH_TOKEN`, then `GITHUB_TOKEN`." },
    { name: "COPILOT_CLI_DISABLE_WEBSOCKET_RESPONSES", text: "Set: model requests never use WebSockets." },
    { name: "COPILOT_ALLOW_GET_PROVIDER_ENDPOINT", text: "`true`: clients may read the provider's address and key." },
  ],
};

const TELEMETRY: VariableGroup = {
  title: "Telemetry",
  variables: [
    {
      name: "TROUPE_OTEL_ENABLED",
      alias: "COPILOT_OTEL_ENABLED",
      text: "`true`: export telemetry. `false`: never export.",
    },
    {
      name: "TROUPE_OTEL_FILE_EXPORTER_PATH",
      alias: "COPILOT_OTEL_FILE_EXPORTER_PATH",
      text: "File that receives one JSON line for each span and metric.",
    },
    {
      name: "TROUPE_OTEL_EXPORTER_TYPE",
      alias: "COPILOT_OTEL_EXPORTER_TYPE",
      text: "`file` or `otlp-http`: only this one.",
    },
    {
      name: "TROUPE_OTEL_SOURCE_NAME",
      alias: "COPILOT_OTEL_SOURCE_NAME",
      text: "Instrumentation scope. Default `troupe`.",
    },
    {
      name: "OTEL_EXPORTER_OTLP_ENDPOINT",
      text: "OTLP receiver. `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` and `OTEL_EXPORTER_OTLP_METRICS_ENDPOINT` override it.",
    },
    { name: "OTEL_EXPORTER_OTLP_PROTOCOL", text: "`http/json` (default) or `http/protobuf`." },
    { name: "OTEL_EXPORTER_OTLP_HEADERS", text: "`key=value,key=value`." },
    { name: "OTEL_EXPORTER_OTLP_TIMEOUT", text: "Milliseconds. Default 10,000." },
    { name: "OTEL_SERVICE_NAME", text: "Name of the resource. Default `troupe`." },
    { name: "OTEL_RESOURCE_ATTRIBUTES", text: "More attributes of the resource." },
    {
      name: "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",
      text: "`true`: export prompts, answers and results.",
    },
    { name: "OTEL_BSP_SCHEDULE_DELAY", text: "Milliseconds between two exports of spans. Default 5,000." },
    { name: "OTEL_METRIC_EXPORT_INTERVAL", text: "Milliseconds between two exports of metrics. Default 60,000." },
    { name: "OTEL_TRACES_EXPORTER", text: "`none`: no traces over OTLP." },
    { name: "OTEL_METRICS_EXPORTER", text: "`none`: no metrics over OTLP." },
    { name: "OTEL_SDK_DISABLED", text: "`true`: no telemetry." },
    { name: "TRACEPARENT", text: "For `troupe submit`: the W3C trace context of the submitted prompt." },
    { name: "TRACESTATE", text: "The `tracestate` that belongs to `TRACEPARENT`." },
  ],
};

export const setVariables: VariableGroup = {
  title: "Set by troupe for its children",
  variables: [
    { name: "TROUPE_SHELL", text: "In commands that agents run. Some commands of troupe refuse to run there." },
    { name: "TROUPE_HOOK_DEPTH", text: "In hooks: how deep hooks are nested." },
    { name: "TROUPE_DETACHED_PARENT_SESSION_ID", text: "In a detached consolidation: the session it belongs to." },
    {
      name: "TROUPE_ENGAGEMENT_ID",
      text: "In a detached consolidation: the id of the first session of the chain that started it.",
    },
    { name: "COPILOT_PROJECT_DIR", alias: "CLAUDE_PROJECT_DIR", text: "In hooks: the folder of the project." },
    { name: "COPILOT_PLUGIN_ROOT", alias: "CLAUDE_PLUGIN_ROOT", text: "In programs of a plugin: its folder." },
    { name: "COPILOT_PLUGIN_DATA", alias: "CLAUDE_PLUGIN_DATA", text: "In programs of a plugin: its data folder." },
    { name: "COPILOT_SDK_PATH", text: "In extensions: the SDK to load." },
    { name: "COPILOT_EXTENSION_PARENT_PID", text: "In extensions: the process of troupe." },
  ],
};

export const variableGroups: readonly VariableGroup[] = [
  OWN,
  MODELS,
  AGENTS,
  CONTENT,
  WEB,
  SERVER,
  TELEMETRY,
  setVariables,
];
