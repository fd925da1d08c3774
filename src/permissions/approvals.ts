/** Remembered answers, in the shape used on the wire and in `permissions-config.json`. */

import * as z from "zod";
import type { Access } from "../protocol/permission.ts";
import { isSink } from "./devices.ts";
import type { ShellAnalysis, ShellCommand } from "./shell/analyse.ts";

export const Approval = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("commands"), commandIdentifiers: z.array(z.string()) }),
  z.object({ kind: z.literal("read") }),
  z.object({ kind: z.literal("write") }),
  z.object({ kind: z.literal("mcp"), serverName: z.string(), toolName: z.string().nullable() }),
  z.object({ kind: z.literal("mcp-sampling"), serverName: z.string() }),
  z.object({ kind: z.literal("memory") }),
  z.object({ kind: z.literal("custom-tool"), toolName: z.string() }),
  z.object({ kind: z.literal("extension-management"), operation: z.string().exactOptional() }),
  z.object({
    kind: z.literal("extension-permission-access"),
    extensionName: z.string(),
    /** The capabilities shown with the question. Absent: all capabilities. */
    capabilities: z.array(z.string()).exactOptional(),
  }),
  z.object({
    kind: z.literal("extension-env-access"),
    extensionName: z.string(),
    environmentVariables: z.array(z.string()),
  }),
]);
export type Approval = z.infer<typeof Approval>;

/**
 * Returns true when a remembered answer covers this access. Shell commands are checked one by one; see
 * `approvesCommand`.
 */
export function approves(approval: Approval, access: Access): boolean {
  switch (access.kind) {
    case "read":
    case "write":
    case "memory":
      return approval.kind === access.kind;
    case "mcp": {
      if (approval.kind !== "mcp" || approval.serverName !== access.serverName) return false;
      return approval.toolName === null || approval.toolName === access.toolName;
    }
    case "custom-tool":
      return approval.kind === "custom-tool" && approval.toolName === access.toolName;
    case "mcp-sampling":
      return approval.kind === "mcp-sampling" && approval.serverName === access.serverName;
    case "extension-permission-access": {
      if (approval.kind !== access.kind || approval.extensionName !== access.extensionName) return false;
      return approval.capabilities === undefined || sameNames(approval.capabilities, access.capabilities);
    }
    case "extension-env-access": {
      if (approval.kind !== access.kind || approval.extensionName !== access.extensionName) return false;
      return sameNames(approval.environmentVariables, access.environmentVariables);
    }
    case "shell":
    case "url":
    case "sandbox-off":
    case "hook":
    case "agent":
      return false;
  }
}

/** An answer covers exactly the names that were shown with the question. */
const sameNames = (one: readonly string[], other: readonly string[]): boolean =>
  JSON.stringify([...one].sort()) === JSON.stringify([...other].sort());

export function approvesCommand(approval: Approval, command: ShellCommand): boolean {
  if (approval.kind !== "commands" || !command.certain || command.escapes) return false;
  return approval.commandIdentifiers.includes(command.identifier);
}

/** Returns the approval that "for this session" would store, or undefined when that answer is not possible. */
export function approvalFor(access: Access, analysis?: ShellAnalysis): Approval | undefined {
  switch (access.kind) {
    case "shell": {
      if (analysis === undefined || !canApproveCommands(analysis)) return undefined;
      return { kind: "commands", commandIdentifiers: [...new Set(analysis.commands.map((one) => one.identifier))] };
    }
    case "read":
    case "write":
    case "memory":
      return { kind: access.kind };
    case "mcp":
      return { kind: "mcp", serverName: access.serverName, toolName: access.toolName };
    case "custom-tool":
      return { kind: "custom-tool", toolName: access.toolName };
    case "mcp-sampling":
      return { kind: "mcp-sampling", serverName: access.serverName };
    case "extension-permission-access":
      return { ...access, capabilities: [...access.capabilities] };
    case "extension-env-access":
      return { ...access, environmentVariables: [...access.environmentVariables] };
    case "url":
    case "sandbox-off":
    case "hook":
    case "agent":
      return undefined;
  }
}

/** Only commands that were parsed without doubt can be approved for later. */
export function canApproveCommands(analysis: ShellAnalysis): boolean {
  const { plain, commands, redirections } = analysis;
  const writes = redirections.some((one) => one.write && !isSink(one.target));
  return plain && commands.length > 0 && !writes && commands.every((command) => command.certain && !command.escapes);
}
