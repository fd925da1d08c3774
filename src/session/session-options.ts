import type { Readable, Writable } from "node:stream";
import type { FileHistory } from "../checkpoints/file-history.ts";
import type { SessionMode } from "../commands/command.ts";
import type { CommandPorts } from "../commands/ports.ts";
import type { Skill } from "../context/skills/skill.ts";
import type { Factories } from "../factories/factories.ts";
import type { Hooks } from "../hooks/fire.ts";
import type { Github, GithubStatus } from "../model/github/github.ts";
import type { Emit, EventData, SessionEvent, WorkingDirectory } from "../protocol/event.ts";
import type { AgentPoolOptions } from "./agents/agent-pool-options.ts";
import type { CheckResult } from "./modes/autopilot.ts";
import type { ScheduleRegistry } from "./modes/schedules.ts";
import type { RunSettings } from "./run-settings.ts";
import type { ServerPort } from "./server-port.ts";
import type { KeptRules, TurnRules } from "./turn/pending-messages.ts";
import type { Outcome } from "./turn/turn-runner.ts";

type ClientRule = { readonly kind: string; readonly argument: string | null };

/** The rules of the session, for its clients. A denial always wins, and what settings rule out stays out. */
interface PermissionPort {
  readonly rules: {
    readonly roots: readonly string[];
    readonly primary: string;
    readonly allowsAll: boolean;
    setAllowAll(enabled: boolean): boolean;
    setAllUrls(enabled: boolean): boolean;
    setReads(how: "asked" | "allowed"): void;
    replaceRules(rules: { readonly approved: readonly ClientRule[]; readonly denied: readonly ClientRule[] }): void;
    addRules(rules: readonly ClientRule[]): void;
    removeRules(rules: readonly ClientRule[] | "all"): void;
    addFolder(path: string): void;
    setPrimary(path: string): void;
    isWithin(path: string, where: "allowed" | "workspace"): boolean;
  };
  resetApprovals(): void;
  locate(folder: string): { readonly locationKey: string; readonly locationType: "repo" | "dir" };
  applyLocation(folder: string): readonly ClientRule[];
  approveInLocation(key: string, approval: unknown): Promise<void>;
  allowUrl(wish: { url: string; domain?: string | undefined; forGood: boolean }): () => Promise<void>;
  isTrusted(folder: string): boolean;
  trust(folder: string): Promise<void>;
}

interface Extension {
  readonly id: string;
  readonly name: string;
  readonly source: "project" | "user" | "plugin";
  readonly path: string;
  readonly scope: "user" | "project";
}

/** The programs that may join the session as clients, for who connects them. */
export interface ExtensionPort {
  readonly place: string;
  find(how?: { readonly again: true }): Promise<readonly Extension[]>;
  isDisabled(id: string): boolean;
  start(extension: Extension, profile: ExtensionProfile | undefined): Promise<ExtensionProgram>;
  withheld(id: string, names: readonly string[]): Record<string, string>;
}

export interface ExtensionProfile {
  readonly executable: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

interface ExtensionProgram {
  readonly pid: number;
  readonly input: Readable;
  readonly output: Writable;
  readonly ended: Promise<string>;
  lastWords(): string;
  stop(): Promise<void>;
}

/** What a client says of the agents of a session: limits can only be lowered by it. */
export interface GivenSubagents {
  /** By name. */
  readonly agents?: Readonly<Record<string, { readonly model?: string; readonly effortLevel?: string }>>;
  readonly disabledSubagents?: readonly string[];
  readonly maxConcurrency?: number;
  readonly maxDepth?: number;
}

/** What surfaces may know of a session beyond its conversation. */
interface Surroundings {
  /** The session's own folder for files, absolute. */
  readonly filesFolder: string;
  readonly skills: readonly Skill[];
  /** Throws a `TroupeError` when there is none of this name. */
  setSkillEnabled(name: string, enabled: boolean): void;
  reloadSkills(): Promise<void>;
  /** Files whose words stand in the system prompt. */
  instructions(): readonly { readonly path: string; readonly scope: string; readonly content: string }[];
  plugins(): readonly { readonly name: string; readonly version?: string }[];
  /** The session's MCP servers, where it has any. */
  readonly mcp?: ServerPort;
  /** Whether apps of MCP servers may be shown, and whether its program shows them. */
  readonly mayShowApps: boolean;
  readonly showsApps: boolean;
  /** What a client may see and change of what is permitted. */
  readonly permissions: PermissionPort;
  /** All MCP servers that are configured; those that are not used have the status `disabled`. */
  serverSummaries(): EventData<"session.mcp_servers_loaded">["servers"];
  readonly servers: CommandPorts["servers"];
  /** Who may lead the session, who does, and how to choose. */
  readonly agents?: NonNullable<CommandPorts["agents"]>;
  /** Set where a client has asked for extensions. */
  readonly extensions?: ExtensionPort;
  /** Workflows of extensions, where they are not switched off; with the runs of the past. */
  readonly factories?: { open(): Promise<Factories>; readonly isBusy: boolean };
  /** Looks for agents anew, where they come from files. */
  reloadAgents?(): Promise<void>;
  /** In the place of what a client said before; for agents that start from now on. */
  giveSubagents?(given: GivenSubagents): void;
  readonly schedules?: () => ScheduleRegistry | undefined;
  /** How many facts are remembered of this place; 0 where there is no memory. */
  memories?(): number;
  /** Where there is a context board that can be consolidated. */
  readonly board?: {
    /** Its folder is trusted for this run only. */
    readonly isTrustedForRun: boolean;
    /** How many entries it has. */
    count(): Promise<number>;
    /** All that was said so far is in the session store when this resolves. */
    flush(): Promise<void>;
  };
  /** A new session from this one, up to an event or whole. */
  fork?(toEventId: string | undefined): Promise<{ readonly sessionId: string; readonly name?: string }>;
  readTodos(): Promise<readonly { readonly id: string; readonly status: string }[]>;
  readDependencies(): Promise<readonly { readonly todoId: string; readonly dependsOn: string }[]>;
}

/** Why a session is closed: by an error, and what is told of requests that nobody has answered. */
export interface CloseReason {
  readonly error?: string;
  readonly pending?: string;
  /** Calls that wait for someone outside can be gone on with when the session is taken up again. */
  readonly leavesPending?: boolean;
  /** The session is deleted afterwards. */
  readonly isDeleted?: boolean;
}

/** Everything a session is made of. */
export interface SessionOptions extends RunSettings {
  readonly version: string;
  /** With fewer events than this, the session holds all of them in memory; 5,000 unless given. */
  readonly minCondensed?: number;
  readonly context: WorkingDirectory;
  readonly name?: string;
  /** What is told of a session that is taken up again beside that it is; "silent": nothing is. */
  readonly resumed?: Pick<EventData<"session.resume">, "continuePendingWork" | "sessionWasActive"> | "silent";
  /** Calls that wait for someone outside are gone on with by `Session.goOn`; otherwise they have been interrupted. */
  readonly continuesPending?: boolean;
  /** Makes the rules of a command anew for a message of an earlier process. */
  commandRules?(kept: KeptRules): Promise<TurnRules>;
  /** The agents that may work for the main one. */
  readonly company?: AgentPoolOptions;
  /** How long an agent that is done waits for those in the background before the session counts as idle. */
  readonly waitForAgentsMs?: number;
  /** False: what agents have to tell waits until the main agent is spoken to. */
  readonly wakes?: boolean;
  /** Those who are told what happens and may have a say. */
  readonly hooks?: (emit: Emit) => Hooks;
  readonly surroundings?: Surroundings;
  /** Who it is on GitHub, where a program wants to know. */
  readonly identity?: {
    status(): Promise<GithubStatus>;
    /** Where its models are, with the token: not for everyone. */
    endpoint(): ReturnType<Github["endpoint"]>;
  };
  /** What to begin with, unless the log says otherwise. */
  readonly mode?: SessionMode;
  /** Told the mode at the start and whenever it changes. */
  readonly onMode?: (mode: SessionMode) => void;
  /** Runs a command of the person's to check the work. Bounded; never rejects. */
  readonly runCheck?: (command: string) => Promise<CheckResult>;
  /** The session that this one was started to work on the learnings of, in a process of its own. */
  readonly detachedFrom?: string;
  /** Has the last word on how a message ended. */
  readonly settle?: (outcome: Outcome) => Promise<Outcome>;
  /** Where files are kept before they are changed, so that a rewind can bring them back. */
  readonly fileHistory?: FileHistory;
  /** Told that the log reads otherwise now. */
  readonly onRewound?: (events: readonly SessionEvent[]) => void;
  /** Told before each message is answered, for what belongs to one message as a whole. */
  readonly onMessage?: (messageId: string) => void;
  /** Told when nothing more is answered; what it says and what it costs still reaches the log. */
  readonly onEnd?: () => Promise<void>;
  /** Ends what its tools have open, before the log is let go of. */
  readonly onClose?: () => Promise<void>;
  /** A listener threw; reported as a warning of the process unless told. */
  readonly onDefect?: (error: unknown) => void;
}
