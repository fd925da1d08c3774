import { flagDefinitions, flagNames } from "../protocol/flags.ts";
import { options } from "./options.ts";

export function helpText(version: string): string {
  const groups = [...new Set(options.map(({ group }) => group))];
  const flags = groups.flatMap((group) => [
    "",
    `${group}:`,
    ...options.filter((option) => option.group === group).map(line),
  ]);
  return `troupe ${version} – a coding agent for the terminal, on any model or none

Usage:
  troupe                             open an interactive session: see docs/how-to/terminal.md
  troupe -p "<prompt>"               run one prompt; the answer goes to stdout, progress to stderr
  <command> | troupe -p "<prompt>"   the same, with the command's output as data; without -p the output is the
                                     prompt; add - to wait for a command that is silent for more than 3 s
  troupe sessions list|show|export|delete|reindex
  troupe search <words>              what was said and done in past sessions, and how to go on there
  troupe tasks list|show|resume|stop|diff|merge|discard
                                     the agents of a session: what became of them, and how to go on
  troupe agents list|show|new|check  who can be given work here
  troupe inbox list|show             what sidekicks left for the main agent
  troupe rewind [--to <n>] [--files] go back to before message n; --files restores files too; --restore undoes it
  troupe fork [--at <n>]             a new session with the conversation of the last one
  troupe diff [id|name]              what the last session here, or this one, changed in files
  troupe undo [turn|--list]          take back the file changes of the last tool call, or of the whole turn
  troupe mcp list|get|add|remove|enable|disable|approve|login|logout
  troupe mcp serve                   be an MCP server over stdio whose tools run sessions: see docs/how-to/mcp.md
  troupe memory list|show|add|edit|accept|remove|export|import|undo
  troupe board list|show|add|prune|changes|restore|consolidate
                                     notes on this repository and branch, for agents of later sessions
  troupe trust [folder]|list|remove  show what a folder would run, and trust it
  troupe models                      which models can be used, and why not the rest
  troupe --headless --stdio          serve client programs: see docs/reference/server.md
  troupe --acp                       serve an editor: see docs/how-to/editors.md
${flags.join("\n")}

Examples:
  troupe -p "Explain how this repository is organised"
  git diff | troupe -p "Review this change" --model anthropic/claude-sonnet-5-5
  troupe -p "And the tests?" --continue
  troupe -p "Find the slow query" --output-format json --max-cost 0.50

Models: set OPENAI_API_KEY, ANTHROPIC_API_KEY or another provider's key, or TROUPE_BASE_URL with TROUPE_MODEL for any
compatible server, or start Ollama, LM Studio or llama.cpp. With none of these the built-in understudy answers, offline.

Rules: shell, write, read or url, alone or with an argument: --allow-tool write --deny-tool 'write(package.json)'
--allow-url 'https://docs.example.com'. A denial always wins; what no rule covers is denied when nobody can be asked.

Commands run in a sandbox where bubblewrap works; TROUPE_SANDBOX=required refuses to run them without, off does without.

Traces and metrics (OpenTelemetry) are told where OTEL_EXPORTER_OTLP_ENDPOINT or TROUPE_OTEL_FILE_EXPORTER_PATH says;
see docs/how-to/telemetry.md.

Optional features, each on or off by a variable of its name or by enabledFeatureFlags in your settings:
${optional()}

JSON: --json and --output-format json mean the same. With -p every event is a line, and the last line is the result.
These print one JSON array, [] when there is nothing: sessions list, search, models, tasks list, inbox list,
agents list, mcp list, memory list, board list, board changes, trust list, undo --list, diff.
These print one JSON object: tasks show, inbox show, agents show, mcp get, memory show, board show, board consolidate,
rewind, fork. sessions export and memory export print JSON lines in any case. See docs/reference/json-output.md.

Exit codes: 0 done, 1 failed, 2 bad usage or configuration, 3 provider failure, 4 limit reached,
5 autopilot blocked, 6 not verified, 7 key rejected, 130 interrupted.
State is kept in TROUPE_HOME (default ~/.troupe; a relative path starts at the working folder).
Every session can be resumed.
`;
}

function line({ name, short, value, help }: (typeof options)[number]): string {
  const flag = `${short ? `-${short}, ` : "    "}--${name}${value ? ` <${value}>` : ""}`;
  return `  ${flag.padEnd(33)} ${help}`;
}

function optional(): string {
  return flagNames
    .map((name) => `  ${name.padEnd(33)} ${flagDefinitions[name].gates} (${flagDefinitions[name].default})`)
    .join("\n");
}
