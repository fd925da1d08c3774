import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { clip, sanitiseLine } from "../../lib/text.ts";
import { stateRoot } from "../../runtime/home.ts";
import type { Arguments } from "../args.ts";
import { commands } from "../command-list.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { write } from "../output/output.ts";
import { type CompletionCandidate, complete, type Lookup } from "./complete.ts";

/**
 * `troupe __complete -- <words>`, for the scripts of the shells. Prints a candidate and its description per line, and
 * `:file` or `:folder` if the shell should complete paths.
 */
export async function completeCommand(given: Arguments): Promise<ExitCode> {
  const { candidates, shell } = await complete(given.words.slice(1), lookup);
  const lines = candidates.slice(0, MAX_CANDIDATES).map(({ value, description }) => {
    return `${sanitiseLine(value)}\t${clip(sanitiseLine(description), MAX_DESCRIPTION)}\n`;
  });
  await write([...lines, ...(shell ? [`:${shell}\n`] : [])].join(""));
  return exitCodes.done;
}

const MAX_CANDIDATES = 500;
const MAX_DESCRIPTION = 80;

/** A key that was pressed at a prompt must not print errors: what cannot be read has no names. */
const lookup: Lookup = async (kind) => {
  try {
    return (await (Object.hasOwn(sources, kind) ? sources[kind as keyof typeof sources] : undefined)?.()) ?? [];
  } catch {
    return [];
  }
};

const sources = {
  agent: agentNames,
  command: async () => commands.map(({ name, summary }) => ({ value: name, description: summary })),
  model: modelNames,
  server: serverNames,
  session: sessionNames,
  setting: settingNames,
  topic: topicNames,
};

/** From the list of sessions: no log is read. */
async function sessionNames(): Promise<CompletionCandidate[]> {
  const { createRuntime } = await import("../../runtime/runtime.ts");
  const { store } = createRuntime({ environment: process.env });
  return (await store.list()).slice(0, MAX_CANDIDATES).map(({ sessionId, name, title = "" }) => ({
    value: name !== undefined && /^[\w.-]+$/.test(name) ? name : sessionId,
    description: title,
  }));
}

/** Models of the providers that are set up, as far as they are known without a request. */
async function modelNames(): Promise<CompletionCandidate[]> {
  const { readSettings } = await import("../../model/settings/settings.ts");
  const path = join(stateRoot(process.env), "providers.json");
  const text = await readFile(path, "utf8").catch(() => undefined);
  const file = text === undefined ? {} : { providersFile: { path, text } };
  const { providers } = readSettings({ environment: process.env, ...file });
  const usable = providers.filter(({ configured, missing }) => configured && missing === undefined);
  return [
    ...usable.flatMap(({ id, name, models }) =>
      models.map((model) => ({ value: `${id}/${model.name}`, description: model.displayName ?? name })),
    ),
    { value: "understudy", description: "built in, works offline" },
  ];
}

async function agentNames(): Promise<CompletionCandidate[]> {
  const [{ openAgentsAdministration }, { loadAgents }] = await Promise.all([
    import("../../runtime/agents/agents-admin.ts"),
    import("../../catalog/agents/agents.ts"),
  ]);
  const { sources } = await openAgentsAdministration({
    cwd: process.cwd(),
    environment: process.env,
    trustFolder: false,
    pluginDirectories: [],
  });
  const { agents } = await loadAgents(sources);
  return agents.map(({ name, description }) => ({ value: name, description }));
}

async function serverNames(): Promise<CompletionCandidate[]> {
  const { openMcpAdministration } = await import("../../runtime/mcp/mcp-admin.ts");
  const { administration, close } = await openMcpAdministration({ cwd: process.cwd(), environment: process.env });
  try {
    return (await administration.list()).map(({ name, state }) => ({ value: name, description: state }));
  } finally {
    await close();
  }
}

async function settingNames(): Promise<CompletionCandidate[]> {
  const { settingPaths } = await import("../../catalog/settings/settings-schema.ts");
  return settingPaths().map((value) => ({ value, description: "" }));
}

async function topicNames(): Promise<CompletionCandidate[]> {
  const { topics } = await import("../help/topics.ts");
  const all = [...commands, ...topics];
  return all
    .filter(({ name }, index) => all.findIndex((other) => other.name === name) === index)
    .map(({ name, summary }) => ({ value: name, description: summary }));
}
