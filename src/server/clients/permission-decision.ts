/** What a client decides about a permission, in the words in which the session records it. */
import * as z from "zod";
import { isObject } from "../../lib/json.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { PermissionResult } from "../../protocol/request-events.ts";
import type { PermissionRequest } from "../../session/requests/requests.ts";

type Result = z.infer<typeof PermissionResult>;
type Approval = Extract<Result, { kind: "approved-for-session" }>["approval"];

/** Throws for what is no decision, so that a slip of a client never counts as one. */
export function permissionResult(
  decision: { readonly kind: string },
  asked: PermissionRequest,
  place: { locationKey(): string },
): Result {
  switch (decision.kind) {
    case "approve-once":
      return { kind: "approved" };
    case "approve-for-session": {
      const approval = shownTo(asked, givenApproval(decision)) ?? usualApproval(asked);
      // What cannot be remembered is approved this time.
      return approval ? completed({ kind: "approved-for-session", approval }) : { kind: "approved" };
    }
    case "approve-for-location":
      return completed({
        ...decision,
        kind: "approved-for-location",
        approval: shownTo(asked, givenApproval(decision)),
      });
    case "approve-permanently": {
      // Addresses become settings (`allowedAddress`); of anything else, what is approved is approved in this place.
      const approval = usualApproval(asked);
      if (!approval) return { kind: "approved" };
      return completed({ kind: "approved-for-location", approval, locationKey: place.locationKey() });
    }
    case "reject":
      return completed({ ...decision, kind: "denied-interactively-by-user" });
    case "user-not-available":
      return { kind: "denied-no-approval-rule-and-could-not-request-from-user" };
    default:
      return completed(decision);
  }
}

/** An address that this decision allows beyond the one request. */
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

function completed(result: object): Result {
  const checked = PermissionResult.safeParse(result);
  if (checked.success) return checked.data;
  throw new TroupeError("usage", `This is no decision about a permission: ${JSON.stringify(result).slice(0, 200)}`);
}

const givenApproval = (decision: object): unknown =>
  z.object({ approval: z.unknown().optional() }).parse(decision).approval;

/** The wire has no word for what an extension may do: an answer is about what was shown with the question. */
function shownTo(asked: PermissionRequest, approval: unknown): unknown {
  if (asked.kind !== "extension-permission-access" || !isObject(approval)) return approval;
  return approval.kind === asked.kind ? { ...approval, capabilities: asked.capabilities } : approval;
}

/** What "for this session" means where the client does not say. */
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
