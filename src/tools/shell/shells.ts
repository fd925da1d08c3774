/**
 * The shells of a session: commands that run now, that run in the background, that outlive us. A tool reaches them
 * through the port `Shells`; everything they start ends with the session, except what was detached.
 */
import * as z from "zod";
import type { EnvironmentAdditions } from "../../lib/node/child-environment.ts";
import type { Disk } from "../../lib/node/disk.ts";
import type { Stamp } from "../../lib/stamp.ts";
import { type ToolContext, ToolError } from "../tool.ts";
import type { Sandbox } from "./sandbox.ts";

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
  readonly command: string;
  readonly exitCode: number;
}

/** Every method throws a `ToolError` for an id it does not know, which says what has become of it. */
export interface Shells {
  run(request: ShellRequest): Promise<ShellReply>;
  read(request: ShellInput): Promise<ShellReply>;
  write(request: ShellInput & { readonly input: string }): Promise<ShellReply>;
  stop(shellId: string): Promise<ShellReply>;
  list(): ShellSummary[];
  /** Commands that ended in the background and whose end nobody has been told yet; each only once. */
  takeFinished(): FinishedCommand[];
  /** Ends everything but what is detached. */
  closeAll(): Promise<void>;
}

export interface ShellsOptions {
  /** The session's folder for files; made if missing. */
  readonly folder: string;
  readonly sandbox: Sandbox;
  readonly stamp?: Stamp;
  readonly disk?: Disk;
  /** What children may see of it is decided by an allow-list. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly additions?: EnvironmentAdditions;
  /** False keeps background commands on pipes. */
  readonly terminals?: boolean;
  /** Called when a background command has ended. */
  onFinished?(finished: FinishedCommand): void;
  /** Something people should see: no sandbox, something undone. */
  onWarning?(message: string): void;
}

/** What the shell tools need of a context beyond what every tool has. */
interface ShellToolContext extends ToolContext {
  readonly shells?: Shells;
  /** Shown to whoever watches, as the tool's output so far; not kept. */
  partialResult?(text: string): void;
}

export function shellsOf(context: ShellToolContext): Shells {
  if (context.shells === undefined) throw new ToolError("This session has no shell.");
  return context.shells;
}

export function partialResult(context: ShellToolContext, text: string): void {
  context.partialResult?.(text);
}

const MAX_DELAY_SECONDS = 300;
export const delaySeconds = z.number().min(0).max(MAX_DELAY_SECONDS).default(1).describe("Seconds to wait");
export const waitTimeoutMs = (MAX_DELAY_SECONDS + 10) * 1000;
