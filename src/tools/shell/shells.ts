/**
 * The shells of a session: commands in the foreground, in the background and detached. This folder contains them and
 * their tools. Tools use the port `Shells`. Everything they start ends with the session, except detached commands.
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
  /** Output since the last read. */
  readonly output: string;
  /** A remark for the user about how it ran. */
  readonly warning?: string;
} & (
  | { readonly state: "exited"; readonly exitCode: number }
  | { readonly state: "running" }
  | { readonly state: "stopped" }
  | { readonly state: "detached"; readonly pid: number; readonly log: string }
);

export interface ShellRequest {
  readonly command: string;
  /** The caller's short description of its purpose. */
  readonly description?: string;
  /** The call it belongs to; file changes are stored under it. */
  readonly toolCallId?: string;
  /** True when the user agreed to run it without a sandbox. */
  readonly unsandboxed?: boolean;
  /** True to run it with a read-only workspace (default: true in plan mode). */
  readonly readOnly?: boolean;
  /** True to run it in a sandbox with a read-only workspace or not at all (default: as permitted). */
  readonly confined?: boolean;
  /** Set for this command alone. */
  readonly variables?: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Folders that a sandboxed command may change, as real paths; empty means only `cwd`. */
  readonly roots: readonly string[];
  /** Without an id the command gets its own shell that ends with it. */
  readonly shellId?: string;
  readonly mode: "sync" | "async" | "detached";
  /** Maximum wait for a sync command before it continues in the background. */
  readonly waitMs: number;
  /** Aborting it during the wait stops a sync command. */
  readonly signal: AbortSignal;
  /** Called with output while the caller waits, a few times a second. */
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
  /** From the request; empty when it had none. */
  readonly description: string;
  /** Undefined when a detached command was killed. */
  readonly exitCode?: number;
}

/** A command before it runs, or text before it is typed into one. */
export interface UpcomingCommand {
  readonly text: string;
  readonly cwd: string;
  readonly roots: readonly string[];
  readonly toolCallId: string;
}

/** The files stored before a command. */
export interface StoredFiles {
  /** To be shown: what could not be stored. */
  readonly notice?: string;
  /**
   * Call this when the command has ended. Changes made meanwhile are attributed to the command only if nothing else
   * could have changed files in that time.
   */
  settle(changedBy: "command" | "anyone"): Promise<void>;
}

/** Every method throws a `ToolError` for an unknown id, with what became of it. */
export interface Shells {
  run(request: ShellRequest): Promise<ShellReply>;
  read(request: ShellInput): Promise<ShellReply>;
  write(request: ShellInput & { readonly input: string }): Promise<ShellReply>;
  stop(shellId: string): Promise<ShellReply>;
  /**
   * Returns whether input of this call would run outside the sandbox. Only a call that asked for permission may type
   * there.
   */
  leavesSandbox(call: { readonly shellId: string; readonly toolCallId: string }): boolean;
  /** Call it when a request to the model is sent: prepares the start of a command while the model works. */
  expectCommand?(): void;
  list(): ShellSummary[];
  /** Returns background commands whose end was not reported yet, each only once. */
  takeFinished(): FinishedCommand[];
  /**
   * Notifies the listener when such a command ends, without marking it as reported. Returns a function that
   * unsubscribes.
   */
  onFinished(listener: (finished: FinishedCommand) => void): () => void;
  /** Ends everything except detached commands. */
  closeAll(): Promise<void>;
}

export interface ShellsOptions {
  /**
   * For records: pipes, logs and identities of commands. Created if missing. Commands must not be able to write it. So
   * it is never among the folders that a sandboxed command may change, whatever a request says.
   */
  readonly folder: string;
  /** Returns true for further paths that no command may change: the state of the program itself. */
  isState?(path: string): boolean;
  readonly sandbox: Sandbox;
  readonly stamp?: Stamp;
  readonly disk?: Disk;
  /** Children see only variables of an allow-list. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly additions?: EnvironmentAdditions;
  /** False: background commands use pipes instead of terminals. */
  readonly terminals?: boolean;
  readonly limits?: Partial<CommandLimits>;
  /**
   * Maximum total run time; a command that runs longer is ended, unless it is detached. By default background commands
   * run until the session ends.
   */
  readonly maxRunMs?: number;
  /** For a worktree of an agent, called before each command: see `SandboxRequest`. */
  gitMounts?(): Promise<readonly string[]>;
  /**
   * Stores files that the command may destroy; the command waits for it. Resolves to undefined when there is nothing to
   * store.
   */
  beforeRun?(command: UpcomingCommand): Promise<StoredFiles | undefined>;
  /** Throws if no program may start any more. Called immediately before the start of each. */
  assertMayStart?(): void;
  /** Returns a filter that removes secrets from output stored in files; one for each file. */
  newCleaner?(): HeldText;
  /** Called with warnings for the user: no sandbox, something undone. */
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
