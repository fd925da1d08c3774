import type { PermissionDecision, PermissionRequest } from "../sdk/config.ts";

export interface Choice {
  readonly optionId: string;
  readonly name: string;
  readonly kind: "allow_once" | "allow_always" | "reject_once";
  readonly decision: PermissionDecision;
}

export const choices: readonly Choice[] = [
  { optionId: "once", name: "Allow", kind: "allow_once", decision: { kind: "approve-once" } },
  {
    optionId: "session",
    name: "Allow for this session",
    kind: "allow_always",
    decision: { kind: "approve-for-session" },
  },
  { optionId: "reject", name: "Reject", kind: "reject_once", decision: { kind: "reject" } },
];

/** A question as an editor shows it. The whole request goes with it, its kind included, for editors that show more. */
export function askedFor(request: PermissionRequest): object {
  const { title, kind } = shown(request);
  return {
    toolCall: {
      toolCallId: request.toolCallId ?? "",
      title,
      kind,
      status: "pending",
      rawInput: request,
      content: contentOf(request),
    },
    options: choices.map(({ optionId, name, kind: how }) => ({ optionId, name, kind: how })),
    _meta: { "troupe/permission": request.kind },
  };
}

function shown(request: PermissionRequest): { title: string; kind: string } {
  switch (request.kind) {
    case "shell":
      return { title: request.fullCommandText, kind: "execute" };
    case "write":
      return { title: `Change ${request.fileName}`, kind: "edit" };
    case "read":
      return { title: `Read ${request.path}`, kind: "read" };
    case "url":
      return { title: `Fetch ${request.url}`, kind: "fetch" };
    case "mcp":
      return { title: `${request.serverName}: ${request.toolTitle}`, kind: "other" };
    case "memory":
      return {
        title: request.action === "vote" ? `Vote on: ${request.fact}` : `Remember: ${request.fact}`,
        kind: "other",
      };
    case "extension-permission-access":
      return { title: `Let the extension ${request.extensionName}: ${request.capabilities.join(", ")}`, kind: "other" };
    case "extension-env-access": {
      const names = request.environmentVariables.join(", ");
      return { title: `Give the extension ${request.extensionName}: ${names}`, kind: "other" };
    }
    case "custom-tool":
    case "hook":
      return { title: request.toolName, kind: "other" };
  }
}

function contentOf(request: PermissionRequest): object[] {
  const text = (value: string): object => ({ type: "content", content: { type: "text", text: value } });
  if (request.kind === "write") return [text(request.diff)];
  if (request.kind !== "memory") return [];
  const lines = [request.fact, request.citations && `Source: ${request.citations}`, request.reason];
  return [text(lines.filter(Boolean).join("\n"))];
}
