/**
 * The kinds of requests that the broker carries, their answers and their events. This folder holds permission and client
 * requests, client tools, and the recovery of both after a restart.
 */
import { defined } from "../../lib/defined.ts";
import type { Json } from "../../lib/json.ts";
import type { Emit, EventData } from "../../protocol/event.ts";
import type { PlanAction } from "../../tools/user/user.ts";

/** Returns the events for the start and the end of a request. */
export function eventsOf(kind: RequestKind): [asked: keyof BrokerEvents, done: keyof BrokerEvents] {
  if (kind === "mcp_oauth") return ["mcp.oauth_required", "mcp.oauth_completed"];
  return [`${kind}.requested`, `${kind}.completed`];
}

/** Emits an event of a request. Type and data match because both derive from the kind. */
export function announce(emit: Emit, type: keyof BrokerEvents, data: object): Promise<void> {
  return emit(type, data as BrokerEvents[keyof BrokerEvents]);
}

export function completedData(kind: RequestKind, outcome: AnyRequestOutcome, reason: string | undefined): object {
  if (kind === "sampling" || kind === "external_tool") return {};
  // A token is passed only to the caller and never announced.
  if (kind === "mcp_oauth") return { outcome: typeof outcome === "object" && isToken(outcome) ? "token" : "cancelled" };
  if (kind === "session_limits_exhausted") {
    return { response: typeof outcome === "object" ? outcome : { action: "cancel" } };
  }
  if (typeof outcome === "object") return kind === "permission" ? { result: outcome } : outcome;
  switch (kind) {
    case "permission":
      if (outcome !== "cancelled") return { result: { kind: COULD_NOT_ASK } };
      return { result: { kind: "cancelled", ...defined({ reason }) } };
    case "elicitation":
      return { action: "cancel" };
    case "exit_plan_mode":
      return { approved: false };
    case "auto_mode_switch":
      return { response: "no" };
    case "user_input":
      return {};
  }
}

const isToken = (answer: AnyAnswer): boolean => "kind" in answer && answer.kind === "token";

const COULD_NOT_ASK = "denied-no-approval-rule-and-could-not-request-from-user";

export type RequestKind = keyof AnswersByKind;
export type RequestData<K extends RequestKind> = Omit<BrokerEvents[AskedAs<K>], "requestId">;
export type AnyRequest = {
  [K in RequestKind]: { readonly kind: K; readonly requestId: string } & RequestData<K>;
}[RequestKind];
export type AnyAnswer = AnswersByKind[RequestKind];
export type AnyRequestOutcome = AnyAnswer | "unavailable" | "cancelled";

export interface AnswersByKind {
  permission: PermissionResult;
  user_input: { readonly answer: string; readonly wasFreeform: boolean };
  elicitation: { readonly action: "accept" | "decline" | "cancel"; readonly content?: Record<string, Json> };
  sampling: { readonly action: "success" | "failure" | "cancelled"; readonly result?: Json; readonly error?: string };
  external_tool: { readonly result?: Json; readonly error?: string };
  exit_plan_mode: {
    readonly approved: boolean;
    readonly selectedAction?: PlanAction;
    readonly autoApproveEdits?: boolean;
    readonly feedback?: string;
  };
  /** Whether to continue with a model that the provider chooses, after a limit was reached. */
  auto_mode_switch: { readonly response: "yes" | "yes_always" | "no" };
  /** Whether the session may exceed its cost limit. */
  session_limits_exhausted: EventData<"session_limits_exhausted.completed">["response"];
  mcp_oauth:
    | { readonly kind: "token"; readonly accessToken: string; readonly tokenType?: string; readonly expiresIn?: number }
    | { readonly kind: "cancelled" };
}

/** The events of requests, in the wire's format. */
type BrokerEvents = { [T in AskedAs<RequestKind> | EndedAs<RequestKind>]: EventData<T> };
type AskedAs<K extends RequestKind> = K extends "mcp_oauth"
  ? "mcp.oauth_required"
  : `${Exclude<K, "mcp_oauth">}.requested`;
type EndedAs<K extends RequestKind> = K extends "mcp_oauth"
  ? "mcp.oauth_completed"
  : `${Exclude<K, "mcp_oauth">}.completed`;

export type PermissionRequest = EventData<"permission.requested">["permissionRequest"];
type PermissionResult = EventData<"permission.completed">["result"];
