/** Pending requests of an earlier process, and how they are matched when their call resumes. */
import type { EventData } from "../../protocol/event.ts";
import type { AnyAnswer, RequestKind } from "./requests.ts";

/** Kinds of requests that a later process can resume. */
export type PendingKind = "permission" | "external_tool" | "user_input" | "exit_plan_mode";

export interface PendingRequest {
  readonly kind: PendingKind;
  readonly requestId: string;
  readonly toolCallId: string;
  /** The data from the log; empty if only the id is logged. */
  readonly data: object;
  /** It was asked in another working directory, where the same text meant something else. */
  readonly isFromOtherFolder?: boolean;
  /** An earlier answer, so that the same is not asked twice. */
  readonly answer?: AnyAnswer;
}

const kinds: readonly RequestKind[] = ["permission", "external_tool", "user_input", "exit_plan_mode"];

export const waitsForLater = (kind: RequestKind): kind is PendingKind => kinds.includes(kind);

/** Returns the call that a request is made for. */
export function toolCallOf(data: object, options: { readonly toolCallId?: string }): string | undefined {
  const { toolCallId, permissionRequest } = data as Partial<EventData<"user_input.requested">> &
    Partial<EventData<"permission.requested">>;
  return options.toolCallId ?? permissionRequest?.toolCallId ?? toolCallId;
}

/**
 * Compares a call's new request with its pending one. A user approves exactly what is shown, so a permission for
 * something else is a different request.
 */
export function isSameRequest(left: PendingRequest, asked: object): "same" | "changed" | "other" {
  if (left.kind !== "permission") return "same";
  if (left.isFromOtherFolder) return left.answer === undefined ? "changed" : "other";
  const [before, now] = [left.data, asked] as Partial<EventData<"permission.requested">>[];
  if (JSON.stringify(before?.permissionRequest) === JSON.stringify(now?.permissionRequest)) return "same";
  const isPending = left.answer === undefined;
  return isPending && before?.permissionRequest?.kind === now?.permissionRequest?.kind ? "changed" : "other";
}
