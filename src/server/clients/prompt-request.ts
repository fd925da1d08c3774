import type { PermissionRequest } from "../../session/requests/requests.ts";

/** A permission as it is put to a person: for a command its programs in place of what was found in it. */
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
    ...(warning !== undefined && { warning }),
    ...(requestSandboxBypass !== undefined && { requestSandboxBypass }),
    ...(requestSandboxBypassReason !== undefined && { requestSandboxBypassReason }),
    ...(toolCallId !== undefined && { toolCallId }),
  };
}
