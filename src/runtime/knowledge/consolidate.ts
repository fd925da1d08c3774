/** A consolidation in a session of its own: on demand, or in the process that an ending session leaves behind. */
import { MEMORY_AGENT } from "../../agents/agent.ts";
import { UNDERSTUDY } from "../../model/catalog.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { Outcome } from "../../session/session.ts";
import type { Runtime } from "../runtime.ts";
import type { SessionRequest } from "../session-request.ts";
import request from "./consolidate.md";
import type { ConsolidationReport } from "./consolidation.ts";

/** Names the session whose learnings a detached process consolidates. */
export const PARENT_SESSION = "TROUPE_DETACHED_PARENT_SESSION_ID";
/** What belongs together for those who look at it later. */
export const ENGAGEMENT = "TROUPE_ENGAGEMENT_ID";

/** What the agent is asked; everything it needs stands in its system prompt. */
export const CONSOLIDATION_REQUEST = request.trim();

/** A draft that is not finished by then is not worth waiting for. */
const MAX_TURNS = 30;

type Environment = Readonly<Record<string, string | undefined>>;

/** What a process that was started to consolidate adds to the request for its session; elsewhere nothing. */
export function detachedRequest(environment: Environment, asked: SessionRequest): SessionRequest {
  const detachedFrom = environment[PARENT_SESSION];
  if (!detachedFrom || asked.agent !== MEMORY_AGENT) return asked;
  return { ...asked, ...consolidating(detachedFrom, asked) };
}

export interface ConsolidateOptions extends Pick<SessionRequest, "cwd" | "model" | "workspace"> {
  /** Whose learnings. */
  readonly sessionId: string;
  readonly signal?: AbortSignal;
}

export interface Consolidated {
  /** The session that did it. */
  readonly by: string;
  readonly outcome: Outcome;
  /** Undefined when it did not come to an end. */
  readonly report: ConsolidationReport | undefined;
}

/** Runs one and waits for it. */
export async function consolidate(runtime: Runtime, options: ConsolidateOptions): Promise<Consolidated> {
  const { sessionId, signal, ...asked } = options;
  if (!(await runtime.store.ids()).includes(sessionId)) {
    throw new TroupeError("usage", `There is no session ${sessionId}.`, { hint: "See: troupe sessions list" });
  }
  const session = await runtime.createSession({ ...asked, ...consolidating(sessionId, asked) });
  const stop = (): void => void session.close();
  signal?.addEventListener("abort", stop, { once: true });
  try {
    if (session.settings.model.providerId === UNDERSTUDY) throw noModel();
    const outcome = await session.sendAndWait({ prompt: CONSOLIDATION_REQUEST });
    const told = session.events.findLast((event) => event.type === "troupe.consolidation");
    return { by: session.id, outcome, report: told?.data };
  } finally {
    signal?.removeEventListener("abort", stop);
    await session.close();
  }
}

function noModel(): TroupeError {
  const hint = "Set one up (troupe models), or name it: --model.";
  return new TroupeError("configuration", "Consolidating takes a model that reasons; the understudy does not.", {
    hint,
  });
}

/** Nobody looks on: it works alone, with the one tool of its agent, and nothing of the folder is told or started. */
function consolidating(detachedFrom: string, asked: Pick<SessionRequest, "workspace">): Partial<SessionRequest> {
  return {
    detachedFrom,
    agent: MEMORY_AGENT,
    delegation: false,
    askUser: false,
    limits: { turns: MAX_TURNS },
    permissions: {},
    workspace: {
      ...asked.workspace,
      customInstructions: false,
      flags: { ...asked.workspace?.flags, COPILOT_SUBCONSCIOUS: true },
    },
  };
}
