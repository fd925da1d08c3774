/** One sentence about each setting, for the reference page. The type makes a setting without a text an error. */
import type { Settings } from "./settings-schema.ts";

type Parent = "permissions" | "sandbox" | "subagents" | "webSearch" | "toolSearch" | "environment";
type Child<P extends Parent> = `${P}.${Extract<keyof NonNullable<Settings[P]>, string>}`;
type ChildName = { [P in Parent]: Child<P> }[Parent];
type Workers = `subagents.workers.${keyof NonNullable<NonNullable<Settings["subagents"]>["workers"]>}`;
type Network = `sandbox.network.${keyof NonNullable<NonNullable<Settings["sandbox"]>["network"]>}`;

export type SettingName =
  | Exclude<keyof Settings, Parent | "$schema">
  | Exclude<ChildName, "subagents.workers" | "sandbox.network">
  | Workers
  | Network;

export const settingTexts: Readonly<Record<SettingName, string>> = {
  model: "Default model, as for `--model`.",
  effortLevel: "Default reasoning effort, as for `--effort`.",
  stream: "`true`: JSON output of `-p` also has partial answers, as with `--stream on`.",
  logLevel: "Default of `--log-level` for `-p`.",
  askUser: "`false`: the model must not ask you questions, as with `--no-ask-user`.",
  customInstructions: "`false`: do not load `AGENTS.md` and similar files, as with `--no-custom-instructions`.",
  "permissions.allow": "Rules for calls that run without a question.",
  "permissions.deny": "Rules for calls that never run. They take precedence over every allow rule.",
  "permissions.ask": "Rules for calls that always need your approval.",
  "permissions.disableBypassPermissionsMode": "Either value: `--allow-all` and its parts have no effect.",
  allowedUrls: "Addresses that tools may fetch without a question.",
  deniedUrls: "Addresses that tools never fetch.",
  availableTools: "The only tools that are offered.",
  excludedTools: "Tools that are not offered.",
  mcpServers: "MCP servers, by name, as in `mcp-config.json`.",
  mcpVariables: "Variables that MCP entries of projects and plugins may use.",
  enabledMcpServers: "MCP servers to use although their entry disables them.",
  disabledMcpServers: "MCP servers not to use.",
  skillDirectories: "More folders with skills.",
  disabledSkills: "Skills not to load, by name.",
  disabledExtensions: "Extensions not to start, by id.",
  pluginDirectories: "More folders with plugins.",
  instructionDirectories: "More folders with instruction files.",
  hooks: "Hooks, by event, as in a hook file.",
  disableAllHooks: "`true`: run no hooks except those of a policy. In a project's file: not the project's own.",
  "sandbox.mode": "`auto`: use a sandbox if there is one. `required`: run no command without it. `off`: never use it.",
  "sandbox.network.allowedHosts": "Hosts that commands may reach: `host`, `host:port`, `*.domain`.",
  "sandbox.network.allowLocalNetwork": "`true`: these hosts may be on this machine or in a private network.",
  "sandbox.writablePaths": "More folders that commands may write, absolute or from `~/`.",
  "sandbox.deniedPaths": "Files and folders that commands cannot read.",
  "sandbox.allowEnvironmentFiles":
    "`true`: commands may read `.env` files, and get the secrets in them in a trusted folder.",
  "sandbox.limits": "Limits of a command: `processes`, `fileBytes`, `openFiles`, `addressSpaceBytes`.",
  trustedFolders: "Folders whose settings apply. Hooks and MCP servers in them still need `troupe trust`.",
  "environment.names": "More variables that commands inherit.",
  secretEnvironmentVariables:
    "More variables whose values are secrets. Names such as `…_TOKEN` and `…_KEY` are recognised without this.",
  "toolSearch.enabled": "`false`: always show all tools of MCP servers and client programs to the model.",
  "toolSearch.threshold": "With more tools than this, the model searches for them. Default 30.",
  "subagents.maxConcurrency": "How many agents may run at once. Default 32.",
  "subagents.maxDepth": "How many levels of agents may be nested. Default 6.",
  "subagents.whenFull": "`queue` (default) or `reject` an agent above `maxConcurrency`.",
  "subagents.disabledSubagents": "Agents that cannot be started, by name.",
  "subagents.agents": "`model`, `reasoningEffort` and `disabled` of single agents, by name.",
  "subagents.maxCostRatio": "An agent's model may cost this many times the session's. Default 5.",
  "subagents.roles": "Roles for `subagents_run`: `label`, `prompt` and `groups`, by name.",
  "subagents.workers.turns": "Model calls of a worker. Default 8.",
  "subagents.workers.outputTokens": "Output tokens of a worker. Default 20,000.",
  "subagents.workers.seconds": "Seconds that a worker may run. Default 1,800.",
  "subagents.workers.requestSeconds": "Seconds for one model request of a worker. Default 180.",
  enabledFeatureFlags: "Feature flags: names to `true` or `false`, or a list of names.",
  "webSearch.engine":
    "Engine of `web_search`. `auto` (default) uses the model's own search if it has one, else the first configured engine.",
  "webSearch.url": "Address of the engine.",
  "webSearch.apiKey": "Key of the engine. Prefer `apiKeyVariable`.",
  "webSearch.apiKeyVariable": "Variable that holds the key of the engine.",
  memory:
    "Facts between sessions: `enabled`, `store`, `merge`, `url`, `tokenVariable`, `userScope`, `needsRepository`.",
  sessionStore: "Past sessions that agents can query: of their `repository` (default) or `all`.",
};
