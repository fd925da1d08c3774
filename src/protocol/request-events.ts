/** Requests to clients and their results, as the broker in `session/` emits them. */
import * as z from "zod";
import { barrier, ephemeral, event, JsonValue, nothing, text } from "./define-event.ts";

const PlanAction = z.enum(["exit_only", "interactive", "autopilot", "autopilot_fleet"]);
const toolCallId = text.exactOptional();
/** An extension of the wire. False if the answer can apply only once. */
const once = { canOfferSessionApproval: z.literal(false).exactOptional() };
const PermissionRequest = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("shell"),
    fullCommandText: text,
    intention: text,
    commands: z.array(z.object({ identifier: text, readOnly: z.boolean() })),
    possiblePaths: z.array(text),
    possibleUrls: z.array(z.object({ url: text })),
    hasWriteFileRedirection: z.boolean(),
    canOfferSessionApproval: z.boolean(),
    warning: text.exactOptional(),
    requestSandboxBypass: z.boolean().exactOptional(),
    requestSandboxBypassReason: text.exactOptional(),
    toolCallId,
  }),
  z.object({
    kind: z.literal("write"),
    fileName: text,
    diff: text,
    intention: text,
    canOfferSessionApproval: z.boolean(),
    /** The path as the model wrote it, if links lead from there to `fileName`. */
    namedAs: text.exactOptional(),
    toolCallId,
  }),
  z.object({ kind: z.literal("read"), path: text, intention: text, ...once, toolCallId }),
  z.object({
    kind: z.literal("mcp"),
    serverName: text,
    toolName: text,
    toolTitle: text,
    /** The server's full description. */
    toolDescription: text.exactOptional(),
    args: JsonValue.exactOptional(),
    readOnly: z.boolean(),
    ...once,
    toolCallId,
  }),
  z.object({
    kind: z.literal("url"),
    url: text,
    intention: text,
    redirectedFrom: text.exactOptional(),
    ...once,
    toolCallId,
  }),
  z.object({
    kind: z.literal("custom-tool"),
    toolName: text,
    toolDescription: text,
    args: JsonValue.exactOptional(),
    ...once,
    toolCallId,
  }),
  z.object({
    kind: z.literal("memory"),
    fact: text,
    action: z.enum(["store", "vote"]).exactOptional(),
    subject: text.exactOptional(),
    citations: text.exactOptional(),
    scope: z.enum(["repository", "user"]).exactOptional(),
    direction: z.enum(["upvote", "downvote"]).exactOptional(),
    reason: text.exactOptional(),
    ...once,
    toolCallId,
  }),
  z.object({
    kind: z.literal("extension-permission-access"),
    extensionName: text,
    capabilities: z.array(text),
    ...once,
    toolCallId,
  }),
  z.object({
    kind: z.literal("extension-env-access"),
    extensionName: text,
    environmentVariables: z.array(text),
    ...once,
    toolCallId,
  }),
  z.object({
    kind: z.literal("hook"),
    toolName: text,
    toolArgs: JsonValue.exactOptional(),
    hookMessage: text.exactOptional(),
    ...once,
    toolCallId,
  }),
]);
const SessionApproval = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("commands"), commandIdentifiers: z.array(text) }),
  z.object({ kind: z.literal("read") }),
  z.object({ kind: z.literal("write") }),
  z.object({ kind: z.literal("mcp"), serverName: text, toolName: text.nullable() }),
  z.object({ kind: z.literal("memory") }),
  z.object({ kind: z.literal("custom-tool"), toolName: text }),
  z.object({
    kind: z.literal("extension-permission-access"),
    extensionName: text,
    capabilities: z.array(text).exactOptional(),
  }),
  z.object({ kind: z.literal("extension-env-access"), extensionName: text, environmentVariables: z.array(text) }),
]);
/** The result of a permission request. */
export const PermissionResult = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("approved") }),
  z.object({ kind: z.literal("approved-for-session"), approval: SessionApproval }),
  z.object({ kind: z.literal("approved-for-location"), approval: SessionApproval, locationKey: text }),
  z.object({ kind: z.literal("cancelled"), reason: text.exactOptional() }),
  z.object({ kind: z.literal("denied-by-rules"), rules: z.array(z.object({ kind: text, argument: text.nullable() })) }),
  z.object({ kind: z.literal("denied-no-approval-rule-and-could-not-request-from-user") }),
  z.object({ kind: z.literal("denied-interactively-by-user"), feedback: text.exactOptional() }),
  z.object({
    kind: z.literal("denied-by-permission-request-hook"),
    message: text.exactOptional(),
    interrupt: z.boolean().exactOptional(),
  }),
]);
export const requestEvents = [
  event("permission.requested", () =>
    z.object({
      requestId: text,
      permissionRequest: PermissionRequest,
      resolvedByHook: z.boolean().exactOptional(),
      agentMode: z.enum(["interactive", "plan", "autopilot"]).exactOptional(),
    }),
  ),
  event("permission.completed", () => z.object({ requestId: text, result: PermissionResult, toolCallId }), barrier),
  event(
    "user_input.requested",
    () =>
      z.object({
        requestId: text,
        question: text,
        choices: z.array(text).exactOptional(),
        allowFreeform: z.boolean().exactOptional(),
        toolCallId,
      }),
    ephemeral,
  ),
  event(
    "user_input.completed",
    () => z.object({ requestId: text, answer: text.exactOptional(), wasFreeform: z.boolean().exactOptional() }),
    ephemeral,
  ),
  event(
    "elicitation.requested",
    () =>
      z.object({
        requestId: text,
        message: text,
        mode: z.enum(["form", "url"]).exactOptional(),
        requestedSchema: z
          .object({
            type: z.literal("object"),
            properties: z.record(text, JsonValue),
            required: z.array(text).exactOptional(),
          })
          .exactOptional(),
        elicitationSource: text.exactOptional(),
        url: text.exactOptional(),
        toolCallId,
      }),
    ephemeral,
  ),
  event(
    "elicitation.completed",
    () =>
      z.object({
        requestId: text,
        action: z.enum(["accept", "decline", "cancel"]).exactOptional(),
        content: z.record(text, JsonValue).exactOptional(),
      }),
    ephemeral,
  ),
  event(
    "sampling.requested",
    () => z.object({ requestId: text, mcpRequestId: JsonValue, serverName: text }),
    ephemeral,
  ),
  event("sampling.completed", () => z.object({ requestId: text }), ephemeral),
  event("external_tool.requested", () =>
    z.object({
      requestId: text,
      sessionId: text,
      toolCallId: text,
      toolName: text,
      arguments: JsonValue.exactOptional(),
      workingDirectory: text.exactOptional(),
      traceparent: text.exactOptional(),
      tracestate: text.exactOptional(),
    }),
  ),
  event("external_tool.completed", () => z.object({ requestId: text }), ephemeral),
  event(
    "mcp.oauth_required",
    () =>
      z.object({
        requestId: text,
        serverName: text,
        serverUrl: text,
        reason: z.enum(["initial", "refresh", "reauth", "upscope"]),
        wwwAuthenticateParams: z
          .object({
            resourceMetadataUrl: text.exactOptional(),
            scope: text.exactOptional(),
            error: text.exactOptional(),
          })
          .exactOptional(),
        resourceMetadata: text.exactOptional(),
        staticClientConfig: z
          .object({
            clientId: text,
            grantType: z.literal("client_credentials").exactOptional(),
            publicClient: z.boolean().exactOptional(),
          })
          .exactOptional(),
      }),
    ephemeral,
  ),
  event("mcp.oauth_completed", () => z.object({ requestId: text, outcome: z.enum(["token", "cancelled"]) }), ephemeral),
  event(
    "exit_plan_mode.requested",
    () =>
      z.object({
        requestId: text,
        summary: text,
        planContent: text,
        actions: z.array(PlanAction),
        recommendedAction: PlanAction,
      }),
    ephemeral,
  ),
  event(
    "exit_plan_mode.completed",
    () =>
      z.object({
        requestId: text,
        approved: z.boolean().exactOptional(),
        selectedAction: PlanAction.exactOptional(),
        autoApproveEdits: z.boolean().exactOptional(),
        feedback: text.exactOptional(),
      }),
    ephemeral,
  ),
  event("session.todos_changed", () => nothing, ephemeral),
] as const;
