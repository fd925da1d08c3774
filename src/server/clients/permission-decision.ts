/** Converts a client's permission decision to the form that the session records. */
import * as z from "zod";
import { isObject } from "../../lib/json.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { PermissionResult } from "../../protocol/request-events.ts";
import type { PermissionRequest } from "../../session/requests/requests.ts";

type Result = z.infer<typeof PermissionResult>;
type Approval = Extract<Result, { kind: "approved-for-session" }>["approval"];

/** Throws for an invalid decision, so that a client's mistake never counts as approval. */
export function permissionResult(
  decision: { readonly kind: string },
  asked: PermissionRequest,
  session: { locationKey(): string },
): Result {
  switch (decision.kind) {
    case "approve-once":
      return { kind: "approved" };
    case "approve-for-session": {
      const approval = shownTo(asked, givenApproval(decision)) ?? usualApproval(asked);
      // Without a rule to remember, the approval covers this request only.
      return approval ? checkResult({ kind: "approved-for-session", approval }) : { kind: "approved" };
    }
    case "approve-for-location":
      return checkResult({
        ...decision,
        kind: "approved-for-location",
        approval: shownTo(asked, givenApproval(decision)),
      });
    case "approve-permanently": {
      // Addresses become settings (`allowedAddress`). Any other approval applies to this location.
      const approval = usualApproval(asked);
      if (!approval) return { kind: "approved" };
      return checkResult({ kind: "approved-for-location", approval, locationKey: session.locationKey() });
    }
    case "reject":
      return checkResult({ ...decision, kind: "denied-interactively-by-user" });
    case "user-not-available":
      return { kind: "denied-no-approval-rule-and-could-not-request-from-user" };
    default:
      return checkResult(decision);
  }
}

/** Returns the address that this decision allows beyond the one request, if any. */
export function allowedAddress(
  decision: { readonly kind: string },
  asked: PermissionRequest,
): { url: string; domain?: string | undefined; forGood: boolean } | undefined {
  if (asked.kind !== "url") return undefined;
  const forGood = decision.kind === "approve-permanently";
  if (!forGood && decision.kind !== "approve-for-session") return undefined;
  const { domain } = z.object({ domain: forGood ? z.string().min(1) : z.string().optional() }).parse(decision);
  return { url: asked.url, domain, forGood };
}

function checkResult(result: object): Result {
  const checked = PermissionResult.safeParse(result);
  if (checked.success) return checked.data;
  throw new TroupeError("usage", `This is not a permission decision: ${JSON.stringify(result).slice(0, 200)}`);
}

const givenApproval = (decision: object): unknown =>
  z.object({ approval: z.unknown().optional() }).parse(decision).approval;

/** The wire has no field for an extension's capabilities: the answer applies to those shown with the request. */
function shownTo(asked: PermissionRequest, approval: unknown): unknown {
  if (asked.kind !== "extension-permission-access" || !isObject(approval)) return approval;
  return approval.kind === asked.kind ? { ...approval, capabilities: asked.capabilities } : approval;
}

/** Returns the approval that "for this session" means if the client does not specify one. */
function usualApproval(asked: PermissionRequest): Approval | undefined {
  if (asked.canOfferSessionApproval === false) return undefined;
  switch (asked.kind) {
    case "shell":
      return { kind: "commands", commandIdentifiers: asked.commands.map(({ identifier }) => identifier) };
    case "read":
    case "write":
    case "memory":
      return { kind: asked.kind };
    case "mcp":
      return { kind: "mcp", serverName: asked.serverName, toolName: asked.toolName };
    case "extension-permission-access":
      return { kind: asked.kind, extensionName: asked.extensionName, capabilities: asked.capabilities };
    case "extension-env-access":
      return { kind: asked.kind, extensionName: asked.extensionName, environmentVariables: asked.environmentVariables };
    case "custom-tool":
      return { kind: "custom-tool", toolName: asked.toolName };
    default:
      return undefined;
  }
}
