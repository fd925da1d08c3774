import type { Runtime } from "../../runtime/runtime.ts";
import type { Launcher } from "../launcher.ts";

/** The result of one check. */
export interface Finding {
  /** Stable, for programs: `state.permissions`. */
  readonly id: string;
  readonly status: "ok" | "warning" | "problem";
  readonly summary: string;
  /** Advice for the user. */
  readonly remedy?: string;
  /** Repairs it without losing anything, and returns what was done. */
  readonly fix?: () => Promise<string>;
}

/** Everything that checks look at. */
export interface CheckContext {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** The root of the repository, else `cwd`. */
  readonly root: string;
  readonly home: string;
  readonly runtime: Runtime;
  readonly launcher: Launcher;
  /** Whether requests that cost money may be sent. Asked at most once. */
  isOnline(providers: readonly string[]): Promise<boolean>;
}

export type Check = (context: CheckContext) => Promise<readonly Finding[]>;

export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
