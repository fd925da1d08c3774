import { defined } from "../../lib/defined.ts";
import { nearest, plural, sanitise } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { type Arguments, unknownSubcommand, usage, wantsJson } from "../args.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import type { Launcher } from "../launcher.ts";
import { jsonList, write } from "../output/output.ts";
import { printMessage } from "../output/print-message.ts";
import { onInterrupt } from "../signals.ts";

/** The parts of the runtime that the command needs. */
export interface McpCommands {
  readonly file: string;
  list(): Promise<readonly ServerView[]>;
  notices(): readonly string[];
  add(name: string, entry: object): Promise<void>;
  /** Returns false if the server is not one of the user's own. */
  remove(name: string): Promise<boolean>;
  setEnabled(name: string, enabled: boolean): Promise<void>;
  check(name: string): Promise<{ readonly status: string; readonly error?: string }>;
  review(name: string): Promise<Review>;
  login(name: string, options: LoginOptions): Promise<"signed-in" | "not-needed">;
  logout(name: string): Promise<boolean>;
}

interface ServerView {
  readonly name: string;
  readonly scope: string;
  readonly source: string;
  readonly transport: string;
  readonly state: "enabled" | "disabled" | "untrusted" | "new" | "changed";
  readonly shown: string;
  readonly settings: Readonly<Record<string, unknown>>;
  readonly signedIn?: boolean;
  readonly summary?: string;
  readonly tools: readonly { readonly name: string; readonly state: "ok" | "changed" | "new" }[];
}

interface Review {
  readonly entry?: string;
  readonly tools: readonly string[];
  agree(): Promise<void>;
}

interface LoginOptions {
  readonly onAuthorize: (url: URL) => void;
  readonly signal: AbortSignal;
  readonly clientSecret?: string;
}

export interface McpContext {
  readonly administration: McpCommands;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  print(text: string): void;
  /** Writes one line for the user, separate from the result. */
  say(text: string): void;
}

/** Runs `troupe mcp` in the working folder. `serve` has a file of its own. */
export async function runMcp(given: Arguments, launcher: Launcher): Promise<ExitCode> {
  if (given.words[1] === "serve") return (await import("./mcp-serve.ts")).mcpServeCommand(given, launcher);
  const { openMcpAdministration } = await import("../../runtime/mcp/mcp-admin.ts");
  const environment = process.env;
  const { administration, close } = await openMcpAdministration({ cwd: process.cwd(), environment });
  const stop = new AbortController();
  const removeInterrupt = onInterrupt(() => stop.abort());
  const printed: Promise<void>[] = [];
  const isData = wantsJson(given) && !process.stdout.isTTY;
  const print = (text: string): void => void printed.push(write(isData ? text : sanitise(text)));
  try {
    return await mcpCommand(given, { administration, environment, signal: stop.signal, print, say: printMessage });
  } finally {
    await Promise.all(printed);
    removeInterrupt();
    await close();
  }
}

/** `troupe mcp`: lists the servers and changes the user's decisions about them. */
export async function mcpCommand(given: Arguments, around: McpContext): Promise<ExitCode> {
  const [, verb = "list", name = "", ...rest] = given.words;
  const run = Object.hasOwn(verbs, verb) ? verbs[verb] : undefined;
  if (!run) throw unknownSubcommand("mcp", verb, [...Object.keys(verbs), "serve"]);
  if (verb !== "list" && name === "") throw usage(`troupe mcp ${verb} needs the name of a server.`);
  if (verb !== "add" && rest.length > 0) throw usage(`troupe mcp ${verb} takes one name, not ${rest.length + 1}.`);
  await run({ given, name, rest, around });
  for (const notice of around.administration.notices()) around.say(notice);
  return exitCodes.done;
}

interface Call {
  readonly given: Arguments;
  readonly name: string;
  readonly rest: readonly string[];
  readonly around: McpContext;
}

const verbs: Readonly<Record<string, (call: Call) => Promise<void>>> = {
  list,
  get,
  add,
  remove,
  enable: (call) => setEnabled(call, true),
  disable: (call) => setEnabled(call, false),
  approve,
  login,
  logout,
};

async function list({ given, around }: Call): Promise<void> {
  const { administration, print } = around;
  const views = await administration.list();
  const rows = await Promise.all(views.map((view) => checkServer(view, given, administration)));
  if (wantsJson(given)) return print(jsonList(rows));
  if (rows.length === 0) return print("No MCP servers. Add one with: troupe mcp add <name> -- <command>\n");
  const cells = rows.map((row) => [row.name, row.scope, row.transport, statusOf(row), row.summary ?? "", row.shown]);
  const widths = [0, 1, 2, 3, 4].map((column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  const lines = cells.map((row) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "));
  print(sanitise(`${lines.map((line) => line.trimEnd()).join("\n")}\n`));
}

async function get({ given, name, around }: Call): Promise<void> {
  const { administration, print } = around;
  const view = await checkServer(await find(name, administration), given, administration);
  print(wantsJson(given) ? `${JSON.stringify(view, undefined, 2)}\n` : serverText(view));
  if (view.status === undefined || view.status === "connected") return;
  throw new TroupeError("failed", `There is no connection to ${name}: ${view.error ?? view.status}`);
}

function serverText(view: CheckedView): string {
  const tools = view.tools.map((tool) => `  ${tool.name}${tool.state === "ok" ? "" : ` (${marks[tool.state]})`}`);
  const lines = [
    `${view.name}: ${statusOf(view)}`,
    `  from ${view.source} (${view.scope})`,
    `  transport: ${view.transport}`,
    ...Object.entries(view.settings).map(([key, value]) => `  ${key}: ${shownSetting(value)}`),
    ...(tools.length > 0 ? [`tools, as last listed (${view.summary}):`, ...tools] : []),
  ];
  return sanitise(`${lines.join("\n")}\n`);
}

const marks = { changed: "changed since it was approved: blocked", new: "not approved yet" };

async function add({ given, name, rest, around }: Call): Promise<void> {
  const { administration, print } = around;
  await administration.add(name, entryOf(given, rest));
  print(sanitise(`Added ${name} to ${administration.file}.\n`));
  if (given.has("connect")) await approve({ given, name, rest: [], around });
}

function entryOf(given: Arguments, rest: readonly string[]): object {
  const [first = "", ...more] = rest;
  if (first === "") throw usage("troupe mcp add needs a command or a url: troupe mcp add <name> -- <command>.");
  const wanted = given.choice("transport", ["stdio", "http", "sse"]);
  const isUrl = /^https?:\/\//i.test(first);
  const [, scheme] = /^([a-z][a-z0-9+.-]*):\/\//i.exec(first) ?? [];
  if (scheme !== undefined && !isUrl)
    throw usage(`A url of a server begins with http:// or https://, not ${scheme}://.`);
  const transport = wanted ?? (isUrl ? "http" : "stdio");
  const names = given
    .text("tools")
    ?.split(",")
    .map((tool) => tool.trim())
    .filter(Boolean);
  const timeout = given.amount("timeout", "whole");
  const common = defined({ tools: names, timeout });
  const variables = pairs(given.list("env"), "=", "--env NAME=value");
  const headers = pairs(given.list("header"), ":", '--header "Name: value"');
  if (transport === "stdio") {
    if (isUrl && wanted === undefined) throw usage("A server with a URL needs --transport http or sse, not stdio.");
    if (headers) throw usage("--header is for a url; a command takes --env.");
    return { type: "stdio", command: first, args: more, ...defined({ env: variables }), ...common };
  }
  if (more.length > 0) throw usage(`A url takes no arguments, and there is "${more[0]}".`);
  if (variables) throw usage("--env is for a command; a url takes --header.");
  return { type: transport, url: first, ...defined({ headers }), ...common };
}

/** Throws without quoting the value, which may be a secret. */
function pairs(given: readonly string[], separator: string, shape: string): Record<string, string> | undefined {
  if (given.length === 0) return undefined;
  return Object.fromEntries(
    given.map((pair) => {
      const at = pair.indexOf(separator);
      if (at < 1) throw usage(`A value is not of the form ${shape}.`);
      const value = pair.slice(at + 1);
      return [pair.slice(0, at).trim(), separator === ":" ? value.trim() : value];
    }),
  );
}

async function remove({ name, around }: Call): Promise<void> {
  const { administration, print } = around;
  const view = await find(name, administration);
  if (!(await administration.remove(name))) {
    throw new TroupeError("usage", `${name} is not one of your own servers: it is configured in ${view.source}.`, {
      hint: `Remove it there, or turn it off: troupe mcp disable ${name}.`,
    });
  }
  print(`Removed ${name}.\n`);
}

async function setEnabled({ name, around }: Call, enabled: boolean): Promise<void> {
  const { administration, print } = around;
  await find(name, administration);
  await administration.setEnabled(name, enabled);
  const { state } = await find(name, administration);
  if (enabled && state === "disabled")
    throw new TroupeError("failed", `${name} is still disabled, by settings or by the file that configures it.`);
  print(`${enabled ? "Enabled" : "Disabled"} ${name}.\n`);
}

async function approve({ name, around }: Call): Promise<void> {
  const { administration, print } = around;
  await find(name, administration);
  const { entry, tools, agree } = await administration.review(name);
  if (entry !== undefined) print(`The server uses:\n${entry}\n`);
  for (const tool of tools) print(`\n${tool}\n`);
  await agree();
  const agreed = [
    ...(entry === undefined ? [] : ["the server"]),
    ...(tools.length > 0 ? [plural(tools.length, "tool")] : []),
  ];
  if (agreed.length === 0) print(`Nothing of ${name} waits for approval.\n`);
  else print(`\nApproved ${agreed.join(" and ")} of ${name}, as shown.\n`);
}

async function login({ name, around }: Call): Promise<void> {
  const { administration, environment, print, signal } = around;
  await find(name, administration);
  const clientSecret = environment.TROUPE_MCP_CLIENT_SECRET;
  const result = await administration.login(name, {
    signal,
    onAuthorize: (url) => print(`Open this address to sign in to ${name}:\n\n  ${url.href}\n\n`),
    ...(clientSecret && { clientSecret }),
  });
  print(result === "signed-in" ? `Signed in to ${name}.\n` : `${name} needs no sign-in.\n`);
}

async function logout({ name, around }: Call): Promise<void> {
  const { administration, print } = around;
  await find(name, administration);
  const was = await administration.logout(name);
  print(was ? `Forgot the sign-in to ${name}.\n` : `There was no sign-in to ${name}.\n`);
}

async function find(name: string, administration: McpCommands): Promise<ServerView> {
  const views = await administration.list();
  const view = views.find((one) => one.name === name);
  if (view) return view;
  const close = nearest(
    name,
    views.map((one) => one.name),
  );
  throw new TroupeError("usage", `There is no MCP server ${JSON.stringify(name)}.`, {
    hint: close ? `Did you mean ${close}?` : "See troupe mcp list.",
  });
}

type CheckedView = ServerView & { readonly status?: string; readonly error?: string };

async function checkServer(
  view: ServerView,
  given: Arguments,
  { check, list: all }: McpCommands,
): Promise<CheckedView> {
  if (!given.has("connect") || view.state !== "enabled") return view;
  const { status, error } = await check(view.name);
  const now = (await all()).find(({ name }) => name === view.name) ?? view;
  return { ...now, status, ...defined({ error }) };
}

const states = {
  enabled: "enabled",
  disabled: "disabled",
  untrusted: "folder not trusted",
  new: "not approved",
  changed: "changed since it was approved",
};

function statusOf({ state, status, error, signedIn }: CheckedView): string {
  if (status !== undefined) return error === undefined ? status : `${status}: ${error}`;
  return state === "enabled" && signedIn ? "enabled, signed in" : states[state];
}

function shownSetting(value: unknown): string {
  if (Array.isArray(value)) return value.map(String).join(" ");
  if (typeof value !== "object" || value === null) return String(value);
  return Object.entries(value)
    .map(([key, inner]) => `${key}=${String(inner)}`)
    .join(" ");
}
