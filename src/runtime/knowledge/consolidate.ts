/** Runs a consolidation in a separate session: on demand, or in the process started by an ending session. */
import { BOARD_AGENT } from "../../agents/agent.ts";
import { UNDERSTUDY } from "../../model/catalog.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { Outcome } from "../../session/session.ts";
import type { Runtime } from "../runtime.ts";
import type { SessionRequest } from "../session-request.ts";
import request from "./consolidate.md";
import type { ConsolidationReport } from "./consolidation.ts";

/** Variable with the session whose learnings a detached process consolidates. */
export const PARENT_SESSION = "TROUPE_DETACHED_PARENT_SESSION_ID";
/** Variable that groups related sessions for later analysis. */
export const ENGAGEMENT = "TROUPE_ENGAGEMENT_ID";

/** The prompt; everything else the agent needs is in its system prompt. */
export const CONSOLIDATION_REQUEST = request.trim();

/** Turn limit of a consolidation. */
const MAX_TURNS = 30;

type Environment = Readonly<Record<string, string | undefined>>;

/** Extends the request in a process started to consolidate; otherwise returns it unchanged. */
export function detachedRequest(environment: Environment, asked: SessionRequest): SessionRequest {
  const detachedFrom = environment[PARENT_SESSION];
  if (!detachedFrom || asked.agents?.main !== BOARD_AGENT) return asked;
  return { ...asked, ...consolidating(detachedFrom, asked) };
}

export interface ConsolidateOptions extends Pick<SessionRequest, "cwd" | "model" | "workspace"> {
  /** The session whose learnings are consolidated. */
  readonly sessionId: string;
  readonly signal?: AbortSignal;
}

export interface Consolidated {
  /** The id of the consolidating session. */
  readonly by: string;
  readonly outcome: Outcome;
  /** Undefined if the consolidation did not finish. */
  readonly report: ConsolidationReport | undefined;
}

/** Runs a consolidation and waits for it. */
export async function consolidate(runtime: Runtime, options: ConsolidateOptions): Promise<Consolidated> {
  const { sessionId, signal, ...asked } = options;
  if (!(await runtime.store.ids()).includes(sessionId)) {
    throw new TroupeError("usage", `There is no session ${sessionId}.`, { hint: "See: troupe sessions list" });
  }
  const session = await runtime.createSession({ ...asked, ...consolidating(sessionId, asked) });
  const stop = (): void => void session.close();
  signal?.addEventListener("abort", stop, { once: true });
  try {
    if (session.mainAgent.model.providerId === UNDERSTUDY) throw noModel();
    const outcome = await session.sendAndWait({ prompt: CONSOLIDATION_REQUEST });
    const reportEvent = session.events.findLast((event) => event.type === "troupe.consolidation");
    return { by: session.id, outcome, report: reportEvent?.data };
  } finally {
    signal?.removeEventListener("abort", stop);
    await session.close();
  }
}

function noModel(): TroupeError {
  const hint = "Set one up (troupe models), or name it: --model.";
  return new TroupeError("configuration", "Consolidation needs a model that reasons; the understudy cannot do it.", {
    hint,
  });
}

/** Settings for an unattended session: only its agent's tool, no questions, no custom instructions, no other agents. */
function consolidating(detachedFrom: string, asked: Omit<SessionRequest, "cwd">): Partial<SessionRequest> {
  return {
    agents: { ...asked.agents, detachedFrom, main: BOARD_AGENT, delegation: false },
    client: { ...asked.client, askUser: false },
    limits: { turns: MAX_TURNS, credits: asked.limits?.credits },
    permissions: { paths: asked.permissions?.paths },
    workspace: {
      ...asked.workspace,
      customInstructions: false,
      flags: { ...asked.workspace?.flags, COPILOT_SUBCONSCIOUS: true },
    },
  };
}
