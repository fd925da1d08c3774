import { permissionText } from "../protocol/permission-text.ts";
import type { PermissionDecision, PermissionRequest } from "../sdk/config.ts";

export interface Choice {
  readonly optionId: string;
  readonly name: string;
  readonly kind: "allow_once" | "allow_always" | "reject_once";
  readonly decision: PermissionDecision;
}

const choices: readonly Choice[] = [
  { optionId: "once", name: "Allow", kind: "allow_once", decision: { kind: "approve-once" } },
  {
    optionId: "session",
    name: "Allow for this session",
    kind: "allow_always",
    decision: { kind: "approve-for-session" },
  },
  { optionId: "reject", name: "Reject", kind: "reject_once", decision: { kind: "reject" } },
];

/** The answers that can be given to this question. */
export function choicesFor(request: PermissionRequest): readonly Choice[] {
  const { canAllowForSession } = permissionText(request);
  return canAllowForSession ? choices : choices.filter(({ kind }) => kind !== "allow_always");
}

/** A question as an editor shows it. The whole request goes with it, its kind included, for editors that show more. */
export function askedFor(request: PermissionRequest): object {
  const { title, text } = permissionText(request);
  return {
    toolCall: {
      toolCallId: request.toolCallId ?? "",
      title,
      kind: kinds[request.kind],
      status: "pending",
      rawInput: request,
      content: [{ type: "content", content: { type: "text", text } }],
    },
    options: choicesFor(request).map(({ optionId, name, kind: how }) => ({ optionId, name, kind: how })),
    _meta: { "troupe/permission": request.kind },
  };
}

/** The editor's word for each kind. */
const kinds: Readonly<Record<PermissionRequest["kind"], "execute" | "edit" | "read" | "fetch" | "other">> = {
  shell: "execute",
  write: "edit",
  read: "read",
  url: "fetch",
  mcp: "other",
  memory: "other",
  "custom-tool": "other",
  hook: "other",
  "extension-permission-access": "other",
  "extension-env-access": "other",
};
