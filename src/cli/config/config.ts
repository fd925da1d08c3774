/** `troupe config`: reads and changes settings files. Changes keep comments and order, and are validated first. */
import { dirname } from "node:path";
import { loadSettings } from "../../catalog/settings/settings.ts";
import { changeSettings } from "../../catalog/settings/settings-change.ts";
import { parseSettings } from "../../catalog/settings/settings-parse.ts";
import { settingPaths } from "../../catalog/settings/settings-schema.ts";
import { readTrust } from "../../catalog/trust.ts";
import { defined } from "../../lib/defined.ts";
import type { Json } from "../../lib/json.ts";
import { nodeDisk } from "../../lib/node/disk.ts";
import { nearest, sanitiseLine } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { type Arguments, unknownSubcommand, usage, wantsJson } from "../args.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { jsonList, write } from "../output/output.ts";
import { printMessage } from "../output/print-message.ts";
import {
  type ConfigContext,
  type ConfigFile,
  configContext,
  configFile,
  configFiles,
  readConfig,
  scopes,
} from "./config-files.ts";
import { leavesOf, maskSecrets, type SettingsValues, stepsOf, valueAt, withValue } from "./config-values.ts";

export async function configCommand(given: Arguments, context: ConfigContext = configContext()): Promise<ExitCode> {
  const [, verb = "list", ...words] = given.words;
  const run = Object.hasOwn(verbs, verb) ? verbs[verb] : undefined;
  if (run === undefined) throw unknownSubcommand("config", verb, Object.keys(verbs));
  await run({ given, words, context });
  return exitCodes.done;
}

interface Call {
  readonly given: Arguments;
  readonly words: readonly string[];
  readonly context: ConfigContext;
}

const verbs: Readonly<Record<string, (call: Call) => Promise<void>>> = { list, get, set, unset, path };

/** Prints every value of every file. Which of them hold is what `get` tells. */
async function list({ given, words, context }: Call): Promise<void> {
  if (words.length > 0) throw usage("troupe config list takes flags only.");
  const scope = scopeOf(given);
  const files = configFiles(context).filter((file) => scope === undefined || file.scope === scope);
  const rows = files.flatMap((file) =>
    leavesOf(maskSecrets(readConfig(file) ?? {})).map(([key, value]) => ({
      key,
      value,
      scope: file.scope,
      file: file.path,
    })),
  );
  if (wantsJson(given)) return write(jsonList(rows));
  if (rows.length === 0) return write("No settings. Set one with: troupe config set <key> <value>\n");
  const width = Math.max(...rows.map(({ key }) => key.length));
  const lines = rows.map((row) => `${row.key.padEnd(width)}  ${JSON.stringify(row.value)}  (${row.scope})`);
  await write(`${lines.map((line) => sanitiseLine(line)).join("\n")}\n`);
}

/** Prints the value that holds here, or that of one file. */
async function get({ given, words, context }: Call): Promise<void> {
  const [key, ...more] = words;
  if (key === undefined || more.length > 0) throw usage("troupe config get takes one key.");
  requireKnown(key);
  const scope = scopeOf(given);
  const settings = scope === undefined ? effective(context) : (readConfig(configFile(context, scope)) ?? {});
  const value = valueAt(maskSecrets(settings), stepsOf(key));
  if (value === undefined) throw new TroupeError("failed", `${key} is not set.`, { hint: "See: troupe config list" });
  const isPlain = typeof value === "string" && !wantsJson(given);
  await write(`${isPlain ? sanitiseLine(value) : JSON.stringify(value, undefined, 2)}\n`);
}

function effective({ home, cwd, root }: ConfigContext): SettingsValues {
  const isTrusted = (folder: string): boolean => readTrust(home).of(folder).state !== "none";
  const loaded = loadSettings({ stateRoot: home, cwd, gitRoot: root, isTrusted });
  for (const { message } of loaded.notices) printMessage(message);
  return loaded.effective as SettingsValues;
}

async function set({ given, words, context }: Call): Promise<void> {
  const [key, ...values] = words;
  if (key === undefined || values.length === 0) throw usage("troupe config set takes a key and a value.");
  refuseToAgents(context);
  requireKnown(key);
  const steps = stepsOf(key);
  const value = chosenValue(key, values);
  const file = configFile(context, scopeOf(given) ?? "user");
  await change(file, (current) => withValue(current, steps, value));
  await write(`Set ${key} in ${sanitiseLine(file.path)}\n`);
  sayConsequences(file, context);
}

async function unset({ given, words, context }: Call): Promise<void> {
  const [key, ...more] = words;
  if (key === undefined || more.length > 0) throw usage("troupe config unset takes one key.");
  refuseToAgents(context);
  const file = configFile(context, scopeOf(given) ?? "user");
  const current = readConfig(file);
  if (current === undefined || valueAt(current, stepsOf(key)) === undefined) {
    throw new TroupeError("failed", `${key} is not set in ${file.path}.`, { hint: "See: troupe config list" });
  }
  await change(file, (settings) => withValue(settings, stepsOf(key), undefined));
  await write(`Removed ${key} from ${sanitiseLine(file.path)}\n`);
}

async function path({ given, words, context }: Call): Promise<void> {
  if (words.length > 0) throw usage("troupe config path takes flags only.");
  await write(`${sanitiseLine(configFile(context, scopeOf(given) ?? "user").path)}\n`);
}

function scopeOf(given: Arguments): ConfigFile["scope"] | undefined {
  const [scope, other] = scopes.filter((name) => given.has(name));
  if (other !== undefined) throw usage("Choose one of --user, --project and --local.");
  return scope;
}

async function change(
  { path: file, below }: ConfigFile,
  next: (current: SettingsValues) => SettingsValues,
): Promise<void> {
  await nodeDisk.mkdir(dirname(file));
  await changeSettings(file, next, defined({ below }));
}

/** Throws for a key that no setting has, with the nearest one that exists. */
function requireKnown(key: string): void {
  const known = settingPaths();
  const [top = ""] = stepsOf(key);
  // Servers, hooks and feature flags have names of the user's own below them.
  const isOpen = known.includes(top) && !known.some((name) => name.startsWith(`${top}.`));
  if (known.includes(key) || isOpen) return;
  const close = nearest(key, known);
  throw usage(`There is no setting ${JSON.stringify(key)}.${close ? ` Did you mean ${close}?` : ""}`, LIST_HINT);
}

const LIST_HINT = "See docs/how-to/settings.md.";

/** Returns the first reading of the words that the schema accepts: JSON, text, or a list of texts. */
function chosenValue(key: string, words: readonly string[]): Json {
  const [only = ""] = words;
  const single = words.length === 1 ? [...parseValue(only), only] : [];
  const candidates: readonly Json[] = [...single, [...words]];
  const failures: string[] = [];
  for (const value of candidates) {
    const text = JSON.stringify(withValue({}, stepsOf(key), value));
    try {
      const { unknown } = parseSettings("settings.json", text);
      if (unknown.length === 0) return value;
      failures.push(unknown[0]?.message ?? "");
    } catch (error) {
      failures.push(error instanceof Error ? error.message : String(error));
    }
  }
  const why = failures[0]?.replace(/^settings\.json:\d+: /, "") ?? "";
  throw usage(`${key} cannot be ${JSON.stringify(words.join(" "))}. ${why}`, LIST_HINT);
}

function parseValue(text: string): Json[] {
  try {
    return [JSON.parse(text) as Json];
  } catch {
    return [];
  }
}

/** A project's file may only tighten, and holds where the folder is trusted. The loader says what it ignores. */
function sayConsequences({ scope, path: file }: ConfigFile, context: ConfigContext): void {
  if (scope === "user") return;
  const isTrusted = (folder: string): boolean => readTrust(context.home).of(folder).state !== "none";
  const { notices } = loadSettings({ stateRoot: context.home, cwd: context.cwd, gitRoot: context.root, isTrusted });
  for (const { message } of notices) if (message.includes(file)) printMessage(message);
}

function refuseToAgents({ environment }: ConfigContext): void {
  if (environment.TROUPE_SHELL === undefined) return;
  throw new TroupeError("failed", "A command of an agent cannot change settings.", {
    hint: "Run it in a terminal of your own.",
  });
}
