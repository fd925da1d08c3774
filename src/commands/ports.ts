/** What commands may ask of the session around them. Each method throws a `TroupeError` worded for a person. */

export interface CommandPorts {
  readonly agents: AgentPort;
  readonly tasks: TaskPort;
  readonly schedules: SchedulePort;
  readonly models: ModelPort;
  readonly permissions: PermissionPort;
  /** Skills a person may call. */
  skills(): readonly SkillEntry[];
  /** All configured MCP servers, also those that are switched off. Connects to none of them. */
  servers(): Promise<readonly ServerEntry[]>;
  usage(): UsageFacts;
  /** Lets the session's tools reach one more folder; returns its real path. */
  addDirectory(path: string): Promise<string>;
  /** Takes back what the last message changed on disk; returns what was done, for people. */
  undo(): Promise<string>;
  rename(name: string): Promise<void>;
  readonly context: ContextPort;
  readonly history: HistoryPort;
}

interface ContextPort {
  /** Shortens the conversation to a summary; returns what was done, for people. */
  compact(focus: string): Promise<string>;
  /** What fills the window of the model. */
  report(): Promise<string>;
}

/** Each returns what was done, or is there, for people. Messages are counted from 1. */
interface HistoryPort {
  list(): Promise<string>;
  rewind(number: number, wish: { readonly files: boolean }): Promise<string>;
  restore(wish: { readonly files: boolean }): Promise<string>;
  fork(number: number | undefined): Promise<string>;
}

export type PortName = keyof CommandPorts;

interface AgentPort {
  list(): readonly AgentEntry[];
  /** Who leads the session now; undefined for the ordinary main agent. */
  selected(): string | undefined;
  select(name: string | undefined): Promise<void>;
}

export interface AgentEntry {
  readonly name: string;
  readonly description: string;
  /** False when only other agents may start it. */
  readonly userInvocable?: boolean;
}

interface TaskPort {
  list(): readonly TaskEntry[];
  /** What became of it so far, bounded. */
  show(id: string): Promise<string>;
  /** Ends it and everything it started. */
  stop(id: string): Promise<void>;
  /** Whoever waits for it goes on without it. */
  promote(id: string): Promise<void>;
}

/** A part of what the registry tells of a task. */
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
  /** Undefined when there is none with this id. */
  stop(id: number): Promise<ScheduleEntry | undefined>;
}

interface ModelPort {
  current(): string;
  list(): Promise<readonly string[]>;
  /** Takes effect with the next model call; returns the full name. */
  select(name: string): Promise<string>;
}

interface PermissionPort {
  /** Rules, approvals and modes that hold now, one line each. */
  describe(): readonly string[];
  /** Forgets what was approved for this session; returns how many approvals there were. */
  reset(): Promise<number>;
}

export interface SkillEntry {
  /** As people type it: lower case, no spaces. */
  readonly commandName: string;
  readonly name: string;
  readonly description: string;
  readonly argumentHint?: string;
}

interface ServerEntry {
  readonly name: string;
  readonly status: string;
  /** Undefined when the server was never connected. */
  readonly tools?: number;
  readonly error?: string;
}

interface UsageFacts {
  readonly turns: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Null when a price is not known. */
  readonly costUsd: number | null;
  readonly durationMs: number;
}
