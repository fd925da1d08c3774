/** Every flag of `troupe`, defined once. The parser, the help text and the suggestions read this table. */
export interface Option {
  readonly name: string;
  readonly short?: string;
  /** The name of the value in the help text. Absent for a switch. */
  readonly value?: string;
  readonly multiple?: boolean;
  /** Commas are part of the value. Without it they separate several values. */
  readonly verbatim?: boolean;
  readonly help: string;
  readonly group:
    | "Prompt"
    | "Session"
    | "Model"
    | "Agents"
    | "Limits"
    | "Output"
    | "Permissions"
    | "Extensions"
    | "MCP"
    | "Memory"
    | "Server"
    | "Other";
}

export const options: readonly Option[] = [
  {
    name: "prompt",
    short: "p",
    value: "text",
    group: "Prompt",
    help: "run one prompt and exit; piped input is added to it as data",
  },
  { name: "cd", short: "C", value: "folder", group: "Prompt", help: "work in this folder" },

  {
    name: "resume",
    value: "id|name",
    group: "Session",
    help: "go on with a session: its id, the first 7 or more letters of it, or its name",
  },
  { name: "continue", group: "Session", help: "go on with the last session of this repository or folder" },
  { name: "session-id", value: "id", group: "Session", help: "resume the session with this id, or start one" },
  {
    name: "attach",
    value: "port",
    group: "Session",
    help: "without -p: join the session that is open in the server on this port",
  },
  { name: "name", value: "name", group: "Session", help: "give the session a name" },
  {
    name: "session",
    value: "id|name",
    group: "Session",
    help: "for undo, rewind, fork, tasks, inbox: not the last session here",
  },
  { name: "list", group: "Session", help: "for undo and rewind: show what can be taken back" },
  { name: "to", value: "n|id", group: "Session", help: "for rewind: back to before this message or event" },
  { name: "files", group: "Session", help: "for rewind: also the files" },
  { name: "restore", group: "Session", help: "for rewind: take the last rewind back" },
  { name: "dry-run", group: "Session", help: "for rewind: show what would happen" },
  { name: "at", value: "n|id", group: "Session", help: "for fork: up to before this message or event" },
  {
    name: "repo",
    value: "owner/name",
    group: "Session",
    help: "for search: only this repository; . is the one here, or this folder",
  },
  { name: "cwd", value: "folder", group: "Session", help: "for search: only sessions of this folder" },
  { name: "here", group: "Session", help: "for sessions list: only those of this repository or folder" },
  { name: "since", value: "time", group: "Session", help: "for search: since a date, or 12h, 7d" },
  {
    name: "limit",
    value: "n",
    group: "Session",
    help: "for search and sessions list: so many sessions at most (search: 20)",
  },
  {
    name: "force",
    group: "Session",
    help: "for undo, tasks merge, tasks discard, sessions delete: also what they refuse",
  },

  {
    name: "model",
    value: "model",
    group: "Model",
    help: "provider/model, a model name, understudy, or faux:script.json",
  },
  { name: "effort", value: "level", group: "Model", help: "reasoning effort: low, medium, high, xhigh or max" },

  {
    name: "agent",
    value: "name",
    group: "Agents",
    help: "let this agent lead the session: its prompt, tools, skills, model and servers",
  },
  { name: "mode", value: "mode", group: "Agents", help: "interactive (default), plan or autopilot" },
  { name: "plan", group: "Agents", help: "the same as --mode plan: nothing is changed but a plan" },
  { name: "autopilot", group: "Agents", help: "the same as --mode autopilot: go on until the task is done" },
  {
    name: "max-autopilot-continues",
    value: "n",
    group: "Agents",
    help: "how often autopilot sends the agent on (default 5)",
  },
  {
    name: "check",
    value: "command",
    group: "Agents",
    help: "run this when the agent says it is done; it must succeed",
  },
  { name: "user", group: "Agents", help: "for agents new: for yourself, in all folders" },
  { name: "project", group: "Agents", help: "for agents new: in this repository (default)" },
  {
    name: "all",
    group: "Agents",
    help: "tasks stop: every agent; tasks list: also sidekicks; sessions show: everything",
  },
  { name: "as", value: "kind", group: "Agents", help: "for tasks merge: files (default), squash or merge" },

  { name: "max-turns", value: "n", group: "Limits", help: "stop after n model calls" },
  { name: "max-tokens", value: "n", group: "Limits", help: "stop after n tokens, in and out" },
  { name: "max-cost", value: "usd", group: "Limits", help: "stop after this many dollars" },

  {
    name: "output-format",
    value: "text|json",
    group: "Output",
    help: "text: the answer; json: every event as a line, then a result line",
  },
  { name: "stream", value: "on|off", group: "Output", help: "with json: also the words as they arrive (default off)" },
  {
    name: "json",
    group: "Output",
    help: "the same as --output-format json; see JSON below",
  },
  {
    name: "share",
    value: "file",
    verbatim: true,
    group: "Output",
    help: "after the answer, write the session to this file: Markdown, or JSON lines for .jsonl",
  },
  {
    name: "plain",
    group: "Output",
    help: "without -p: labelled lines and numbered menus, for screen readers and dumb terminals",
  },
  { name: "silent", short: "s", group: "Output", help: "nothing on stderr but errors" },
  {
    name: "log-level",
    value: "level",
    group: "Output",
    help: "none, error, warning (default), info or debug, on stderr",
  },

  { name: "add-dir", value: "folder", multiple: true, group: "Permissions", help: "let tools reach this folder too" },
  { name: "allow-all-paths", group: "Permissions", help: "let tools reach any path" },
  { name: "allow-tool", value: "rule", multiple: true, group: "Permissions", help: "allow without asking" },
  { name: "deny-tool", value: "rule", multiple: true, group: "Permissions", help: "never allow; beats every allow" },
  {
    name: "allow-consent-path",
    value: "path",
    multiple: true,
    group: "Permissions",
    help: "allow changes to files that others run, such as .github/workflows",
  },
  { name: "allow-url", value: "rule", multiple: true, group: "Permissions", help: "allow an address" },
  { name: "deny-url", value: "rule", multiple: true, group: "Permissions", help: "never allow an address" },
  { name: "allow-all-tools", group: "Permissions", help: "allow every tool" },
  { name: "allow-all-urls", group: "Permissions", help: "allow every address" },
  { name: "allow-all", group: "Permissions", help: "allow every tool, path and address" },
  { name: "yolo", group: "Permissions", help: "the same as --allow-all" },
  { name: "available-tools", value: "names", multiple: true, group: "Permissions", help: "offer only these tools" },
  { name: "excluded-tools", value: "names", multiple: true, group: "Permissions", help: "offer all but these tools" },
  { name: "no-ask-user", group: "Permissions", help: "the model may not ask questions" },
  {
    name: "trust-folder",
    group: "Permissions",
    help: "use hooks, servers and settings of the working folder, for this run",
  },
  { name: "yes", group: "Permissions", help: "for trust: without a question" },

  { name: "plugin-dir", value: "folder", multiple: true, group: "Extensions", help: "use this plugin" },
  { name: "no-custom-instructions", group: "Extensions", help: "leave out AGENTS.md and its like" },

  {
    name: "additional-mcp-config",
    value: "json|@file",
    multiple: true,
    verbatim: true,
    group: "MCP",
    help: "MCP servers for this run, over all others",
  },
  { name: "disable-mcp-server", value: "name", multiple: true, group: "MCP", help: "do without this server" },
  { name: "transport", value: "type", group: "MCP", help: "for mcp add: stdio, http or sse" },
  {
    name: "env",
    value: "name=value",
    multiple: true,
    verbatim: true,
    group: "MCP",
    help: "for mcp add: a variable for the program",
  },
  {
    name: "header",
    value: "name:value",
    multiple: true,
    verbatim: true,
    group: "MCP",
    help: "for mcp add: a header for the address",
  },
  { name: "tools", value: "names", group: "MCP", help: "for mcp add: only these of its tools" },
  { name: "timeout", value: "ms", group: "MCP", help: "for mcp add: how long to wait for it (default 30000)" },
  { name: "connect", group: "MCP", help: "for mcp list, get and add: connect to the servers" },

  {
    name: "enable-memory",
    group: "Memory",
    help: "with -p: use saved facts and let the agent propose new ones (default: off)",
  },
  { name: "scope", value: "scope", group: "Memory", help: "for memory: repository (default) or user" },
  { name: "subject", value: "text", group: "Memory", help: "for memory add and edit: what it is about" },
  { name: "citations", value: "text", group: "Memory", help: "for memory add and edit: where it can be seen" },
  { name: "reason", value: "text", group: "Memory", help: "for memory add and edit: why it is worth knowing" },
  { name: "expires", value: "days", group: "Memory", help: "for memory add and edit: after so many days, or never" },
  { name: "supersedes", value: "id", group: "Memory", help: "for memory add: the fact it replaces" },
  { name: "purge", group: "Memory", help: "for memory remove, board prune: leave no trace of it" },
  { name: "description", value: "text", group: "Memory", help: "for board add: what it is about, in one line" },
  { name: "src", value: "agent|user", group: "Memory", help: "for board: who wrote the note" },
  { name: "repository", value: "name", group: "Memory", help: "for board: another than that of this folder" },
  { name: "branch", value: "name", group: "Memory", help: "for board: another than the one checked out" },

  { name: "headless", group: "Server", help: "serve client programs (the SDK), with --stdio or on a port" },
  {
    name: "acp",
    group: "Server",
    help: "serve an editor that speaks the Agent Client Protocol, over stdin and stdout",
  },
  { name: "stdio", group: "Server", help: "with headless: over stdin and stdout" },
  {
    name: "port",
    value: "n",
    group: "Server",
    help: "with headless: on this port of this machine (default: a free one)",
  },
  { name: "no-open", group: "Server", help: "with web: print the address, open no browser" },
  { name: "no-connection-token", group: "Server", help: "with a port: let everyone on this machine in" },
  {
    name: "session-idle-timeout",
    value: "seconds",
    group: "Server",
    help: "close sessions that nobody has used for so long; they can be resumed",
  },
  { name: "auth-token-env", value: "name", group: "Server", help: "the variable that holds the GitHub token, if any" },
  { name: "no-auto-login", group: "Server", help: "use no GitHub account but that of the token" },
  { name: "no-auto-update", group: "Server", help: "accepted; troupe never updates itself" },
  { name: "remote", group: "Server", help: "accepted; there are no remote sessions" },

  { name: "help", short: "h", group: "Other", help: "show this text" },
  { name: "version", short: "v", group: "Other", help: "show the version" },
];
