import type { Request, RequestOptions } from "./answers.ts";

/** A method of the protocol: its parameters and its result. */
interface Method<P, R> {
  readonly params: P;
  readonly result: R;
}
type None = Record<never, never>;

/** Names with dots become objects: `{ "agent.select": … }` is `rpc.agent.select(…)`. */
export type Rpc<M> = {
  readonly [N in keyof M as N extends `${infer Head}.${string}` ? Head : N]: N extends `${infer Head}.${string}`
    ? Rpc<{ [K in keyof M as K extends `${Head}.${infer Rest}` ? Rest : never]: M[K] }>
    : M[N] extends Method<infer P, infer R>
      ? None extends P
        ? (params?: P, options?: RequestOptions) => Promise<R>
        : (params: P, options?: RequestOptions) => Promise<R>
      : never;
};

/** Calls by name: `rpcOf("session", request).agent.select(p)` requests `session.agent.select`. */
export function rpcOf<M>(prefix: string, request: Request): Rpc<M> {
  const at = (path: string): unknown =>
    new Proxy(() => undefined, {
      get: (_, name) =>
        // A proxy that is awaited or printed is not a method.
        typeof name === "symbol" || name === "then" ? undefined : at(path === "" ? name : `${path}.${name}`),
      apply: (_, __, [params, options]: [Readonly<Record<string, unknown>>?, RequestOptions?]) =>
        request(path, params ?? {}, options),
    });
  return at(prefix) as Rpc<M>;
}

interface AgentEntry {
  readonly id: string;
  readonly name: string;
  readonly displayName: string;
  readonly description: string;
  readonly source?: string;
  readonly tools?: readonly string[] | null;
  readonly model?: string;
}
interface TaskEntry {
  readonly id: string;
  readonly type: string;
  readonly status: "running" | "idle" | "completed" | "failed" | "cancelled";
  readonly description?: string;
  readonly agentType?: string;
  readonly prompt?: string;
  readonly result?: string;
  readonly error?: string;
}
type Mode = "interactive" | "plan" | "autopilot";

/** The most used methods of a session, typed. All others can be called by name: `session.request`. */
export interface SessionRpc {
  "agent.list": Method<{ includeBuiltInAgents?: boolean }, { agents: readonly AgentEntry[] }>;
  "agent.getCurrent": Method<None, { agent: AgentEntry | null }>;
  "agent.select": Method<{ name: string }, { agent: AgentEntry }>;
  "agent.deselect": Method<None, unknown>;
  "tasks.list": Method<None, { tasks: readonly TaskEntry[] }>;
  "tasks.startAgent": Method<
    { agentType: string; prompt: string; name?: string; description?: string; model?: string },
    { agentId: string }
  >;
  "tasks.sendMessage": Method<{ id: string; message: string }, { sent: boolean; error?: string }>;
  "tasks.cancel": Method<{ id: string }, { cancelled: boolean }>;
  "tasks.remove": Method<{ id: string }, { removed: boolean }>;
  "model.getCurrent": Method<None, { modelId?: string; reasoningEffort?: string }>;
  "model.switchTo": Method<{ modelId: string; reasoningEffort?: string }, { modelId?: string }>;
  "model.list": Method<None, { list: readonly { id: string; name: string }[] }>;
  "model.setReasoningEffort": Method<{ reasoningEffort: string }, unknown>;
  "commands.list": Method<
    None,
    { commands: readonly { name: string; description: string; kind: string; input?: { hint: string } }[] }
  >;
  "assets.read": Method<{ assetId: string }, { data: string }>;
  "mode.get": Method<None, Mode>;
  "mode.set": Method<{ mode: Mode }, unknown>;
  "name.get": Method<None, { name: string | null }>;
  "name.set": Method<{ name: string }, unknown>;
  "plan.read": Method<None, { exists: boolean; content: string | null; path: string | null }>;
  "plan.update": Method<{ content: string }, unknown>;
  "plan.readSqlTodos": Method<None, { rows: readonly { title?: string; status?: string }[] }>;
  "queue.clear": Method<None, unknown>;
  "fleet.start": Method<{ prompt?: string }, { started: boolean }>;
  "history.compact": Method<{ customInstructions?: string }, { success: boolean }>;
  "history.abortManualCompaction": Method<None, { aborted: boolean }>;
  "metadata.getContextAttribution": Method<None, { contextAttribution: { totalTokens: number; limit: number } | null }>;
  "usage.getMetrics": Method<None, Readonly<Record<string, unknown>>>;
}

/** The most used methods that belong to no session. */
export interface ServerRpc {
  ping: Method<{ message?: string }, { message: string; timestamp: string; protocolVersion: number }>;
  "models.list": Method<None, { models: readonly { id: string; name: string }[] }>;
  "providerKeys.list": Method<
    None,
    { providers: readonly { id: string; name: string; host: string; hasKey: boolean }[] }
  >;
  "providerKeys.set": Method<{ provider: string; apiKey: string }, { model: string }>;
  "providerKeys.clear": Method<None, { remaining: readonly { id: string; name: string }[] }>;
  "tools.list": Method<None, { tools: readonly { name: string; description: string }[] }>;
  "sessions.fork": Method<{ sessionId: string; toEventId?: string; name?: string }, { sessionId: string }>;
  "sessions.list": Method<None, { sessions: readonly { sessionId: string; summary?: string }[] }>;
}
