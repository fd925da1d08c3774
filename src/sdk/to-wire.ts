import type { ResumeConfig, SectionTransform, SessionConfig, SystemMessage } from "./config.ts";

/** Returns the params of `session.create` and `session.resume`. Functions are replaced by flags that say they exist. */
export function toWire(config: SessionConfig & ResumeConfig): Record<string, unknown> {
  const {
    tools,
    commands,
    systemMessage,
    hooks,
    provider,
    providers,
    onPermissionRequest,
    onUserInputRequest,
    onElicitationRequest,
    onExitPlanModeRequest,
    onAutoModeSwitchRequest,
    textBuffers,
    onEvent: _,
    ...plain
  } = config;
  return {
    ...plain,
    ...(tools && { tools: tools.map(({ run: _run, ...tool }) => tool) }),
    ...(commands && { commands: commands.map(({ name, description = "" }) => ({ name, description })) }),
    ...(systemMessage && { systemMessage: systemOnWire(systemMessage) }),
    ...(provider && { provider: providerOnWire(provider) }),
    ...(providers && { providers: providers.map(providerOnWire) }),
    toolFilterPrecedence: "excluded",
    envValueMode: "direct",
    includeSubAgentStreamingEvents: true,
    hooks: hooks !== undefined && Object.keys(hooks).length > 0,
    requestPermission: onPermissionRequest !== undefined,
    requestUserInput: onUserInputRequest !== undefined,
    requestElicitation: onElicitationRequest !== undefined,
    requestExitPlanMode: onExitPlanModeRequest !== undefined,
    requestAutoModeSwitch: onAutoModeSwitchRequest !== undefined,
    ...(textBuffers && { requestTextBuffers: true }),
  };
}

function providerOnWire<P extends { readonly bearerTokenProvider?: unknown }>(provider: P): Record<string, unknown> {
  const { bearerTokenProvider, ...rest } = provider;
  return { ...rest, ...(bearerTokenProvider !== undefined && { hasBearerTokenProvider: true }) };
}

function systemOnWire(message: SystemMessage): unknown {
  if (message.mode !== "customize" || !message.sections) return message;
  const sections = Object.entries(message.sections).map(([id, section]) => [
    id,
    typeof section.action === "function" ? { action: "transform" } : section,
  ]);
  return { ...message, sections: Object.fromEntries(sections) };
}

/** Returns the functions among the sections of a system message, by section. */
export function transformsOf(message: SystemMessage | undefined): ReadonlyMap<string, SectionTransform> {
  const found = new Map<string, SectionTransform>();
  if (message?.mode !== "customize") return found;
  for (const [id, { action }] of Object.entries(message.sections ?? {})) {
    if (typeof action === "function") found.set(id, action);
  }
  return found;
}
