/** One entry of a hook configuration: its schema, and the definition built from it. */
import * as z from "zod";
import { HOST_NOTATION, hostRule, MAX_PROGRAM_HOSTS, NO_NETWORK } from "../lib/host-rule.ts";
import type { Json } from "../lib/json.ts";
import { steersLauncher } from "../lib/node/child-environment.ts";
import { shownFacts } from "../lib/pinned-item.ts";
import { clip, plural, sanitise } from "../lib/text.ts";
import {
  type CommandRun,
  DEFAULT_TIMEOUT_MS,
  type HookDefinition,
  type HookOrigin,
  type HookRun,
  MAX_TIMEOUT_MS,
} from "./hooks.ts";
import { parseMatcher } from "./matcher.ts";
import { canRefuse, type Dialect, type HookPoint, isAuthorising } from "./points.ts";
import { type HookVariables, urlProblem } from "./url-rules.ts";

/** The context of an entry that is known before it is parsed. */
export interface EntryContext {
  readonly point: HookPoint;
  readonly dialect: Dialect;
  readonly origin: HookOrigin;
  /** The variables that allow exceptions for addresses. */
  readonly environment: HookVariables;
  readonly platform: NodeJS.Platform;
}

const MAX_COMMAND_CHARACTERS = 64 * 1024;
const MAX_LIST = 256;

const command = z.string().min(1).max(MAX_COMMAND_CHARACTERS).refine(hasNoNul, "must not hold a NUL");
const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, "must be the name of a variable");
const host = z.string().refine((text) => hostRule(text) !== undefined, HOST_NOTATION);
const seconds = z.number().positive().exactOptional();

const common = {
  matcher: z.string().exactOptional(),
  timeoutSec: seconds,
  timeout: seconds,
  onFailure: z.enum(["open", "closed"]).exactOptional(),
};

const Command = z.lazy(() =>
  z.object({
    type: z.literal("command").default("command"),
    bash: command.exactOptional(),
    powershell: command.exactOptional(),
    command: command.exactOptional(),
    exec: command.exactOptional(),
    args: z.array(z.string().max(MAX_COMMAND_CHARACTERS).refine(hasNoNul)).max(MAX_LIST).exactOptional(),
    cwd: z.string().min(1).max(4096).refine(hasNoNul).exactOptional(),
    env: z.record(variable, z.string().max(MAX_COMMAND_CHARACTERS).refine(hasNoNul)).exactOptional(),
    hosts: z.array(host).max(MAX_PROGRAM_HOSTS).exactOptional(),
    ...common,
  }),
);

const Http = z.lazy(() =>
  z.object({
    type: z.literal("http"),
    url: z.string().min(1).max(4096),
    headers: z.record(z.string().min(1).max(256), z.string().max(8192)).exactOptional(),
    allowedEnvVars: z.array(variable).max(MAX_LIST).exactOptional(),
    ...common,
  }),
);

const Prompt = z.lazy(() =>
  z.object({ type: z.literal("prompt"), prompt: z.string().trim().min(1).max(MAX_COMMAND_CHARACTERS), ...common }),
);

/** The schemas of an entry, by its `type`. */
export const entrySchemas = { command: Command, http: Http, prompt: Prompt };

/** Throws an error whose message is written to follow the position of the entry. */
export function parseEntry(value: Record<string, unknown>, context: EntryContext, index: number): HookDefinition {
  const entry = parseByType(value);
  const { point, dialect, origin } = context;
  const run = runOf(entry, context);
  const matcher = entry.matcher === undefined ? undefined : parseMatcher(entry.matcher, context);
  const onFailure = entry.onFailure ?? (isAuthorising(point) ? "closed" : "open");
  if (onFailure === "closed" && !canRefuse(point))
    throw new Error(`onFailure "closed" has no effect on ${point}, which cannot refuse anything`);
  const timeoutMs = Math.min(MAX_TIMEOUT_MS, (entry.timeoutSec ?? entry.timeout ?? 0) * 1000 || DEFAULT_TIMEOUT_MS);
  const unpinned = { point, dialect, source: { ...origin, index }, onFailure, timeoutMs, run };
  const definition = matcher === undefined ? unpinned : { ...unpinned, matcher };
  return { ...definition, pinned: pin(definition) };
}

type Entry = z.infer<typeof Command> | z.infer<typeof Http> | z.infer<typeof Prompt>;

function parseByType(value: Record<string, unknown>): Entry {
  const schema = value.type === "http" ? Http : value.type === "prompt" ? Prompt : Command;
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new Error(`${issue?.path.join(".") || "the entry"}: ${issue?.message ?? "not as expected"}`);
}

function runOf(entry: Entry, context: EntryContext): HookRun {
  switch (entry.type) {
    case "http": {
      const run = {
        type: "http" as const,
        url: entry.url,
        headers: entry.headers ?? {},
        allowedEnvVars: entry.allowedEnvVars ?? [],
      };
      const problem = urlProblem(run, {
        point: context.point,
        owner: context.origin.owner,
        environment: context.environment,
      });
      if (problem !== undefined) throw new Error(problem);
      return run;
    }
    case "prompt":
      if (context.point !== "sessionStart") throw new Error("a prompt is only possible at sessionStart");
      return { type: "prompt", prompt: entry.prompt };
    default:
      return commandOf(entry, context);
  }
}

function commandOf(entry: z.infer<typeof Command>, { origin, platform }: EntryContext): CommandRun {
  const { bash, powershell, command: either, exec, args, cwd, env = {}, hosts } = entry;
  const loader = Object.keys(env).find(steersLauncher);
  if (loader !== undefined && origin.owner === "project")
    throw new Error(`env.${loader}: a project's hook cannot set variables that the program loader reads`);
  const rest = { env, ...(cwd === undefined ? {} : { cwd }), ...(hosts === undefined ? {} : { hosts }) };
  if (exec !== undefined) {
    if (bash ?? powershell ?? either) throw new Error("exec cannot be combined with bash, powershell or command");
    return { type: "command", start: { type: "program", program: exec, arguments: args ?? [] }, ...rest };
  }
  if (args !== undefined) throw new Error("args needs exec");
  if ((bash ?? powershell ?? either) === undefined) throw new Error("it has no bash, powershell, command or exec");
  const shell = platform === "win32" ? "powershell" : "bash";
  const text = (shell === "bash" ? bash : powershell) ?? either;
  if (text === undefined) throw new Error(`it has no command for this system; give ${shell} or command`);
  return { type: "command", start: { type: "shell", shell, text }, ...rest };
}

function hasNoNul(text: string): boolean {
  return !text.includes("\0");
}

/**
 * Returns the trusted identity of a hook. `value` holds everything that decides what the hook does. The file it is in
 * belongs to `id`, not to `value`.
 */
export function pin(definition: Omit<HookDefinition, "pinned">): HookDefinition["pinned"] {
  const { point, dialect, source, matcher, onFailure, timeoutMs, run } = definition;
  const value: Json = {
    point,
    dialect,
    matcher: matcher?.text ?? null,
    onFailure,
    timeoutMs,
    run: run.type === "function" ? { type: "function" } : JSON.parse(JSON.stringify(run)),
  };
  const when = matcher === undefined ? point : `${point} (${matcher.text})`;
  return {
    id: `hook:${source.file}#${source.index}`,
    shown: `${sanitise(when)}: ${clip(sanitise(describe(run)).replace(/\s+/g, " "), 400)}`,
    whole: shownFacts([`runs at: ${when}`, ...wholeRun(definition)]),
    value,
  };
}

/**
 * Returns the full definition for the user who decides whether to trust it, one fact per line. The command and what it
 * can reach come first; nothing is cut.
 */
function wholeRun({ run, onFailure, timeoutMs }: Pick<HookDefinition, "run" | "onFailure" | "timeoutMs">): string[] {
  const rest = [`limits: ${timeoutMs / 1000} s; when it fails: ${onFailure === "open" ? "continue" : "refuse"}`];
  switch (run.type) {
    case "command": {
      const { start, env } = run;
      return [
        ...(start.type === "shell"
          ? [`command for ${start.shell}: ${start.text}`]
          : [`program: ${start.program}`, ...start.arguments.map((word) => `argument: ${word}`)]),
        `hosts: ${run.hosts?.join(", ") || NO_NETWORK}`,
        `variables: ${Object.keys(env).join(", ") || "none of its own"}`,
        ...(run.cwd === undefined ? [] : [`in: ${run.cwd}`]),
        ...Object.entries(env).map(([name, value]) => `variable ${name}: ${value}`),
        ...rest,
      ];
    }
    case "http":
      return [
        `address: POST ${run.url}`,
        `your variables that are sent to it: ${run.allowedEnvVars.join(", ") || "none"}`,
        ...Object.entries(run.headers).map(([name, value]) => `header ${name}: ${value}`),
        ...rest,
      ];
    default:
      return [describe(run)];
  }
}

function describe(run: HookRun): string {
  switch (run.type) {
    case "command":
      return run.start.type === "shell" ? run.start.text : [run.start.program, ...run.start.arguments].join(" ");
    case "http": {
      const names = run.allowedEnvVars;
      return names.length === 0
        ? `POST ${run.url}`
        : `POST ${run.url} with ${plural(names.length, "variable")}: ${names.join(", ")}`;
    }
    case "prompt":
      return `says "${run.prompt}"`;
    case "function":
      return "a function of the program";
  }
}
