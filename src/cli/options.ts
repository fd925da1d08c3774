import { clusterOptions } from "./cluster/options.ts";
import type { Completion } from "./table/command.ts";

/** Every flag of `troupe`, defined once. The parser, the help text, completion and the suggestions read this table. */
export interface Option {
  readonly name: string;
  readonly short?: string;
  /** The name of the value in the help text. Absent for a switch. */
  readonly value?: string;
  readonly multiple?: boolean;
  /** Commas are part of the value. Without it they separate several values. */
  readonly verbatim?: boolean;
  /** Values that the shell can complete. */
  readonly values?: Completion;
  readonly help: string;
  /** `Commands` are flags that only commands take, each those that its entry in the table names. */
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
    | "Commands"
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
  { name: "cd", short: "C", value: "folder", values: "folder", group: "Prompt", help: "work in this folder" },

  {
    name: "resume",
    value: "id|name",
    values: "session",
    group: "Session",
    help: "resume a session: its id, the first 7 or more letters of the id, or its name",
  },
  { name: "continue", group: "Session", help: "continue the last session of this repository or folder" },
  {
    name: "session-id",
    value: "id",
    values: "session",
    group: "Session",
    help: "resume the session with this id, or start one",
  },
  {
    name: "attach",
    value: "session",
    group: "Session",
    help: "without -p: join a session that is open in another terminal, or in the server on this port",
  },
  { name: "name", value: "name", group: "Session", help: "give the session a name" },

  {
    name: "model",
    value: "model",
    values: "model",
    group: "Model",
    help: "provider/model, a model name, understudy, or faux:script.json",
  },
  {
    name: "effort",
    value: "level",
    values: ["low", "medium", "high", "xhigh", "max"],
    group: "Model",
    help: "reasoning effort: low, medium, high, xhigh or max",
  },

  {
    name: "agent",
    value: "name",
    values: "agent",
    group: "Agents",
    help: "use this agent as the main agent: its prompt, tools, skills, model and MCP servers",
  },
  {
    name: "mode",
    value: "mode",
    values: ["interactive", "plan", "autopilot"],
    group: "Agents",
    help: "interactive (default), plan or autopilot",
  },
  {
    name: "plan",
    group: "Agents",
    help: "the same as --mode plan: the agent may write a plan and change nothing else",
  },
  { name: "autopilot", group: "Agents", help: "the same as --mode autopilot: continue until the task is done" },
  {
    name: "max-autopilot-continues",
    value: "n",
    group: "Agents",
    help: "the maximum number of automatic continuations (default 5)",
  },
  {
    name: "check",
    value: "command",
    group: "Agents",
    help: "run this command when the agent is done; it must succeed (with autopilot: repeat until it does)",
  },

  { name: "max-turns", value: "n", group: "Limits", help: "stop after n model calls" },
  { name: "max-tokens", value: "n", group: "Limits", help: "stop after n tokens, in and out" },
  { name: "max-cost", value: "usd", group: "Limits", help: "stop after this many dollars" },

  {
    name: "output-format",
    value: "text|json",
    values: ["text", "json"],
    group: "Output",
    help: "text: the answer; json: every event as a line, then a result line",
  },
  {
    name: "stream",
    value: "on|off",
    values: ["on", "off"],
    group: "Output",
    help: "with JSON output: also print partial answers (default off)",
  },
  {
    name: "json",
    group: "Output",
    help: "the same as --output-format json; see `troupe help json`",
  },
  {
    name: "share",
    value: "file",
    values: "file",
    verbatim: true,
    group: "Output",
    help: "after the answer, write the session to this file: Markdown, or JSON lines for .jsonl",
  },
  {
    name: "plain",
    group: "Output",
    help: "without -p: labelled lines and numbered menus, for screen readers and dumb terminals",
  },
  { name: "silent", short: "s", group: "Output", help: "print only errors to stderr" },
  {
    name: "log-level",
    value: "level",
    values: ["none", "error", "warning", "info", "debug"],
    group: "Output",
    help: "what is printed to stderr: none, error, warning (default), info or debug",
  },

  {
    name: "add-dir",
    value: "folder",
    values: "folder",
    multiple: true,
    group: "Permissions",
    help: "also let tools read and change files in this folder",
  },
  { name: "allow-all-paths", group: "Permissions", help: "let tools read and change files anywhere" },
  {
    name: "allow-tool",
    value: "rule",
    multiple: true,
    group: "Permissions",
    help: "allow the calls that this rule covers",
  },
  {
    name: "deny-tool",
    value: "rule",
    multiple: true,
    group: "Permissions",
    help: "deny the calls that this rule covers; takes precedence over every allow rule",
  },
  {
    name: "allow-consent-path",
    value: "path",
    multiple: true,
    group: "Permissions",
    help: "allow changes to files that others run, such as .github/workflows",
  },
  { name: "allow-url", value: "rule", multiple: true, group: "Permissions", help: "allow fetching this address" },
  {
    name: "deny-url",
    value: "rule",
    multiple: true,
    group: "Permissions",
    help: "deny fetching this address; takes precedence over every allow rule",
  },
  { name: "allow-all-tools", group: "Permissions", help: "allow every tool" },
  { name: "allow-all-urls", group: "Permissions", help: "allow every address" },
  { name: "allow-all", group: "Permissions", help: "allow every tool, path and address" },
  { name: "yolo", group: "Permissions", help: "the same as --allow-all" },
  { name: "available-tools", value: "names", multiple: true, group: "Permissions", help: "offer only these tools" },
  { name: "excluded-tools", value: "names", multiple: true, group: "Permissions", help: "offer all but these tools" },
  { name: "no-ask-user", group: "Permissions", help: "the model must not ask you questions" },
  {
    name: "trust-folder",
    group: "Permissions",
    help: "use the hooks, MCP servers and settings of the working folder, for this run",
  },

  {
    name: "plugin-dir",
    value: "folder",
    values: "folder",
    multiple: true,
    group: "Extensions",
    help: "load the plugin in this folder",
  },
  { name: "no-custom-instructions", group: "Extensions", help: "do not load AGENTS.md and similar files" },

  {
    name: "additional-mcp-config",
    value: "json|@file",
    multiple: true,
    verbatim: true,
    group: "MCP",
    help: "MCP servers for this run, which take precedence over all others",
  },
  {
    name: "disable-mcp-server",
    value: "name",
    values: "server",
    multiple: true,
    group: "MCP",
    help: "do not use this MCP server",
  },

  {
    name: "enable-memory",
    group: "Memory",
    help: "with -p: use saved facts and let the agent propose new ones (default: off)",
  },

  { name: "headless", group: "Server", help: "serve client programs (the SDK), with --stdio or on a port" },
  {
    name: "acp",
    group: "Server",
    help: "serve an editor that speaks the Agent Client Protocol, over stdin and stdout",
  },
  { name: "stdio", group: "Server", help: "with --headless: over stdin and stdout" },
  {
    name: "port",
    value: "n",
    group: "Server",
    help: "with --headless: on this port of this machine (default: a free one)",
  },
  { name: "no-connection-token", group: "Server", help: "with a port: accept clients without a token" },
  {
    name: "session-idle-timeout",
    value: "seconds",
    group: "Server",
    help: "close sessions after this time without use; they can be resumed",
  },
  { name: "auth-token-env", value: "name", group: "Server", help: "the variable that holds the GitHub token, if any" },
  { name: "no-auto-login", group: "Server", help: "use only the GitHub account of the token" },
  { name: "no-auto-update", group: "Server", help: "no effect, for compatibility: troupe never updates itself" },
  { name: "remote", group: "Server", help: "no effect, for compatibility: there are no remote sessions" },

  { name: "html", group: "Commands", help: "print one HTML file that replays the session offline" },
  { name: "no-open", group: "Commands", help: "print the address and do not open a browser" },
  {
    name: "session",
    value: "id|name",
    values: "session",
    group: "Commands",
    help: "the session to use (default: the last one of this folder)",
  },
  { name: "list", group: "Commands", help: "show what can be undone" },
  { name: "to", value: "n|id", group: "Commands", help: "go back to before this message or event" },
  { name: "files", group: "Commands", help: "also restore files" },
  { name: "restore", group: "Commands", help: "undo the last rewind" },
  { name: "dry-run", group: "Commands", help: "show what would happen" },
  { name: "at", value: "n|id", group: "Commands", help: "copy only what comes before this message or event" },
  {
    name: "repo",
    value: "owner/name",
    group: "Commands",
    help: "only sessions of this repository; . means the current repository or folder",
  },
  {
    name: "cwd",
    value: "folder",
    values: "folder",
    group: "Commands",
    help: "only sessions that worked in this folder or below it",
  },
  { name: "here", group: "Commands", help: "only sessions of this repository or folder" },
  {
    name: "since",
    value: "time",
    group: "Commands",
    help: "only what happened since a date (2026-01-31) or within a time span (12h, 7d)",
  },
  { name: "limit", value: "n", group: "Commands", help: "show at most n sessions (default 20)" },
  { name: "force", group: "Commands", help: "do it even where it is refused by default" },
  { name: "user", group: "Commands", help: "your own file, which applies in all folders" },
  { name: "project", group: "Commands", help: "the file of this repository" },
  { name: "local", group: "Commands", help: "only your own file for this repository, .troupe/settings.local.json" },
  { name: "all", group: "Commands", help: "include everything" },
  {
    name: "as",
    value: "kind",
    values: ["files", "squash", "merge"],
    group: "Commands",
    help: "files (default), squash (one commit) or merge (the branch)",
  },
  { name: "yes", group: "Commands", help: "do not ask for confirmation" },
  {
    name: "transport",
    value: "type",
    values: ["stdio", "http", "sse"],
    group: "Commands",
    help: "stdio, http or sse (default: chosen by the command or URL)",
  },
  {
    name: "env",
    value: "name=value",
    multiple: true,
    verbatim: true,
    group: "Commands",
    help: "an environment variable for the program; repeatable",
  },
  {
    name: "header",
    value: "name:value",
    multiple: true,
    verbatim: true,
    group: "Commands",
    help: "an HTTP header for the URL; repeatable",
  },
  { name: "tools", value: "names", group: "Commands", help: "use only these tools of the MCP server" },
  { name: "timeout", value: "ms", group: "Commands", help: "how long to wait for the MCP server (default 30000)" },
  { name: "connect", group: "Commands", help: "connect to the MCP server and show its state" },
  {
    name: "scope",
    value: "scope",
    values: ["repository", "user"],
    group: "Commands",
    help: "repository (default) or user",
  },
  { name: "subject", value: "text", group: "Commands", help: "the subject of the fact" },
  { name: "citations", value: "text", group: "Commands", help: "where the fact can be verified" },
  { name: "reason", value: "text", group: "Commands", help: "why the fact is worth knowing" },
  { name: "expires", value: "days", group: "Commands", help: "remove the fact after this many days, or never" },
  { name: "supersedes", value: "id", group: "Commands", help: "the fact that it replaces" },
  { name: "purge", group: "Commands", help: "also remove them from the history" },
  { name: "description", value: "text", group: "Commands", help: "a summary in one line" },
  {
    name: "src",
    value: "agent|user",
    values: ["agent", "user"],
    group: "Commands",
    help: "whose note, if an agent and you have notes of the same name",
  },
  { name: "repository", value: "name", group: "Commands", help: "the board of another repository" },
  { name: "branch", value: "name", group: "Commands", help: "the board of another branch" },
  { name: "fix", group: "Commands", help: "repair what is safe to repair, and report each repair" },
  { name: "online", group: "Commands", help: "send one short request to each provider, which may cost a little" },
  { name: "reset-terminal", group: "Commands", help: "turn off the terminal modes that a killed session left on" },
  {
    name: "by",
    value: "group",
    values: ["day", "model", "agent", "repository"],
    group: "Commands",
    help: "day (default), model, agent or repository",
  },
  { name: "print", group: "Commands", help: "print the text instead of writing the file" },
  { name: "man", group: "Commands", help: "print the man page, in roff" },
  ...clusterOptions,
  { name: "exact", group: "Commands", help: "print the stored lines unchanged, for troupe sessions import" },
  { name: "wait", group: "Commands", help: "wait for the answer and print it" },

  { name: "help", short: "h", group: "Other", help: "show help; after a command, the help of that command" },
  { name: "version", short: "v", group: "Other", help: "show the version" },
];
