import type { Json } from "../../lib/json.ts";
import type { Redactor } from "../../lib/redact/redact.ts";
import type { Flags } from "../../protocol/flags.ts";
import type { MemoryRequest } from "../session-request.ts";
import type { MainAgent } from "../setup/main-agent.ts";
import type { SessionSetup } from "../setup/session-setup.ts";
import type { SessionMemory } from "./session-memory.ts";

interface MemoryGate {
  readonly request: MemoryRequest | undefined;
  /** `memory` of the settings, unvalidated. */
  readonly settings: Json | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly flags: Flags;
}

/** Returns the memory of a session, or undefined if it is off. Its code is loaded only if it is on. */
export async function memoryOf(
  draft: SessionSetup,
  { mainAgent, redactor }: { mainAgent: MainAgent; redactor: Redactor },
): Promise<SessionMemory | undefined> {
  const { request, environment, stateRoot, disk, stamp, log, channel, shared } = draft;
  const { workspace } = mainAgent;
  const { flags } = workspace;
  const settings = workspace.settings.effective.memory;
  if (!hasMemory({ request: request.context?.memory, settings, environment, flags })) return undefined;
  const [{ sessionMemory }, { modelMerge }] = await Promise.all([
    import("./session-memory.ts"),
    import("./memory-merge.ts"),
  ]);
  const merge = modelMerge(() => draft.models.current, channel.emit);
  return sessionMemory({
    environment,
    settings,
    flags,
    stateRoot,
    sessionId: log.sessionId,
    cwd: draft.context.cwd,
    isTrusted: workspace.trust.state !== "none",
    ports: { disk, stamp, redactor },
    prompts: shared.memoryPrompts,
    merge: async (facts) => (channel.session?.record.budget.reached(mainAgent.limits()) ? facts : merge(facts)),
    ...(request.context?.memory?.store && { store: request.context?.memory.store }),
    notice: (message) => channel.warn("memory", message),
    onRecall: (recalled) => void channel.emit("troupe.memory_recalled", recalled),
    inform: (message) => void channel.emit("session.info", { infoType: "memory", message }),
    onChange: channel.toolsChanged,
  });
}

/** Returns whether a session without a memory request has a memory. */
export const isMemoryOn = (gate: Omit<MemoryGate, "request">): boolean => hasMemory({ ...gate, request: undefined });

/** "off" in the user's settings or environment overrides everything else. */
function hasMemory({ request, settings, environment, flags }: MemoryGate): boolean {
  if (!flags.has("AGENTIC_MEMORY")) return false;
  const choices = [saidBySettings(settings), saidByEnvironment(environment.TROUPE_MEMORY)];
  if (choices.includes("off")) return false;
  return request?.enabled ?? (request?.store !== undefined || choices.includes("on"));
}

type Switch = "on" | "off" | undefined;

function saidBySettings(settings: Json | undefined): Switch {
  const enabled =
    typeof settings === "object" && settings !== null && "enabled" in settings ? settings.enabled : settings;
  return enabled === true ? "on" : enabled === false ? "off" : undefined;
}

function saidByEnvironment(value = ""): Switch {
  const word = value.trim().toLowerCase();
  if (["on", "1", "true", "yes"].includes(word)) return "on";
  return ["off", "0", "false", "no"].includes(word) ? "off" : undefined;
}
