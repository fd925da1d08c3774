/**
 * Hooks: programs, URLs and functions of the user, a project or a plugin that run at fixed points and may answer.
 * `points.ts` lists the points. `load.ts` finds and reads configurations. `fire.ts` runs the hooks of a point in order
 * and merges their output by the rules of `merge.ts`.
 *
 * Three invariants:
 * - A hook never triggers hooks: it runs outside the loop, and nothing it does is a tool call.
 * - A hook can deny. A hook that is not a project's can also approve what would otherwise be asked. None overrides a
 *   rule, plan mode or the secret check.
 * - A hook fails as its definition says: deciding hooks closed, observing hooks open. Every failure is recorded.
 */
import type { Json } from "../lib/json.ts";
import type { Matcher } from "./matcher.ts";
import type { Dialect, HookPoint } from "./points.ts";

/** The origin of a hook, in the order in which hooks run. */
export const scopes = ["policy", "user", "project", "plugin", "program"] as const;
type HookScope = (typeof scopes)[number];

/** The party that controls the hook. Programs of a project are sandboxed, programs of the user are not. */
export type HookOwner = "user" | "project";

export interface HookOrigin {
  readonly scope: HookScope;
  /** The file it was read from, or the name of the program that registered it. */
  readonly file: string;
  readonly owner: HookOwner;
  /** Set for hooks of a plugin. */
  readonly plugin?: { readonly root: string; readonly data: string };
}

export interface HookDefinition {
  readonly point: HookPoint;
  /** The format of its input; follows from the spelling of its point. */
  readonly dialect: Dialect;
  /** `index` counts the hooks of one file. */
  readonly source: HookOrigin & { readonly index: number };
  /** Without a matcher it runs for everything. */
  readonly matcher?: Matcher;
  /** Effect of a crash, a timeout or unreadable output: continue (`open`) or refuse (`closed`). */
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
  /** The only hosts a project's hook can reach (default: none). Hooks of the user are not limited. */
  readonly hosts?: readonly string[];
}

export interface HttpRun {
  readonly type: "http";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The only variables that are expanded in the values of `headers`. */
  readonly allowedEnvVars: readonly string[];
}

/** Submitted as a prompt of the user at the start of a new interactive session. */
interface PromptRun {
  readonly type: "prompt";
  readonly prompt: string;
}

/** A hook of a program that embeds troupe. Its input is in the camel dialect; returning nothing means no opinion. */
export interface FunctionRun {
  readonly type: "function";
  run(input: Readonly<Record<string, Json>>, signal: AbortSignal): unknown;
}

/** The identity that the user trusts. A hook with another `value` is a different hook. */
interface PinnedHook {
  /** The position of the hook; stable as long as it stays in its file. */
  readonly id: string;
  /** One line for display; long text is cut. */
  readonly shown: string;
  /** The full definition for the trust question, one fact per line. */
  readonly whole: string;
  /** Everything that decides what the hook does. */
  readonly value: Json;
}

/** A part of a configuration that is not used, and the reason. */
export interface HookNotice {
  readonly file: string;
  readonly message: string;
}

export const DEFAULT_TIMEOUT_MS = 30_000;
export const MAX_TIMEOUT_MS = 600_000;
