import { defined } from "../../lib/defined.ts";
import type { PermissionRequest } from "../../session/requests/requests.ts";

/** Returns a permission request as shown to a user: for a command, its programs instead of the parsed details. */
export function promptRequest(request: PermissionRequest): object {
  if (request.kind !== "shell") return request;
  const { fullCommandText, intention, commands, canOfferSessionApproval, warning, toolCallId } = request;
  const { requestSandboxBypass, requestSandboxBypassReason } = request;
  return {
    kind: "commands",
    fullCommandText,
    intention,
    commandIdentifiers: commands.map(({ identifier }) => identifier),
    canOfferSessionApproval,
    ...defined({ warning, requestSandboxBypass, requestSandboxBypassReason, toolCallId }),
  };
}
