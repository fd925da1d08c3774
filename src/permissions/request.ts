/** Builds the permission requests that users and clients see on the wire. */
import { defined } from "../lib/defined.ts";
import type { Json } from "../lib/json.ts";
import { counted, unseenCharacters, visible } from "../lib/visible.ts";
import type { Access } from "../protocol/permission.ts";
import { MAX_SHOWN_COMMAND, OUTSIDE } from "../protocol/permission-text.ts";
import { type Approval, approvalFor, canApproveCommands } from "./approvals.ts";
import { decide } from "./decide.ts";
import type { PermissionQuestion, Policy } from "./policy.ts";
import type { ShellAnalysis } from "./shell/analyse.ts";

/** `data.permissionRequest` of `permission.requested`. */
export type PermissionRequestData = { canOfferSessionApproval?: boolean } & Request;

type Request =
  | {
      kind: "shell";
      toolCallId?: string;
      fullCommandText: string;
      intention: string;
      commands: { identifier: string; readOnly: boolean }[];
      possiblePaths: string[];
      possibleUrls: { url: string }[];
      hasWriteFileRedirection: boolean;
      canOfferSessionApproval: boolean;
      warning?: string;
      requestSandboxBypass?: boolean;
      requestSandboxBypassReason?: string;
    }
  | {
      kind: "write";
      toolCallId?: string;
      fileName: string;
      diff: string;
      intention: string;
      canOfferSessionApproval: boolean;
      namedAs?: string;
    }
  | { kind: "read"; toolCallId?: string; path: string; intention: string }
  | { kind: "url"; toolCallId?: string; url: string; intention: string }
  | {
      kind: "mcp";
      toolCallId?: string;
      serverName: string;
      toolName: string;
      toolTitle: string;
      toolDescription?: string;
      args?: Json;
      readOnly: boolean;
    }
  | {
      kind: "memory";
      toolCallId?: string;
      action?: "store" | "vote";
      fact: string;
      subject?: string;
      citations?: string;
      scope?: "repository" | "user";
      direction?: "upvote" | "downvote";
      reason?: string;
    }
  | { kind: "custom-tool"; toolCallId?: string; toolName: string; toolDescription: string; args?: Json }
  | { kind: "extension-permission-access"; toolCallId?: string; extensionName: string; capabilities: string[] }
  | { kind: "extension-env-access"; toolCallId?: string; extensionName: string; environmentVariables: string[] }
  | { kind: "hook"; toolCallId?: string; toolName: string; toolArgs?: Json; hookMessage?: string };

const MAX_SHOWN = 200;

export interface SandboxStatus {
  /** True when commands run in a sandbox or not at all. */
  readonly required: boolean;
  /** The reason why there is no sandbox; undefined if there is one. */
  readonly absence?: string;
}

/** Facts about a request that are not in its question. */
export interface RequestFacts {
  /** False when "for this session" would not change the next question of this kind. */
  readonly isRememberable?: boolean;
  /** The reason why commands run without a sandbox, if they do. */
  readonly withoutSandbox?: string | undefined;
}

export function permissionRequest(
  question: PermissionQuestion,
  toolCallId?: string,
  { isRememberable = true, withoutSandbox }: RequestFacts = {},
): PermissionRequestData {
  const { access } = question;
  const call = {
    ...defined({ toolCallId }),
    ...(!isRememberable && { canOfferSessionApproval: false }),
  };
  switch (access.kind) {
    case "shell":
      return { ...shellRequest(access, question, withoutSandbox), ...call };
    case "write": {
      const { path: fileName, diff, intention, written } = access;
      const named = written !== undefined && { namedAs: written };
      return { kind: "write", fileName, diff, intention, canOfferSessionApproval: true, ...named, ...call };
    }
    case "read":
      return { kind: "read", path: access.path, intention: access.intention ?? `Read ${access.path}`, ...call };
    case "url":
      return { kind: "url", url: access.url, intention: access.intention, ...call };
    case "mcp": {
      // Clients show the description unchanged. Unlike a command or an argument it is only read, so it can be escaped.
      const { toolDescription: words } = access;
      return { ...access, ...(words !== undefined && { toolDescription: visible(words) }), ...call };
    }
    case "memory":
    case "custom-tool":
    case "hook":
      return { ...access, ...call };
    case "extension-permission-access":
      return { ...access, capabilities: [...access.capabilities], ...call };
    case "extension-env-access":
      return { ...access, environmentVariables: [...access.environmentVariables], ...call };
    case "sandbox-off":
      return { ...bypassRequest(access), ...call };
    // The wire has no kind for these two, so a client sees them as custom tools.
    case "mcp-sampling": {
      const toolDescription = `The MCP server ${access.serverName} asks for a model call at your cost.`;
      const args = access.args === undefined ? {} : { args: access.args };
      return { kind: "custom-tool", toolName: "mcp-sampling", toolDescription, ...args, ...call };
    }
    case "agent":
      return {
        kind: "custom-tool",
        toolName: `agent(${access.agentName})`,
        toolDescription: access.intention,
        ...call,
      };
  }
}

/**
 * Returns whether the answer "for this session" would apply the next time. It never overrides rules and policies that
 * ask.
 */
export function isRememberable(policy: Policy, question: PermissionQuestion): boolean {
  const { access } = question;
  // URLs are remembered as rules; the wire has no remembered answer for the other two.
  if (access.kind === "url") return decide(policy, question).by === "default";
  if (access.kind === "agent" || access.kind === "mcp-sampling") return false;
  const approval = offeredApproval(question);
  if (approval === undefined) return false;
  return decide({ ...policy, sessionApprovals: [...policy.sessionApprovals, approval] }, question).decision === "allow";
}

/** Returns the approval that "for this session" or "for this location" would store. */
export function offeredApproval(question: PermissionQuestion): Approval | undefined {
  return approvalFor(question.access, question.analysis);
}

function shellRequest(
  access: Extract<Access, { kind: "shell" }>,
  { analysis, warning: how }: PermissionQuestion,
  withoutSandbox: string | undefined,
): Extract<PermissionRequestData, { kind: "shell" }> {
  const warnings = [
    withoutSandbox !== undefined && `No sandbox: it runs with all your rights. ${withoutSandbox}`,
    how,
    analysis !== undefined && shellWarning(analysis),
    ...textWarnings(access.command),
  ].filter((warning) => typeof warning === "string");
  return {
    kind: "shell",
    fullCommandText: access.command,
    intention: access.intention,
    commands: shownCommands(analysis),
    possiblePaths: analysis?.paths.slice(0, MAX_SHOWN) ?? [],
    possibleUrls: analysis?.urls.slice(0, MAX_SHOWN).map((url) => ({ url })) ?? [],
    hasWriteFileRedirection: analysis?.redirections.some((one) => one.write) ?? false,
    canOfferSessionApproval: analysis !== undefined && canApproveCommands(analysis) && isShownWhole(access.command),
    ...(warnings.length > 0 && { warning: warnings.join(" ") }),
  };
}

/** Shows the command, and that it asks to run without the sandbox. */
function bypassRequest(access: Extract<Access, { kind: "sandbox-off" }>): PermissionRequestData {
  return {
    kind: "shell",
    fullCommandText: access.command,
    intention: access.intention,
    commands: [],
    possiblePaths: [],
    possibleUrls: [],
    hasWriteFileRedirection: false,
    canOfferSessionApproval: false,
    requestSandboxBypass: true,
    requestSandboxBypassReason: access.intention,
    warning: [OUTSIDE, ...textWarnings(access.command)].join(" "),
  };
}

const isShownWhole = (command: string): boolean => command.length <= MAX_SHOWN_COMMAND;

/** Returns warnings about parts of a long or unusual command that are easy to overlook. */
function textWarnings(command: string): string[] {
  const unseen = unseenCharacters(command);
  const length = `It has ${counted(command.length)} characters and cannot be shown in full: the hidden part may run anything.`;
  return [
    ...(unseen > 0 ? [`It has ${counted(unseen)} invisible characters.`] : []),
    ...(isShownWhole(command) ? [] : [length]),
  ];
}

function shownCommands(analysis: ShellAnalysis | undefined): { identifier: string; readOnly: boolean }[] {
  const shown = new Map<string, boolean>();
  for (const { identifier, readOnly } of analysis?.commands ?? []) {
    shown.set(identifier, readOnly && (shown.get(identifier) ?? true));
    if (shown.size >= MAX_SHOWN) break;
  }
  return [...shown].map(([identifier, readOnly]) => ({ identifier, readOnly }));
}

function shellWarning(analysis: ShellAnalysis): string | undefined {
  if (analysis.plain) return undefined;
  return `Not a plain command: ${analysis.opaqueReasons.join(", ")}. Read all ${analysis.text.length} characters.`;
}
