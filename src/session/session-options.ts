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
import type { SessionMcpPort } from "./session-mcp-port.ts";
import type { Outcome } from "./turn/answer-runner.ts";
import type { AnswerRules, StoredRules } from "./turn/pending-messages.ts";

type ClientRule = { readonly kind: string; readonly argument: string | null };

/**
 * The session's permission rules, for its clients. A denial always wins, and clients cannot override denials in
 * settings.
 */
interface PermissionPort {
  readonly rules: {
    readonly roots: readonly string[];
    readonly primary: string;
    readonly allowsAll: boolean;
    setAllowAll(enabled: boolean): boolean;
    setAllUrls(enabled: boolean): boolean;
    setReads(mode: "asked" | "allowed"): void;
    replaceRules(rules: { readonly approved: readonly ClientRule[]; readonly denied: readonly ClientRule[] }): void;
    addRules(rules: readonly ClientRule[]): void;
    removeRules(rules: readonly ClientRule[] | "all"): void;
    addFolder(path: string): void;
    setPrimary(path: string): void;
    isWithin(path: string, where: "allowed" | "workspace"): boolean;
  };
  resetApprovals(): void;
  locate(folder: string): { readonly locationKey: string; readonly locationType: "repo" | "dir" };
  copyLocationApprovalsToSession(folder: string): readonly ClientRule[];
  approveInLocation(key: string, approval: unknown): Promise<void>;
  allowUrl(request: { url: string; domain?: string | undefined; forGood: boolean }): () => Promise<void>;
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

/** The programs that may join the session as clients. */
export interface ExtensionPort {
  readonly locationKey: string;
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
  readonly fromExtension: Readable;
  readonly toExtension: Writable;
  readonly ended: Promise<string>;
  lastStderr(): string;
  stop(): Promise<void>;
}

/** A client's settings for a session's agents. Limits can only be lowered. */
export interface GivenSubagents {
  /** By agent name. */
  readonly agents?: Readonly<Record<string, { readonly model?: string; readonly effortLevel?: string }>>;
  readonly disabledSubagents?: readonly string[];
  readonly maxConcurrency?: number;
  readonly maxDepth?: number;
}

/** Parts of the session's folder that the runtime has loaded, for surfaces. */
export interface WorkspaceServices {
  /** The absolute path of the session's own folder for files. */
  readonly filesFolder: string;
  readonly skills: readonly Skill[];
  /** Throws a `TroupeError` if the skill does not exist. */
  setSkillEnabled(name: string, enabled: boolean): void;
  reloadSkills(): Promise<void>;
  /** Returns the files that are included in the system prompt. */
  instructions(): readonly { readonly path: string; readonly scope: string; readonly content: string }[];
  plugins(): readonly { readonly name: string; readonly version?: string }[];
  /** The session's MCP servers, if any. */
  readonly mcp?: SessionMcpPort;
  /** Whether apps of MCP servers may be shown, and whether the client shows them. */
  readonly mayShowApps: boolean;
  readonly showsApps: boolean;
  /** The permissions that a client may see and change. */
  readonly permissions: PermissionPort;
  /** Returns all configured MCP servers. Unused ones have the status `disabled`. */
  serverSummaries(): EventData<"session.mcp_servers_loaded">["servers"];
  readonly servers: CommandPorts["servers"];
  /** Absent without MCP servers. */
  readonly signIn?: CommandPorts["signIn"];
  /** Absent without MCP servers. */
  readonly serverPrompts?: CommandPorts["serverPrompts"];
  /** The available main agents, the current one, and how to choose. */
  readonly agents?: NonNullable<CommandPorts["agents"]>;
  /** The GitHub identity, for programs that ask. */
  readonly identity?:
    | {
        status(): Promise<GithubStatus>;
        /** Returns the endpoint of its models, with the token. Must not be exposed to every client. */
        endpoint(): ReturnType<Github["endpoint"]>;
      }
    | undefined;
  /** Set if a client has asked for extensions. */
  readonly extensions?: ExtensionPort;
  /** Workflows of extensions, including past runs; absent if they are switched off. */
  readonly factories?: { open(): Promise<Factories>; readonly isBusy: boolean };
  /** Searches for agent definitions again, if they come from files. */
  reloadAgents?(): Promise<void>;
  /** Replaces the client's earlier settings. Applies to agents that start from now on. */
  giveSubagents?(given: GivenSubagents): void;
  readonly schedules?: () => ScheduleRegistry | undefined;
  /** Returns the number of stored memories for this location; 0 without a memory. */
  memories?(): number;
  /** Set if there is a context board that can be consolidated. */
  readonly board?: {
    /** Whether its folder is trusted only for this run. */
    readonly isTrustedForRun: boolean;
    /** Returns its number of entries. */
    count(): Promise<number>;
    /** Resolves when all events so far are in the session store. */
    flush(): Promise<void>;
  };
  /** Creates a new session from this one, up to an event or complete. */
  fork?(toEventId: string | undefined): Promise<{ readonly sessionId: string; readonly name?: string }>;
  readTodos(): Promise<readonly { readonly id: string; readonly status: string }[]>;
  readDependencies(): Promise<readonly { readonly todoId: string; readonly dependsOn: string }[]>;
}

/** The reason for closing a session: an error, and the text for unanswered requests. */
export interface CloseReason {
  readonly error?: string;
  readonly pending?: string;
  /** Calls that wait for a client stay pending and can be resumed with the session. */
  readonly leavesPending?: boolean;
  /** The session is deleted afterwards. */
  readonly isDeleted?: boolean;
}

/** Everything a session consists of. */
export interface SessionOptions extends RunSettings {
  readonly version: string;
  /** A session with fewer events holds all of them in memory; 5,000 by default. */
  readonly minCondensed?: number | undefined;
  readonly context: WorkingDirectory;
  readonly name?: string | undefined;
  /** Additional facts for `session.resume`; "silent": no event is emitted. */
  readonly resumed?:
    | Pick<EventData<"session.resume">, "continuePendingWork" | "sessionWasActive">
    | "silent"
    | undefined;
  /** Calls that wait for a client are resumed by `session.queue.resume`. Otherwise they are interrupted. */
  readonly continuesPending?: boolean | undefined;
  /** Whether this was the session's own working folder on another machine. What was asked there holds here. */
  readonly isOwnFolder?: ((folder: string) => boolean) | undefined;
  /** Rebuilds a command's rules for a message of an earlier process. */
  commandRules?(stored: StoredRules): Promise<AnswerRules>;
  /** The agents that may work for the main agent. */
  readonly agentPool?: AgentPoolOptions;
  /** How long a finished agent waits for background agents before the session counts as idle. */
  readonly waitForAgentsMs?: number | undefined;
  /** False: notices do not wake the main agent, which reads them with its next message. */
  readonly wakes?: boolean | undefined;
  /** Creates the hooks of the session. */
  readonly hooks?: (emit: Emit) => Hooks;
  readonly services?: WorkspaceServices;
  /** The initial mode, unless the log has another. */
  readonly mode?: SessionMode | undefined;
  /** Called with the mode at the start and on every change. */
  readonly onMode?: (mode: SessionMode) => void;
  /** Runs the user's command that checks the work. Bounded; never rejects. */
  readonly runCheck?: (command: string) => Promise<CheckResult>;
  /** The session whose learnings this one consolidates, in its own process. */
  readonly detachedFrom?: string | undefined;
  /** May replace the outcome of a message. */
  readonly replaceOutcome?: (outcome: Outcome) => Promise<Outcome>;
  /** Stores files before they are changed, so that a rewind can restore them. */
  readonly fileHistory?: FileHistory;
  /** Called after a rewind. */
  readonly onRewound?: (events: readonly SessionEvent[]) => void;
  /** Called before each message is answered. */
  readonly onMessage?: (messageId: string) => void;
  /** Called when no more messages are answered. Its events and usage still reach the log. */
  readonly beforeShutdown?: () => Promise<void>;
  /** Closes the resources of its tools, before the log is released. */
  readonly releaseResources?: () => Promise<void>;
  /** Called when a listener throws. By default this is a process warning. */
  readonly onDefect?: (error: unknown) => void;
}
