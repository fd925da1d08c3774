/** Requests that a session was left with: how they are found again when the call that made them goes on. */
import type { EventData } from "../../protocol/event.ts";
import type { AnyAnswer, RequestKind } from "./requests.ts";

/** What a process can be gone on with that it never began by itself. */
export type PendingKind = "permission" | "external_tool" | "user_input" | "exit_plan_mode";

export interface LeftRequest {
  readonly kind: PendingKind;
  readonly requestId: string;
  readonly toolCallId: string;
  /** As it stands in the log; empty where only its id does. */
  readonly data: object;
  /** It was asked in another folder, where the same words meant something else. */
  readonly isElsewhere?: boolean;
  /** What was answered before: the same is not asked twice. */
  readonly answer?: AnyAnswer;
}

const kinds: readonly RequestKind[] = ["permission", "external_tool", "user_input", "exit_plan_mode"];

export const waitsForLater = (kind: RequestKind): kind is PendingKind => kinds.includes(kind);

/** The call that a request is made for. */
export function toolCallOf(data: object, options: { readonly toolCallId?: string }): string | undefined {
  const { toolCallId, permissionRequest } = data as Partial<EventData<"user_input.requested">> &
    Partial<EventData<"permission.requested">>;
  return options.toolCallId ?? permissionRequest?.toolCallId ?? toolCallId;
}

/**
 * Whether the same call asks the same again. A person approves what they are shown: where a permission would be about
 * something else by now, it is another one.
 */
export function isSameRequest(left: LeftRequest, asked: object): "same" | "changed" | "other" {
  if (left.kind !== "permission") return "same";
  if (left.isElsewhere) return left.answer === undefined ? "changed" : "other";
  const [before, now] = [left.data, asked] as Partial<EventData<"permission.requested">>[];
  if (JSON.stringify(before?.permissionRequest) === JSON.stringify(now?.permissionRequest)) return "same";
  const isPending = left.answer === undefined;
  return isPending && before?.permissionRequest?.kind === now?.permissionRequest?.kind ? "changed" : "other";
}
