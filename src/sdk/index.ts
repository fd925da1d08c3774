/** The entry point `troupe/sdk`: use troupe from a program. */

export type { EventData, EventOf, EventType, SessionEvent } from "../protocol/event.ts";
export { type PermissionText, permissionText } from "../protocol/permission-text.ts";
export { type AgentNode, AgentTree } from "./agent-tree.ts";
export { Client, Client as CopilotClient, type ClientOptions, type Lifecycle, type SessionMetadata } from "./client.ts";
export * from "./config.ts";
export { type ClientTool, defineTool, type ToolInvocation, type ToolResultObject } from "./define-tool.ts";
export type { HookPoints, SessionHooks } from "./hooks.ts";
export type { Rpc, ServerRpc, SessionRpc } from "./rpc.ts";
export { createClient } from "./sdk.ts";
export {
  ClientSession,
  type MessageOptions,
  type SubmitOptions,
  type Submitted,
  type WaitOptions,
} from "./session.ts";
export type { Connection, Transport } from "./transport.ts";
