/** The model of a resumed session and its settings, from the log. */
import type { ReasoningEffort, ReasoningSummary } from "../../model/provider.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import type { SessionRequest } from "../session-request.ts";

export interface LastModel {
  /** Undefined if it is no longer available. */
  readonly reference?: string | undefined;
  /** The model was chosen for this session, so it wins over the model named for the process. */
  readonly isChosen: boolean;
  readonly effort?: ReasoningEffort | undefined;
  readonly summary?: ReasoningSummary | undefined;
}

/**
 * Returns the last model. Values in the request win over the log, and settings used with another model do not apply.
 */
export async function lastModelOf(
  events: readonly SessionEvent[],
  request: SessionRequest,
  isThere: (providerId: string) => Promise<boolean>,
): Promise<LastModel | undefined> {
  const use = lastUse(events);
  const { name: model, providers } = request.model ?? {};
  if (model !== undefined) return use.names.includes(model) ? { ...use, isChosen: false } : undefined;
  const found = providers?.provider ? use.name : await reachable(use.reference, request, isThere);
  return { ...use, reference: found, isChosen: use.isChosen && found !== undefined };
}

interface LastUse extends LastModel {
  /** The model's name in the session. */
  readonly name: string | undefined;
  readonly names: readonly string[];
}

function lastUse(events: readonly SessionEvent[]): LastUse {
  let name: string | undefined;
  let reference: string | undefined;
  /** The name of the chosen model, as long as the session uses it. */
  let chosen: string | undefined;
  let how: { reasoningEffort?: string; reasoningSummary?: ReasoningSummary } = {};
  for (const event of events) {
    if (event.agentId !== undefined) continue;
    switch (event.type) {
      case "session.start":
      case "session.resume":
        name = event.data.selectedModel ?? name;
        if (name !== chosen) chosen = undefined;
        how = event.data;
        break;
      case "session.model_change":
        name = event.data.newModel;
        break;
      case "troupe.model_chosen":
        ({ reference } = event.data);
        chosen = name;
        how = event.data;
        break;
      case "troupe.usage":
        if (chosen === undefined) reference = usedIn(event.data);
        break;
      default:
    }
  }
  const known = [name, reference].filter((one) => one !== undefined);
  // Values in the log were validated when they were written.
  const effort = how.reasoningEffort as ReasoningEffort | undefined;
  return { name, names: known, reference, isChosen: chosen !== undefined, effort, summary: how.reasoningSummary };
}

const FAUX = "faux";

function usedIn({ provider, model }: { readonly provider: string; readonly model: string }): string | undefined {
  if (provider === FAUX) return FAUX;
  // The understudy is a stand-in: a session that used it resumes with whatever model is available.
  return provider === "understudy" ? undefined : `${provider}/${model}`;
}

async function reachable(
  reference: string | undefined,
  { model }: SessionRequest,
  isThere: (providerId: string) => Promise<boolean>,
): Promise<string | undefined> {
  if (reference === undefined) return undefined;
  if (reference === FAUX) throw cannotGoOn();
  const provider = reference.slice(0, reference.indexOf("/"));
  const isBrought = model?.providers?.providers?.some(({ name }) => name === provider) === true;
  return isBrought || (await isThere(provider)) ? reference : undefined;
}

function cannotGoOn(): TroupeError {
  const hint = "Name the model to continue with: --model.";
  return new TroupeError("usage", "The session used a scripted model, which cannot be resumed.", {
    hint,
  });
}
