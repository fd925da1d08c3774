/**
 * How components that start programs (hooks, MCP servers) start them safely. The composition root decides about
 * sandbox, environment and limits; the component spawns the result.
 */
export interface ProgramRequest {
  readonly program: string;
  readonly arguments: readonly string[];
  readonly cwd: string;
  /** The whole environment of the program, apart from what the profile itself needs. */
  readonly environment: Readonly<Record<string, string>>;
  /** The configuration that decided what runs. A project's programs are sandboxed, the user's own are not. */
  readonly scope: "user" | "project";
  /** Files and folders it needs, which the sandbox would hide if they are installed in a temporary folder. */
  readonly readable?: readonly string[];
  /**
   * All hosts that a project's program can reach, in the notation of `host-rule.ts`. The user's own programs are not
   * limited.
   */
  readonly hosts: readonly string[];
}

export interface PreparedProgram {
  readonly program: string;
  readonly arguments: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Set if it will run with less isolation than requested. Must be shown. */
  readonly warning?: string;
  /** Call it when the program runs, in its own process group. The program then also ends if we are killed. */
  started?(pid: number): void;
  /** Call it once, when the program has ended or could not be started. */
  release(): Promise<void>;
}

/** Rejects if the program must not run without a sandbox and there is none. Spawn the result without a shell. */
export type PrepareProgram = (request: ProgramRequest) => Promise<PreparedProgram>;
