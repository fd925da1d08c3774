import type { PermissionOption, ToolCallContent, ToolCallUpdate, ToolKind } from "@agentclientprotocol/sdk";
import { permissionText } from "../protocol/permission-text.ts";
import type { PermissionDecision, PermissionRequest } from "../sdk/config.ts";
import { textContent } from "./content.ts";
import { fileChanges } from "./diff-content.ts";

interface Choice {
  readonly option: PermissionOption;
  readonly decision: PermissionDecision;
}

const choices: readonly Choice[] = [
  { option: { optionId: "once", name: "Allow", kind: "allow_once" }, decision: { kind: "approve-once" } },
  {
    option: { optionId: "session", name: "Allow for this session", kind: "allow_always" },
    decision: { kind: "approve-for-session" },
  },
  { option: { optionId: "reject", name: "Reject", kind: "reject_once" }, decision: { kind: "reject" } },
];

/** Returns the possible answers to this request. */
export function choicesFor(request: PermissionRequest): readonly Choice[] {
  const { canAllowForSession } = permissionText(request);
  return canAllowForSession ? choices : choices.filter(({ option }) => option.kind !== "allow_always");
}

/** Returns a request as an editor shows it. It includes the whole request with its kind, for editors that show more. */
export function askedFor(
  request: PermissionRequest,
  { toolCallId, cwd }: { readonly toolCallId: string; readonly cwd: string },
): { toolCall: ToolCallUpdate; options: PermissionOption[]; _meta: Record<string, unknown> } {
  const { title, text } = permissionText(request);
  return {
    toolCall: {
      toolCallId,
      title,
      kind: kinds[request.kind],
      status: "pending",
      rawInput: request,
      // The text comes first: it names what a diff would hide.
      content: [textContent(text), ...diffsOf(request, cwd)],
    },
    options: choicesFor(request).map(({ option }) => option),
    _meta: { "troupe/permission": request.kind },
  };
}

function diffsOf(request: PermissionRequest, cwd: string): ToolCallContent[] {
  if (request.kind !== "write") return [];
  return fileChanges(request.diff, cwd).diffs.map((diff) => ({ type: "diff", ...diff }));
}

/** The editor's tool kind for each permission kind. */
const kinds: Readonly<Record<PermissionRequest["kind"], ToolKind>> = {
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
