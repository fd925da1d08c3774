/** Answers to a session's requests to its clients. The first response counts. */
import * as z from "zod";
import type { Json } from "../../../lib/json.ts";
import { TroupeError } from "../../../protocol/errors.ts";
import type { Session } from "../../../session/session.ts";
import { allowedAddress, permissionResult } from "../../clients/permission-decision.ts";
import { promptRequest } from "../../clients/prompt-request.ts";
import { type MethodTable, nothing, sessionMethod } from "../method.ts";

const requestId = z.string();
const JsonValue: z.ZodType<Json> = z.json();

const TokenAnswer = () =>
  z.discriminatedUnion("kind", [
    z.object({
      kind: z.literal("token"),
      accessToken: z.string().min(1),
      tokenType: z.string().exactOptional(),
      expiresIn: z.number().exactOptional(),
    }),
    z.object({ kind: z.literal("cancelled") }),
  ]);

/** Warns that the approval applies to this session only, because it could not be stored. */
function notKept(session: Session, error: unknown): void {
  const why = error instanceof Error ? error.message : String(error);
  session.record.warn("permissions", `The permanent approval could not be written to the settings: ${why}`);
}

/** A missing number, or one that adds nothing, would only cause another request. */
const LimitsAnswer = () =>
  z.discriminatedUnion("action", [
    z.object({ action: z.literal("add"), additionalAiCredits: z.number().positive() }),
    z.object({ action: z.literal("set"), maxAiCredits: z.number().nonnegative() }),
    z.object({ action: z.literal("unset") }),
    z.object({ action: z.literal("cancel") }),
  ]);

/** Decisions that outlive a session. Only the user may make them. */
const FOR_GOOD: ReadonlySet<string> = new Set(["approve-for-location", "approved-for-location", "approve-permanently"]);

export const pendingMethods: MethodTable = {
  "session.tools.handlePendingToolCall": sessionMethod(
    () => ({ requestId, result: JsonValue.optional(), error: z.string().optional() }),
    ({ requestId: id, result, error }, { session, hosted, connection }) => {
      if (connection.extension && !hosted.clients.isAskedFor(connection, id)) return { success: false };
      const answer = error === undefined ? { result: result ?? "" } : { error };
      return { success: session.requests.answer("external_tool", id, answer) === "accepted" };
    },
  ),
  "session.permissions.handlePendingPermissionRequest": sessionMethod(
    () => ({ requestId, result: z.object({ kind: z.string() }).loose() }),
    async ({ requestId: id, result }, { session, connection }) => {
      if (connection.extension && FOR_GOOD.has(result.kind)) {
        const message = `The extension ${connection.extension.name} can decide only for this session.`;
        throw new TroupeError("usage", message, { hint: "Use approve-once or approve-for-session." });
      }
      const asked = session.requests.pending("permission").find((request) => request.requestId === id);
      if (asked?.kind !== "permission") return { success: false };
      // If the request was repeated to a client without a user, it keeps waiting for a client that has one.
      if (result.kind === "user-not-available" && session.requests.wasReminded(id)) return { success: false };
      const { services, cwd } = session.workspace;
      const locationKey = (): string => services?.permissions.locate(cwd).locationKey ?? cwd;
      const answer = permissionResult(result, asked.permissionRequest, { locationKey });
      const address = allowedAddress(result, asked.permissionRequest);
      const allow = address && services?.permissions.allowUrl(address);
      const success = session.requests.answer("permission", id, answer) === "accepted";
      if (success) await allow?.().catch((error: unknown) => notKept(session, error));
      return { success };
    },
  ),
  "session.permissions.pendingRequests": sessionMethod(nothing, (_, { session }) => ({
    items: session.requests
      .pending("permission")
      .flatMap((request) =>
        request.kind === "permission"
          ? [{ requestId: request.requestId, request: promptRequest(request.permissionRequest) }]
          : [],
      ),
  })),
  // Events that announced the open questions, forms, plans and sign-ins: they are not stored.
  "session.ui.pendingRequests": sessionMethod(nothing, (_, { hosted }) => ({
    events: [...hosted.openRequests.events],
  })),
  "session.ui.elicitation": sessionMethod(
    () => ({
      message: z.string(),
      requestedSchema: z.object({
        type: z.literal("object"),
        properties: z.record(z.string(), JsonValue),
        required: z.array(z.string()).exactOptional(),
      }),
    }),
    async ({ message, requestedSchema }, { session, signal }) => {
      const answer = await session.requests.request(
        "elicitation",
        { message, requestedSchema, mode: "form" },
        { signal },
      );
      return typeof answer === "string" ? { action: "cancel" } : answer;
    },
  ),
  "session.ui.handlePendingElicitation": sessionMethod(
    () => ({
      requestId,
      result: z.object({
        action: z.enum(["accept", "decline", "cancel"]),
        content: z.record(z.string(), JsonValue).exactOptional(),
      }),
    }),
    ({ requestId: id, result }, { session }) => ({
      success: session.requests.answer("elicitation", id, result) === "accepted",
    }),
  ),
  "session.ui.handlePendingUserInput": sessionMethod(
    () => ({ requestId, response: z.object({ answer: z.string(), wasFreeform: z.boolean() }) }),
    ({ requestId: id, response }, { session }) => ({
      success: session.requests.answer("user_input", id, response) === "accepted",
    }),
  ),
  "session.ui.handlePendingSampling": sessionMethod(
    () => ({ requestId, response: JsonValue.optional() }),
    ({ requestId: id, response }, { session }) => {
      const answer =
        response === undefined
          ? ({ action: "cancelled" } as const)
          : ({ action: "success", result: response } as const);
      return { success: session.requests.answer("sampling", id, answer) === "accepted" };
    },
  ),
  "session.mcp.oauth.handlePendingRequest": sessionMethod(
    () => ({ requestId, result: TokenAnswer() }),
    ({ requestId: id, result }, { session }) => ({
      success: session.requests.answer("mcp_oauth", id, result) === "accepted",
    }),
  ),
  // The server never sends this request, so an answer finds none pending.
  "session.ui.handlePendingAutoModeSwitch": sessionMethod(
    () => ({ requestId, response: z.enum(["yes", "yes_always", "no"]) }),
    () => ({ success: false }),
  ),
  "session.ui.handlePendingSessionLimitsExhausted": sessionMethod(
    () => ({ requestId, response: LimitsAnswer() }),
    ({ requestId: id, response }, { session }) => ({
      success: session.requests.answer("session_limits_exhausted", id, response) === "accepted",
    }),
  ),
  "session.ui.handlePendingExitPlanMode": sessionMethod(
    () => ({
      requestId,
      response: z.object({
        approved: z.boolean(),
        selectedAction: z.enum(["exit_only", "interactive", "autopilot", "autopilot_fleet"]).exactOptional(),
        autoApproveEdits: z.boolean().exactOptional(),
        feedback: z.string().exactOptional(),
      }),
    }),
    ({ requestId: id, response }, { session }) => ({
      success: session.requests.answer("exit_plan_mode", id, response) === "accepted",
    }),
  ),
};
