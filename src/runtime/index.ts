/** The entry `troupe`: the runtime, for programs that host agents themselves. */
export { injectedMemory } from "../context/memory/injected.ts";
export type { MemoryStore } from "../context/memory/memory.ts";
export type { Outcome } from "../session/session.ts";
export { type SendOptions, Session } from "../session/session.ts";
export type { SessionLog, SessionSummary, Store } from "../store/store.ts";
export { defineTool, type Tool, type ToolContext } from "../tools/tool.ts";
export { ToolError, type ToolResult } from "../tools/tool-error.ts";
export { consolidateAtShutdown } from "./knowledge/shutdown-consolidation.ts";
export { createRuntime, type Runtime, type RuntimeOptions } from "./runtime.ts";
export type { SessionRequest } from "./session-request.ts";
export { findSession, lastSession } from "./sessions/select-session.ts";
