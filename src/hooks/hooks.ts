/**
 * Hooks: programs, addresses and functions of the user, a project or a plugin that are told when something happens, and
 * may say something about it. `points.ts` lists the moments; `load.ts` finds and reads configurations; `fire.ts` runs
 * the hooks of a moment in order and merges what they say by the rules of `merge.ts`.
 *
 * Three things hold everywhere. A hook never triggers hooks: it is started outside of the loop, and nothing it does is
 * a call of a tool. A hook that decides can only tighten: an `allow` is an opinion, which no rule gives way to. And a
 * hook fails the way its definition says: deciding ones closed, observing ones open, and every failure is recorded.
 */
import type { Json } from "../lib/json.ts";
import type { Matcher } from "./matcher.ts";
import type { Dialect, HookPoint } from "./points.ts";

/** Where a hook comes from, in the order in which hooks run. */
export const scopes = ["policy", "user", "project", "plugin", "program"] as const;
type HookScope = (typeof scopes)[number];

/** Whose words decide what runs: a project's programs are contained, a person's own are not. */
export type HookOwner = "user" | "project";

export interface HookOrigin {
  readonly scope: HookScope;
  /** The file it was read from, or the name of the program that brought it. */
  readonly file: string;
  readonly owner: HookOwner;
  /** Set for hooks of a plugin. */
  readonly plugin?: { readonly root: string; readonly data: string };
}

export interface HookDefinition {
  readonly point: HookPoint;
  /** How it is spoken to; follows from how its point was spelled. */
  readonly dialect: Dialect;
  /** `index` counts the hooks of one file. */
  readonly source: HookOrigin & { readonly index: number };
  /** Left out, it runs for everything. */
  readonly matcher?: Matcher;
  /** What a crash, a time-out or an answer that cannot be read means: go on, or refuse. */
  readonly onFailure: "open" | "closed";
  readonly timeoutMs: number;
  readonly run: HookRun;
  readonly pinned: PinnedHook;
}

export type HookRun = CommandRun | HttpRun | PromptRun | FunctionRun;

export interface CommandRun {
  readonly type: "command";
  readonly start:
    | { readonly type: "shell"; readonly shell: "bash" | "powershell"; readonly text: string }
    | { readonly type: "program"; readonly program: string; readonly arguments: readonly string[] };
  readonly cwd?: string;
  readonly env: Readonly<Record<string, string>>;
  /** All that a project's hook can reach; none if left out. A person's own is not limited. */
  readonly hosts?: readonly string[];
}

export interface HttpRun {
  readonly type: "http";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Names that may be expanded in the values of `headers`, and no others. */
  readonly allowedEnvVars: readonly string[];
}

/** Said to the model as if the user had typed it, at the start of a new interactive session. */
interface PromptRun {
  readonly type: "prompt";
  readonly prompt: string;
}

/** A hook of a program that embeds troupe. It gets its input in the camel dialect; nothing returned = no opinion. */
export interface FunctionRun {
  readonly type: "function";
  run(input: Readonly<Record<string, Json>>, signal: AbortSignal): unknown;
}

/** What someone who trusts a hook agrees to: any change of `value` is another hook. */
interface PinnedHook {
  /** The place of the hook, the same as long as it stays in its file. */
  readonly id: string;
  /** One line for people, cut where it gets long. */
  readonly shown: string;
  /** The whole definition for the person who is asked to trust it, one fact a line. */
  readonly whole: string;
  /** Everything that decides what it does. */
  readonly value: Json;
}

/** Something in a configuration that is not used, and why. */
export interface HookNotice {
  readonly file: string;
  readonly message: string;
}

export const DEFAULT_TIMEOUT_MS = 30_000;
export const MAX_TIMEOUT_MS = 600_000;
