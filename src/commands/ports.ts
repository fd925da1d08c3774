/** Ports through which commands use the session. Their methods throw `TroupeError` with a message for the user. */

export interface CommandPorts {
  readonly agents: AgentPort;
  readonly tasks: TaskPort;
  readonly schedules: SchedulePort;
  readonly models: ModelPort;
  readonly permissions: PermissionPort;
  /** Skills that the user may call. */
  skills(): readonly SkillEntry[];
  /** All configured MCP servers, including disabled ones. Connects to none of them. */
  servers(): Promise<readonly ServerEntry[]>;
  /**
   * Starts the sign-in to a remote MCP server; returns the address where the user signs in. Returns undefined if there is
   * nothing to open: the server needs no sign-in, or it has succeeded without the user.
   */
  signIn(serverName: string): Promise<string | undefined>;
  readonly serverPrompts: ServerPromptPort;
  usage(): UsageFacts;
  /** Lets the session's tools access one more folder; returns its real path. */
  addDirectory(path: string): Promise<string>;
  /** Undoes the file changes of the last message; returns a report for the user. */
  undo(): Promise<string>;
  rename(name: string): Promise<void>;
  readonly context: ContextPort;
  readonly history: HistoryPort;
}

interface ContextPort {
  /** Replaces the conversation by a summary; returns a report for the user. */
  compact(focus: string): Promise<string>;
  /** Describes what fills the model's context window. */
  report(): Promise<string>;
}

/** Methods return text for the user. Messages are counted from 1. */
interface HistoryPort {
  list(): Promise<string>;
  rewind(number: number, options: { readonly files: boolean }): Promise<string>;
  restore(options: { readonly files: boolean }): Promise<string>;
  fork(number: number | undefined): Promise<string>;
}

export type PortName = keyof CommandPorts;

interface AgentPort {
  list(): readonly AgentEntry[];
  /** The selected main agent; undefined for the default one. */
  selected(): string | undefined;
  select(name: string | undefined): Promise<void>;
}

export interface AgentEntry {
  readonly name: string;
  readonly description: string;
  /** False if only other agents may start it. */
  readonly userInvocable?: boolean;
}

interface TaskPort {
  list(): readonly TaskEntry[];
  /** Returns the task's progress so far, shortened. */
  show(id: string): Promise<string>;
  /** Stops the task and everything it started. */
  stop(id: string): Promise<void>;
  /** Moves the task to the background: its parent no longer waits for it. */
  promote(id: string): Promise<void>;
}

/** An excerpt of the registry's entry for a task. */
export interface TaskEntry {
  readonly id: string;
  readonly parentId?: string;
  readonly agentType: string;
  readonly description: string;
  readonly status: string;
  readonly mode: "sync" | "background";
  readonly elapsedMs: number;
  readonly toolCalls: number;
  readonly tokens: number;
  readonly intent?: string;
  readonly lastActivity?: string;
  readonly waitingFor?: string;
}

export interface ScheduleRequest {
  readonly prompt: string;
  readonly displayPrompt: string;
  readonly intervalMs: number;
  readonly recurring: boolean;
}

export interface ScheduleEntry extends ScheduleRequest {
  readonly id: number;
  /** Wall clock, in milliseconds. */
  readonly nextRunAt: number;
}

interface SchedulePort {
  add(request: ScheduleRequest): Promise<ScheduleEntry>;
  list(): readonly ScheduleEntry[];
  /** Returns undefined if no schedule has this id. */
  stop(id: number): Promise<ScheduleEntry | undefined>;
}

interface ModelPort {
  current(): string;
  list(): Promise<readonly string[]>;
  /** Takes effect with the next model call; returns the full name. */
  select(name: string): Promise<string>;
}

interface PermissionPort {
  /** Returns current rules, approvals and modes, one line each. */
  describe(): readonly string[];
  /** Deletes the approvals of this session; returns their number. */
  reset(): Promise<number>;
}

export interface SkillEntry {
  /** As typed: lower case, no spaces. */
  readonly commandName: string;
  readonly name: string;
  readonly description: string;
  readonly argumentHint?: string;
}

interface ServerEntry {
  readonly name: string;
  readonly status: string;
  /** Undefined if the server was never connected. */
  readonly tools?: number;
  readonly error?: string;
}

interface ServerPromptPort {
  /** Returns the prompts of servers that are connected. */
  list(): Promise<readonly ServerPrompt[]>;
  /** Returns the prompts of one server; undefined if the session uses no such server. Connects it if necessary. */
  of(serverName: string): Promise<readonly ServerPrompt[] | undefined>;
  /** Returns the text that the server makes of the prompt. It is quoted data. */
  fill(prompt: ServerPrompt, values: Readonly<Record<string, string>>): Promise<string>;
}

/** A prompt of an MCP server. */
export interface ServerPrompt {
  readonly server: string;
  readonly name: string;
  readonly description: string;
  readonly arguments: readonly { readonly name: string; readonly description: string; readonly required: boolean }[];
}

interface UsageFacts {
  readonly turns: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Null if a price is unknown. */
  readonly costUsd: number | null;
  readonly durationMs: number;
}
