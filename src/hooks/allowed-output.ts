/**
 * Drops output fields that a hook may not use. A project's hook may only tighten; some fields are reserved for
 * embedding programs.
 */
import type { HookDefinition } from "./hooks.ts";
import type { HookOutput, HookPoint } from "./points.ts";

/** Fields that only a program that embeds troupe may set. */
const programOnly: Partial<Record<HookPoint, readonly string[]>> = {
  sessionStart: ["modifiedConfig"],
  sessionEnd: ["suppressOutput", "cleanupActions", "sessionSummary"],
  errorOccurred: ["suppressOutput", "errorHandling", "retryCount", "userNotification"],
};

/** Fields that act on behalf of the user. A project's hook may not set them. */
const userOnlyFields: Partial<Record<HookPoint, readonly string[]>> = {
  userPromptSubmitted: ["modifiedPrompt", "suppressOutput", "handled"],
  userPromptTransformed: ["modifiedTransformedPrompt"],
};

export function allowedOutput<P extends HookPoint>(
  definition: Pick<HookDefinition, "source"> & { readonly point: P },
  output: HookOutput<P>,
): HookOutput<P> {
  const { point, source } = definition;
  const ignored: readonly string[] = [
    ...(source.scope === "program" ? [] : (programOnly[point] ?? [])),
    ...(source.owner === "project" ? (userOnlyFields[point] ?? []) : []),
  ];
  const allowed = Object.fromEntries(Object.entries(output).filter(([field]) => !ignored.includes(field)));
  return (source.owner === "project" ? withoutApproval(allowed) : allowed) as HookOutput<P>;
}

function withoutApproval(said: Record<string, unknown>): Record<string, unknown> {
  const { permissionDecision, permissionDecisionReason: _, ...rest } = said;
  if (permissionDecision === "allow") return rest;
  if (said.behavior === "allow") return {};
  return said;
}
