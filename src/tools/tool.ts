/**
 * The `Tool` interface. Built-in tools and tools of MCP servers and client programs all become a `Tool`; the loop
 * cannot distinguish them. This folder has one file per built-in tool. `builtin.ts` lists them, and
 * `coordination/worker-tools.ts` those of coordinated workers.
 */

import * as z from "zod";
import type { Json } from "../lib/json.ts";
import type { Access } from "../protocol/permission.ts";
import type { Tasks } from "./agents/task-port.ts";
import type { Coordination } from "./coordination/coordination.ts";
import type { SessionKnowledge } from "./coordination/session-knowledge.ts";
import type { SessionDatabase } from "./database/session-database.ts";
import { derivedSchemas } from "./derived-schemas.ts";
import type { Files } from "./files/files.ts";
import type { ReadGuard } from "./files/read-guard.ts";
import type { McpPort } from "./mcp/mcp-port.ts";
import type { Deferral } from "./mcp/server.ts";
import type { McpTasks } from "./mcp/tasks/background.ts";
import type { BoardPort } from "./memory/board-port.ts";
import type { InboxReader } from "./memory/inbox.ts";
import type { Shells } from "./shell/shells.ts";
import type { TextBufferPort } from "./text-buffers.ts";
import { ToolError, type ToolResult } from "./tool-error.ts";
import type { User } from "./user/user.ts";
import type { WebSearch } from "./web/search.ts";
import type { WebAccess } from "./web/web-access.ts";

/** The ports a session provides to its tools. A tool throws a `ToolError` when a port it needs is missing. */
export interface ToolPorts {
  readonly files?: Files;
  /** Texts that a client holds open; absent when no client can. */
  readonly buffers?: TextBufferPort;
  /** Paths that searches omit; absent when nothing is denied. */
  readonly reading?: ReadGuard;
  readonly web?: WebAccess;
  readonly webSearch?: WebSearch;
  readonly database?: SessionDatabase;
  readonly user?: User;
  readonly shells?: Shells;
  readonly tasks?: Tasks;
  readonly mcp?: McpPort;
  readonly coordination?: Coordination;
  readonly knowledge?: SessionKnowledge;
  readonly mcpTasks?: McpTasks;
  readonly board?: BoardPort;
  readonly external?: RunExternal;
  /** Returns the `_meta` to send with a call to an MCP server; null and undefined send none. */
  beforeMcpCall?(
    call: {
      readonly serverName: string;
      readonly toolName: string;
      readonly arguments: Record<string, Json>;
      readonly toolCallId: string;
    },
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, unknown>> | null | undefined>;
  readonly inbox?: InboxReader;
}

/** Runs a call in a client program. "unavailable": no client ran it. "cancelled": the caller cancelled. */
export type RunExternal = (
  call: { readonly toolCallId: string; readonly toolName: string; readonly arguments: Json },
  signal: AbortSignal,
) => Promise<{ readonly result?: Json; readonly error?: string } | "unavailable" | "cancelled">;

/** The only way a tool reaches the rest of troupe. */
export interface ToolContext extends ToolPorts {
  readonly cwd: string;
  /** Folders the tools may access, as real paths; `cwd` is the first. Empty: no limit (`--allow-all-paths`). */
  readonly roots: readonly string[];
  readonly toolCallId: string;
  readonly signal: AbortSignal;
  /** Shown to observers; not stored. */
  progress(message: string): void;
  /** The tool's output so far, for observers; not stored. */
  partialResult?(text: string): void;
  /** Reports that the call waits for a file that another agent is changing, or that the wait is over; not stored. */
  lockWait?(wait: LockWait): void;
}

export interface LockWait {
  readonly path: string;
  /** The agent that holds it; `main` for the main agent. */
  readonly holder: string;
  readonly isOver: boolean;
}

/** A call with validated arguments. */
export interface BoundCall {
  /** Returns every access of the call. All of them must be permitted before `run`. */
  access(context: ToolContext): Promise<readonly Access[]>;
  run(context: ToolContext): Promise<ToolResult>;
}

type ToolOrigin =
  | { readonly kind: "mcp"; readonly serverName: string; readonly toolName: string }
  /** A tool that a client program runs. */
  | { readonly kind: "custom" };

/** Facts about a built-in tool that do not depend on the session. */
export interface ToolTraits {
  readonly name: string;
  /** The kind of its access. A permission rule may name the tool instead of the kind. */
  readonly accessKind?: "shell" | "read" | "write" | "url" | "memory";
  /** A read-only agent may have it although it is not `readOnly`: it changes no files of the user. */
  readonly forReadOnlyAgents?: boolean;
  /** Only the main agent has it. */
  readonly mainOnly?: boolean;
  /** It starts, reads or stops agents. The deepest agents lack it. It may outlast a lost lease: its agents have their own. */
  readonly managesAgents?: boolean;
  /** The tool whose work it reads or steers. Agents that may have that one get both; sidekicks never get it. */
  readonly companionOf?: string;
  /** The modes in which it is offered; absent: all. */
  readonly modes?: readonly ("interactive" | "plan" | "autopilot")[];
}

export interface Tool extends ToolTraits {
  readonly description: string;
  readonly parameters: object;
  /** True when a call changes nothing. It may then run before its start is on disk. Recovery runs no call again. */
  readonly readOnly: boolean;
  /** True when the call must not overlap with its siblings. */
  readonly exclusive: boolean;
  /** True when a successful call ends the answer without another model call. */
  readonly endsAnswer: boolean;
  readonly timeoutMs: number;
  /** Offered only while a client can answer requests of this kind. */
  readonly needs?: "user_input" | "elicitation" | "exit_plan_mode";
  /** The owner of the tool; absent for built-in tools. */
  readonly origin?: ToolOrigin;
  /** By default `never` for built-in tools, `auto` for others. */
  readonly deferral?: Deferral;
  /** Throws a `ToolError` for invalid arguments; after that, `run` is fully typed. */
  bind(rawArguments: unknown): BoundCall;
}

/** The timeout of a tool that sets none. */
const DEFAULT_TIMEOUT_MS = 120_000;

interface Definition<S extends z.ZodType> extends ToolTraits {
  description: string;
  input: S | Fixed<S>;
  /** Additions to the schema of single arguments, such as the currently valid choices. */
  shown?: Readonly<Record<string, object>>;
  readOnly?: boolean;
  exclusive?: boolean;
  endsAnswer?: boolean;
  timeoutMs?: number;
  needs?: NonNullable<Tool["needs"]>;
  access?: (input: z.infer<S>, context: ToolContext) => Access | readonly Access[] | Promise<readonly Access[]>;
  run: (input: z.infer<S>, context: ToolContext) => Promise<ToolResult>;
}

export function defineTool<S extends z.ZodType>(definition: Definition<S>): Tool {
  const { input, shown = {}, access, run, ...traits } = definition;
  const schema = (): S => ("build" in input ? input.build() : input);
  let parameters: object | undefined;
  return {
    ...traits,
    get parameters() {
      parameters ??= withShown(("build" in input && derivedSchemas.get(input.id)) || inputSchema(schema()), shown);
      return parameters;
    },
    readOnly: traits.readOnly ?? false,
    exclusive: traits.exclusive ?? false,
    endsAnswer: traits.endsAnswer ?? false,
    timeoutMs: traits.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    bind(rawArguments) {
      const parsed = schema().safeParse(rawArguments);
      if (!parsed.success) throw new ToolError(`Bad arguments for ${traits.name}: ${z.prettifyError(parsed.error)}`);
      return {
        access: async (context) => [(await access?.(parsed.data, context)) ?? []].flat(),
        run: (context) => run(parsed.data, context),
      };
    },
  };
}

/** Makes a tool for a session. Its traits are known without one. */
export interface ToolMaker<P> {
  (parts: P): Tool;
  readonly traits: ToolTraits;
}

export function toolMaker<P>(traits: ToolTraits, make: (parts: P) => Tool): ToolMaker<P> {
  return Object.assign((parts: P) => make(parts), { traits });
}

interface Fixed<S extends z.ZodType> {
  readonly id: string;
  readonly build: () => S;
}
export type InputOf<F> = F extends Fixed<infer S> ? z.infer<S> : never;

/**
 * For a schema whose JSON form depends only on this version of troupe (variable parts belong in `shown`). The build
 * derives that form and stores it under the id, which must be unique. The schema itself is built when the first call is
 * validated, so a start builds none.
 */
export function fixed<S extends z.ZodType>(id: string, build: () => S): Fixed<S> {
  let made: S | undefined;
  return {
    id,
    build: () => {
      made ??= build();
      return made;
    },
  };
}

function withShown(parameters: object, shown: Readonly<Record<string, object>>): object {
  const properties: Record<string, object> = "properties" in parameters ? { ...(parameters.properties as object) } : {};
  for (const [name, more] of Object.entries(shown)) properties[name] = { ...properties[name], ...more };
  return Object.keys(shown).length === 0 ? parameters : { ...parameters, properties };
}

/** Returns the schema from the caller's side: fields with defaults are not required. */
function inputSchema(schema: z.ZodType): object {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: "input" });
  return rest;
}
