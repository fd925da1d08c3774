/** Events of hooks, skills, MCP servers and notices to the agent. */
import * as z from "zod";
import { barrier, count, ephemeral, event, JsonValue, text } from "./define-event.ts";

const SkillSource = z.enum([
  "project",
  "inherited",
  "personal-copilot",
  "personal-agents",
  "plugin",
  "custom",
  "builtin",
]);
const McpStatus = z.enum(["connected", "failed", "needs-auth", "pending", "disabled", "stopped", "not_configured"]);

const ToolInterface = z.object({
  resourceUri: text.exactOptional(),
  visibility: z.array(z.enum(["model", "app"])).exactOptional(),
});

/** The reason for a notice that no user typed. */
const NotificationKind = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("agent_completed"),
    agentId: text,
    agentType: text,
    status: z.enum(["completed", "failed"]),
    description: text.exactOptional(),
    prompt: text.exactOptional(),
  }),
  z.object({ type: z.literal("agent_idle"), agentId: text, agentType: text, description: text.exactOptional() }),
  z.object({
    type: z.literal("new_inbox_message"),
    entryId: text,
    senderName: text,
    senderType: text,
    summary: text,
  }),
  z.object({
    type: z.literal("shell_completed"),
    shellId: text,
    exitCode: count.exactOptional(),
    description: text.exactOptional(),
  }),
  z.object({ type: z.literal("shell_detached_completed"), shellId: text, description: text.exactOptional() }),
  z.object({
    type: z.literal("instruction_discovered"),
    sourcePath: text,
    triggerFile: text,
    triggerTool: text,
    description: text.exactOptional(),
  }),
  z.object({ type: z.literal("unclassified"), metadata: JsonValue.exactOptional() }),
]);

const Mode = z.enum(["interactive", "plan", "autopilot"]);

export const extensionEvents = [
  event("session.mode_changed", () => z.object({ previousMode: Mode, newMode: Mode }), barrier),
  event(
    "session.schedule_created",
    () =>
      z.object({
        id: count,
        prompt: text,
        intervalMs: count.exactOptional(),
        at: count.exactOptional(),
        recurring: z.boolean().exactOptional(),
        displayPrompt: text.exactOptional(),
        origin: z.enum(["user", "model"]).exactOptional(),
      }),
    barrier,
  ),
  event("session.schedule_cancelled", () => z.object({ id: count }), barrier),
  event("hook.start", () => z.object({ hookInvocationId: text, hookType: text, input: JsonValue.exactOptional() })),
  event("hook.end", () =>
    z.object({
      hookInvocationId: text,
      hookType: text,
      output: JsonValue.exactOptional(),
      success: z.boolean(),
      error: z.object({ message: text, source: text.exactOptional(), stack: text.exactOptional() }).exactOptional(),
    }),
  ),
  event("hook.progress", () => z.object({ message: text, temporary: z.boolean().exactOptional() }), ephemeral),
  event("skill.invoked", () =>
    z.object({
      name: text,
      path: text,
      content: text,
      description: text.exactOptional(),
      allowedTools: z.array(text).exactOptional(),
      source: text.exactOptional(),
      pluginName: text.exactOptional(),
      pluginVersion: text.exactOptional(),
      trigger: z.enum(["user-invoked", "agent-invoked", "context-load"]).exactOptional(),
    }),
  ),
  event(
    "session.skills_loaded",
    () =>
      z.object({
        skills: z.array(
          z.object({
            name: text,
            description: text,
            enabled: z.boolean(),
            userInvocable: z.boolean(),
            source: SkillSource,
            path: text.exactOptional(),
            argumentHint: text.exactOptional(),
            commandName: text.exactOptional(),
          }),
        ),
      }),
    ephemeral,
  ),
  event(
    "session.mcp_servers_loaded",
    () =>
      z.object({
        servers: z.array(
          z.object({
            name: text,
            status: McpStatus,
            source: z.enum(["user", "workspace", "plugin", "builtin"]).exactOptional(),
            transport: z.enum(["stdio", "http", "sse", "memory"]).exactOptional(),
            pluginName: text.exactOptional(),
            pluginVersion: text.exactOptional(),
            error: text.exactOptional(),
          }),
        ),
      }),
    ephemeral,
  ),
  event(
    "session.mcp_server_status_changed",
    () => z.object({ serverName: text, status: McpStatus, error: text.exactOptional() }),
    ephemeral,
  ),
  event(
    "mcp_app.tool_call_complete",
    () =>
      z.object({
        serverName: text,
        toolName: text,
        arguments: z.record(text, JsonValue).exactOptional(),
        success: z.boolean(),
        durationMs: count,
        result: z.record(text, JsonValue).exactOptional(),
        error: z.object({ message: text }).exactOptional(),
        toolMeta: z.object({ ui: ToolInterface.exactOptional() }).exactOptional(),
      }),
    ephemeral,
  ),
  event(
    "session.extensions_loaded",
    () =>
      z.object({
        extensions: z.array(
          z.object({
            id: text,
            name: text,
            source: z.enum(["project", "user", "plugin", "session"]),
            status: z.enum(["running", "disabled", "failed", "starting"]),
          }),
        ),
      }),
    ephemeral,
  ),
  event("mcp.tools.list_changed", () => z.object({ serverName: text }), ephemeral),
  event("mcp.resources.list_changed", () => z.object({ serverName: text }), ephemeral),
  event("mcp.prompts.list_changed", () => z.object({ serverName: text }), ephemeral),
  /** A notice to the agent, sent with the user role although no user typed it. Stored before listeners receive it. */
  event("system.notification", () => z.object({ content: text, kind: NotificationKind }), barrier),
] as const;
