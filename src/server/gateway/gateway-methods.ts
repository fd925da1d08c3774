/** The methods of the gateway. All others of the protocol need the session in the process of the server. */

import * as z from "zod";
import type { Json } from "../../lib/json.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import type { AnyAnswer, RequestKind } from "../../session/requests/requests.ts";
import { permissionResult } from "../clients/permission-decision.ts";
import { promptRequest } from "../clients/prompt-request.ts";
import { connectionMethods } from "../methods/host/connection.ts";
import { Filter, fits, metadataOf } from "../methods/session/sessions.ts";
import { createParams, resumeParams, traceOf, traceParams } from "../sessions/session-options.ts";
import { type GatewayCall, type GatewayMethod, method, ofSession } from "./gateway-method.ts";
import { surfaceMethods } from "./surface-methods.ts";

const requestId = z.string();
const JsonValue: z.ZodType<Json> = z.json();

const leave = method(
  () => ofSession({}),
  ({ sessionId }, { gateway, connection }) => {
    gateway.leave(connection, sessionId);
    return { success: true };
  },
);

/** Stores the answer that `make` returns for an open request of this kind. */
async function answer(
  { gateway }: GatewayCall,
  { sessionId, requestId: id, kind }: { sessionId: string; requestId: string; kind: RequestKind },
  make: (asked: { readonly data: unknown }) => AnyAnswer,
): Promise<{ success: boolean }> {
  const row = await gateway.sessions.request(sessionId, id);
  if (row?.kind !== kind) return { success: false };
  return { success: await gateway.sessions.answer({ sessionId, requestId: id, kind, answer: make(row) }) };
}

/** Decisions that outlive a session would change the settings of a worker. */
const FOR_GOOD: ReadonlySet<string> = new Set(["approve-for-location", "approved-for-location", "approve-permanently"]);

const conversation: Readonly<Record<string, GatewayMethod>> = {
  "session.create": method(createParams, (params, { gateway, connection }) => gateway.create(connection, params)),
  "session.resume": method(resumeParams, (params, { gateway, connection }) => gateway.resume(connection, params)),
  "session.send": method(
    () => ofSession({ prompt: z.string().min(1), attachments: z.array(z.unknown()).optional(), ...traceParams() }),
    async ({ sessionId, prompt, attachments = [], ...how }, { gateway }) => {
      if (attachments.length > 0) {
        throw new TroupeError("usage", "Attachments cannot be sent to a session that workers run.", {
          hint: "Put the files into the repository, or the text into the prompt.",
        });
      }
      return { messageId: await (await gateway.require(sessionId)).send(prompt, traceOf(how)) };
    },
  ),
  "session.abort": method(
    () => ofSession({}),
    async ({ sessionId }, { gateway }) => {
      await gateway.sessions.abort(sessionId);
      return { success: true };
    },
  ),
  "session.getMessages": method(
    () => ofSession({}),
    async ({ sessionId }, { gateway }) => {
      const events: SessionEvent[] = [];
      const { store } = gateway.sessions;
      if ((await store.revision(sessionId)) === undefined) return { events };
      for await (const event of store.events(sessionId)) events.push(event);
      return { events };
    },
  ),
  "session.destroy": leave,
  "session.detach": leave,
};

const answers: Readonly<Record<string, GatewayMethod>> = {
  "session.permissions.handlePendingPermissionRequest": method(
    () => ofSession({ requestId, result: z.object({ kind: z.string() }).loose() }),
    ({ result, ...given }, call) => {
      // It keeps waiting for a client that has a user.
      if (result.kind === "user-not-available") return { success: false };
      if (FOR_GOOD.has(result.kind)) {
        throw new TroupeError("usage", "Sessions that workers run take decisions for one call or for the session.", {
          hint: "Use approve-once or approve-for-session, or add a rule to the workers.",
        });
      }
      return answer(call, { ...given, kind: "permission" }, ({ data }) => {
        const { permissionRequest } = data as { permissionRequest: Parameters<typeof permissionResult>[1] };
        return permissionResult(result, permissionRequest, { locationKey: () => "" });
      });
    },
  ),
  "session.permissions.pendingRequests": method(
    () => ofSession({}),
    async ({ sessionId }, { gateway }) => ({
      items: (await gateway.sessions.requests(sessionId)).flatMap(({ id, data }) =>
        data.kind === "permission" ? [{ requestId: id, request: promptRequest(data.permissionRequest) }] : [],
      ),
    }),
  ),
  "session.tools.handlePendingToolCall": method(
    () => ofSession({ requestId, result: JsonValue.optional(), error: z.string().optional() }),
    ({ result, error, ...given }, call) =>
      answer(call, { ...given, kind: "external_tool" }, () =>
        error === undefined ? { result: result ?? "" } : { error },
      ),
  ),
  "session.ui.handlePendingUserInput": method(
    () => ofSession({ requestId, response: z.object({ answer: z.string(), wasFreeform: z.boolean() }) }),
    ({ response, ...given }, call) => answer(call, { ...given, kind: "user_input" }, () => response),
  ),
  "session.ui.handlePendingExitPlanMode": method(
    () =>
      ofSession({
        requestId,
        response: z.object({
          approved: z.boolean(),
          selectedAction: z.enum(["exit_only", "interactive", "autopilot", "autopilot_fleet"]).exactOptional(),
          autoApproveEdits: z.boolean().exactOptional(),
          feedback: z.string().exactOptional(),
        }),
      }),
    ({ response, ...given }, call) => answer(call, { ...given, kind: "exit_plan_mode" }, () => response),
  ),
  "session.ui.handlePendingElicitation": method(
    () =>
      ofSession({
        requestId,
        result: z.object({
          action: z.enum(["accept", "decline", "cancel"]),
          content: z.record(z.string(), JsonValue).exactOptional(),
        }),
      }),
    ({ result, ...given }, call) => answer(call, { ...given, kind: "elicitation" }, () => result),
  ),
};

const stored: Readonly<Record<string, GatewayMethod>> = {
  "session.list": method(
    () => z.object({ filter: Filter.optional() }),
    async ({ filter }, { gateway }) => ({
      sessions: (await gateway.sessions.store.list()).filter((one) => fits(one, filter)).map(metadataOf),
    }),
  ),
  "session.getLastId": method(
    () => z.object({}),
    async (_, { gateway }) => {
      const [sessionId] = await gateway.sessions.store.ids();
      return sessionId === undefined ? {} : { sessionId };
    },
  ),
  "session.getMetadata": method(
    () => ofSession({}),
    async ({ sessionId }, { gateway }) => {
      const found = (await gateway.sessions.store.list()).find((summary) => summary.sessionId === sessionId);
      return found ? { session: metadataOf(found) } : {};
    },
  ),
  "session.delete": method(
    () => ofSession({}),
    async ({ sessionId }, { gateway }) => {
      if (!(await gateway.sessions.exists(sessionId)))
        return { success: false, error: `Session file not found for ${sessionId}` };
      await gateway.sessions.remove(sessionId);
      return { success: true };
    },
  ),
};

export const gatewayMethods: Readonly<Record<string, GatewayMethod>> = {
  // They use only the connection and `shutDown` of the server.
  ...(connectionMethods as unknown as Readonly<Record<string, GatewayMethod>>),
  ...conversation,
  ...answers,
  ...stored,
  ...surfaceMethods,
};
