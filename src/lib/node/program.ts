/**
 * How parts that start programs (hooks, MCP servers) get them started safely: whoever puts the parts together decides
 * about sandbox, environment and limits; the part spawns what it is given back.
 */
export interface ProgramRequest {
  readonly program: string;
  readonly arguments: readonly string[];
  readonly cwd: string;
  /** All the program gets to see, apart from what the profile itself needs. */
  readonly environment: Readonly<Record<string, string>>;
  /** Whose words decided what runs: a project's programs are contained, a person's own are not. */
  readonly scope: "user" | "project";
  /** Files and folders it needs, which the sandbox would hide if they are installed in a temporary folder. */
  readonly readable?: readonly string[];
  /** All that a project's program can reach, in the notation of `host-rule.ts`; a person's own is not limited. */
  readonly hosts: readonly string[];
}

export interface PreparedProgram {
  readonly program: string;
  readonly arguments: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Set when it will run less contained than asked for; to be shown. */
  readonly warning?: string;
  /** To be called when it runs, in a process group of its own: then it ends also when we are killed. */
  started?(pid: number): void;
  /** To be called once, when the program has ended or could not be started. */
  release(): Promise<void>;
}

/** Rejects when the program must not run without containment and there is none. Spawn the result without a shell. */
export type PrepareProgram = (request: ProgramRequest) => Promise<PreparedProgram>;
