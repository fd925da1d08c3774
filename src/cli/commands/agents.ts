import type { AgentDefinition } from "../../agents/agent.ts";
import { findAgent, suggestAgent } from "../../agents/names.ts";
import { type AgentSources, loadAgents } from "../../catalog/agents/agents.ts";
import type { Disk } from "../../lib/node/disk.ts";
import { clip, plural, sanitise, sanitiseLine } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { type Arguments, unknownSubcommand, usage, wantsJson } from "../args.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { listLines } from "../output/list-lines.ts";
import { jsonList, write } from "../output/output.ts";
import { printMessage } from "../output/print-message.ts";
import { pluginFolders } from "../plugin-folders.ts";

export interface AgentsContext {
  /** The agents that a session in this folder would have. */
  readonly sources: AgentSources;
  readonly disk: Disk;
  print(text: string): void | Promise<void>;
  /** Writes one line for the user, separate from the result. */
  say(text: string): void;
}

/** Runs `troupe agents` in the working folder. */
export async function runAgents(given: Arguments): Promise<ExitCode> {
  const { openAgentsAdministration } = await import("../../runtime/agents/agents-admin.ts");
  const { sources, disk } = await openAgentsAdministration({
    cwd: process.cwd(),
    environment: process.env,
    trustFolder: given.has("trust-folder"),
    pluginDirectories: pluginFolders(given),
  });
  const isData = wantsJson(given) && !process.stdout.isTTY;
  return agentsCommand(given, {
    sources,
    disk,
    say: printMessage,
    print: (text) => write(isData ? text : sanitise(text)),
  });
}

/** `troupe agents`: lists the agents that are available here, and checks their files. */
export async function agentsCommand(given: Arguments, around: AgentsContext): Promise<ExitCode> {
  const [, verb = "list", ...names] = given.words;
  const run = Object.hasOwn(verbs, verb) ? verbs[verb] : undefined;
  if (run === undefined) throw unknownSubcommand("agents", verb, Object.keys(verbs));
  return run({ given, names, around });
}

interface Call {
  readonly given: Arguments;
  readonly names: readonly string[];
  readonly around: AgentsContext;
}

const verbs: Readonly<Record<string, (call: Call) => Promise<ExitCode>>> = {
  list,
  show,
  new: create,
  check,
};

async function list({ given, names, around }: Call): Promise<ExitCode> {
  if (names.length > 0) throw usage(`troupe agents list takes no arguments, but got "${names.join(" ")}".`);
  const { agents, disabled, notices } = await loadAgents(around.sources);
  for (const { message } of notices) around.say(message);
  const rows = [
    ...agents.map((agent) => ({ agent, isOff: false })),
    ...disabled.map((agent) => ({ agent, isOff: true })),
  ];
  if (wantsJson(given)) {
    const all = rows.map(({ agent, isOff }) => ({ ...withoutPrompt(agent), enabled: !isOff }));
    await around.print(jsonList(all));
    return exitCodes.done;
  }
  const shown = rows.map(({ agent, isOff }) => ({
    cells: [agent.name, isOff ? `${agent.source}, off` : agent.source, agent.models[0] ?? "-", toolsText(agent)].map(
      sanitiseLine,
    ),
    text: sanitiseLine(agent.description),
  }));
  await around.print(listLines(shown, { width: process.stdout.columns, textWidth: MAX_LIST_DESCRIPTION }));
  return exitCodes.done;
}

const MAX_LIST_DESCRIPTION = 80;

async function show({ given, names, around }: Call): Promise<ExitCode> {
  const [name, ...more] = names;
  if (name === undefined || more.length > 0) throw usage("troupe agents show takes the name of one agent.");
  const { agents, disabled } = await loadAgents(around.sources);
  const all = [...agents, ...disabled];
  const agent = findAgent(name, all);
  if (agent === undefined) {
    const close = suggestAgent(name, all);
    const hint = close === undefined ? "See: troupe agents list" : `Did you mean ${close}?`;
    throw new TroupeError("usage", `There is no agent ${clip(name, 80)}.`, { hint });
  }
  if (wantsJson(given)) await around.print(`${JSON.stringify(agent, undefined, 2)}\n`);
  else await around.print(sanitise(detailsOf(agent, disabled.includes(agent))));
  return exitCodes.done;
}

function detailsOf(agent: AgentDefinition, isOff: boolean): string {
  const { description, models, modelPolicy, reasoningEffort, skills, mcpServers, limits } = agent;
  const facts: [string, string | undefined][] = [
    ["name", agent.name],
    ["id", agent.id === agent.name ? undefined : agent.id],
    ["state", isOff ? "switched off by settings" : undefined],
    ["from", agent.path ?? agent.source],
    ["plugin", agent.pluginName],
    ["for", description],
    ["model", models.length === 0 ? "that of the agent that starts it" : `${models.join(", ")} (${modelPolicy})`],
    ["effort", reasoningEffort],
    ["tools", agent.tools === null ? "all" : agent.tools.join(", ") || "none"],
    ["never", agent.disallowedTools.join(", ") || undefined],
    ["changes", agent.readOnly ? "nothing" : undefined],
    ["skills", skills.join(", ") || undefined],
    ["MCP servers", mcpServers && Object.keys(mcpServers).join(", ")],
    [
      "limits",
      limits &&
        Object.entries(limits)
          .map(([key, value]) => `${key} ${value}`)
          .join(", "),
    ],
    ["works in", agent.isolation && "a worktree of its own"],
    ["starts", agent.sidekick && `by itself: ${agent.sidekick.triggers.map(({ event }) => event).join(", ")}`],
    ["chosen by", agent.sidekick ? "nobody" : choosers(agent).join(", ") || "programs"],
  ];
  const lines = facts.flatMap(([key, value]) => (value === undefined ? [] : [`${key.padEnd(12)} ${value}`]));
  return `${lines.join("\n")}\n\n${agent.prompt}\n`;
}

const choosers = ({ userInvocable, infer }: AgentDefinition): string[] => [
  ...(userInvocable ? ["people"] : []),
  ...(infer ? ["models"] : []),
];

async function create({ given, names, around }: Call): Promise<ExitCode> {
  const [name, ...more] = names;
  if (name === undefined || more.length > 0)
    throw usage('troupe agents new takes one name: troupe agents new "release notes"');
  if (given.has("user") && given.has("project")) throw usage("Choose one of --user and --project.");
  const { writeNewAgent } = await import("../../catalog/agents/agents-new.ts");
  const scope = given.has("user") ? "user" : "project";
  const path = await writeNewAgent({ name, scope, sources: around.sources, disk: around.disk });
  await around.print(`${sanitiseLine(path)}\n`);
  around.say("Fill it in, then run: troupe agents check");
  return exitCodes.done;
}

async function check({ names, around }: Call): Promise<ExitCode> {
  const { checkAgentFiles } = await import("../../catalog/agents/agents-check.ts");
  const { findings, count } = await checkAgentFiles(around.sources, names);
  const lines = findings.map(({ path, line, kind, message }) => `${path}:${line}: ${kind}: ${message}`);
  await around.print(lines.map((line) => `${sanitiseLine(line)}\n`).join(""));
  const errors = findings.filter(({ kind }) => kind === "error").length;
  around.say(
    `${plural(count, "file")} read, ${plural(errors, "error")}, ${plural(findings.length - errors, "warning")}`,
  );
  return errors > 0 ? exitCodes.failed : exitCodes.done;
}

function toolsText({ tools, readOnly }: AgentDefinition): string {
  const text = tools === null ? "all" : tools.length === 0 ? "none" : plural(tools.length, "tool");
  return readOnly ? `${text}, reading` : text;
}

function withoutPrompt({ prompt: _prompt, ...rest }: AgentDefinition): Omit<AgentDefinition, "prompt"> {
  return rest;
}
