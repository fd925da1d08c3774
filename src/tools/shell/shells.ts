/**
 * The shells of a session: commands that run now, that run in the background, that outlive us. A tool reaches them
 * through the port `Shells`; everything they start ends with the session, except what was detached.
 */
import * as z from "zod";
import type { EnvironmentAdditions } from "../../lib/node/child-environment.ts";
import type { Disk } from "../../lib/node/disk.ts";
import type { HeldText } from "../../lib/redact/redact-stream.ts";
import type { Stamp } from "../../lib/stamp.ts";
import { ToolError } from "../tool-error.ts";
import type { CommandLimits } from "./process/limits.ts";
import type { Sandbox } from "./sandbox/sandbox.ts";

export type ShellReply = {
  readonly shellId: string;
  /** What was printed since someone last looked. */
  readonly output: string;
  /** To be shown to people: something about how it ran that they should know. */
  readonly warning?: string;
} & (
  | { readonly state: "exited"; readonly exitCode: number }
  | { readonly state: "running" }
  | { readonly state: "stopped" }
  | { readonly state: "detached"; readonly pid: number; readonly log: string }
);

export interface ShellRequest {
  readonly command: string;
  /** What it is for, in a few words of whoever asked. */
  readonly description?: string;
  /** The call it belongs to; changes are kept under it. */
  readonly toolCallId?: string;
  /** A person has agreed that it runs without a sandbox. */
  readonly unsandboxed?: boolean;
  /** The sandbox shows it a workspace that it cannot change. Unless told, true while the session plans. */
  readonly readOnly?: boolean;
  /** True: it runs in a sandbox with a workspace that it cannot change, or not at all. Unless told, as it was permitted. */
  readonly confined?: boolean;
  /** Set for this command alone. */
  readonly variables?: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** What a sandboxed command may change, as real paths; empty means only `cwd`. */
  readonly roots: readonly string[];
  /** Left out, the command gets a shell of its own that ends with it. */
  readonly shellId?: string;
  readonly mode: "sync" | "async" | "detached";
  /** How long a sync command may keep the caller waiting before it goes on in the background. */
  readonly waitMs: number;
  /** Aborted while it waits, a sync command is stopped. */
  readonly signal: AbortSignal;
  /** What it prints while the caller waits, a few times a second. */
  onOutput?(text: string): void;
}

export interface ShellInput {
  readonly shellId: string;
  readonly toolCallId?: string;
  readonly waitMs: number;
  readonly signal: AbortSignal;
}

export interface ShellSummary {
  readonly shellId: string;
  readonly command: string;
  readonly mode: "attached" | "detached";
  readonly pid: number;
  readonly state: "running" | "idle" | "exited";
  readonly exitCode?: number;
  readonly unread: boolean;
}

export interface FinishedCommand {
  readonly shellId: string;
  readonly mode: "attached" | "detached";
  readonly command: string;
  /** As the request had it; empty when it had none. */
  readonly description: string;
  /** Unknown when a detached command was killed. */
  readonly exitCode?: number;
}

/** A command that is about to run, or what is about to be typed into one. */
export interface ComingCommand {
  readonly text: string;
  readonly cwd: string;
  readonly roots: readonly string[];
  readonly toolCallId: string;
}

/** What was kept of the files before a command. */
export interface KeptFiles {
  /** To be shown: what could not be kept. */
  readonly notice?: string;
  /**
   * To be called when the command has ended. What has changed meanwhile is its work only if nobody else could have
   * worked in that time.
   */
  settle(changedBy: "command" | "anyone"): Promise<void>;
}

/** Every method throws a `ToolError` for an id it does not know, which says what has become of it. */
export interface Shells {
  run(request: ShellRequest): Promise<ShellReply>;
  read(request: ShellInput): Promise<ShellReply>;
  write(request: ShellInput & { readonly input: string }): Promise<ShellReply>;
  stop(shellId: string): Promise<ShellReply>;
  /** Whether what this call types would run outside the sandbox. Only a call that has asked may type there. */
  leavesSandbox(call: { readonly shellId: string; readonly toolCallId: string }): boolean;
  list(): ShellSummary[];
  /** Commands that ended in the background and whose end nobody has been told yet; each only once. */
  takeFinished(): FinishedCommand[];
  /** Calls when such a command has ended, and leaves it to `takeFinished`. Returns how to stop that. */
  onFinished(listener: (finished: FinishedCommand) => void): () => void;
  /** Ends everything but what is detached. */
  closeAll(): Promise<void>;
}

export interface ShellsOptions {
  /**
   * For records: pipes, logs and identities of commands. Created if missing. Commands must not be able to write it, so
   * it is never among the folders that a sandboxed command may change, whatever a request says.
   */
  readonly folder: string;
  /** True for further paths that no command may change: the state of the program itself. */
  isState?(path: string): boolean;
  readonly sandbox: Sandbox;
  readonly stamp?: Stamp;
  readonly disk?: Disk;
  /** What children may see of it is decided by an allow-list. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly additions?: EnvironmentAdditions;
  /** False keeps background commands on pipes. */
  readonly terminals?: boolean;
  readonly limits?: Partial<CommandLimits>;
  /**
   * How long a command may run in all, detached ones apart; one that runs longer is ended. Unless told, commands in the
   * background end with the session.
   */
  readonly maxRunMs?: number;
  /** For a work tree of an agent, asked before each command: see `SandboxRequest`. */
  gitMounts?(): Promise<readonly string[]>;
  /** Keeps what the command may destroy; the command waits for it. Undefined when there is nothing to keep. */
  beforeRun?(command: ComingCommand): Promise<KeptFiles | undefined>;
  /** Takes secrets out of output that is kept in files, one for each. */
  newCleaner?(): HeldText;
  /** Something people should see: no sandbox, something undone. */
  onWarning?(message: string): void;
}

export function shellsOf(context: { readonly shells?: Shells; partialResult?(text: string): void }): Shells {
  if (context.shells === undefined) throw new ToolError("This session has no shell.");
  return context.shells;
}

export function partialResult(
  context: { readonly shells?: Shells; partialResult?(text: string): void },
  text: string,
): void {
  context.partialResult?.(text);
}

const MAX_DELAY_SECONDS = 300;
export const delaySeconds = () => z.number().min(0).max(MAX_DELAY_SECONDS).default(1).describe("Seconds to wait");
export const waitTimeoutMs = (MAX_DELAY_SECONDS + 10) * 1000;
