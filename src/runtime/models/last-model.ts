/** What a session that is taken up again spoke to, and how, as its log has it. */
import type { ReasoningEffort, ReasoningSummary } from "../../model/provider.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import type { SessionRequest } from "../session-request.ts";

export interface LastModel {
  /** As far as it is there. */
  readonly reference?: string | undefined;
  /** Someone has chosen it for this session: it comes before what is named for the process. */
  readonly isChosen: boolean;
  readonly effort?: ReasoningEffort | undefined;
  readonly summary?: ReasoningSummary | undefined;
}

/** What a request says otherwise is not taken from the log, and how another model was used says nothing of this one. */
export async function lastModelOf(
  events: readonly SessionEvent[],
  request: SessionRequest,
  isThere: (providerId: string) => Promise<boolean>,
): Promise<LastModel | undefined> {
  const use = lastUse(events);
  const { model, providers } = request;
  if (model !== undefined) return use.names.includes(model) ? { ...use, isChosen: false } : undefined;
  const found = providers?.provider ? use.name : await reachable(use.reference, request, isThere);
  return { ...use, reference: found, isChosen: use.isChosen && found !== undefined };
}

interface LastUse extends LastModel {
  /** What the session called it. */
  readonly name: string | undefined;
  readonly names: readonly string[];
}

function lastUse(events: readonly SessionEvent[]): LastUse {
  let name: string | undefined;
  let reference: string | undefined;
  /** What the session called the one that was chosen for it, as long as it has that one. */
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
  // What the log has was checked when it was said.
  const effort = how.reasoningEffort as ReasoningEffort | undefined;
  return { name, names: known, reference, isChosen: chosen !== undefined, effort, summary: how.reasoningSummary };
}

const FAUX = "faux";

function usedIn({ provider, model }: { readonly provider: string; readonly model: string }): string | undefined {
  if (provider === FAUX) return FAUX;
  // The stand-in: a session that had to do with it goes on with whatever there is now.
  return provider === "understudy" ? undefined : `${provider}/${model}`;
}

async function reachable(
  reference: string | undefined,
  { providers }: SessionRequest,
  isThere: (providerId: string) => Promise<boolean>,
): Promise<string | undefined> {
  if (reference === undefined) return undefined;
  if (reference === FAUX) throw cannotGoOn();
  const provider = reference.slice(0, reference.indexOf("/"));
  const isBrought = providers?.providers?.some(({ name }) => name === provider) === true;
  return isBrought || (await isThere(provider)) ? reference : undefined;
}

function cannotGoOn(): TroupeError {
  const hint = "Name the model to go on with: --model.";
  return new TroupeError("usage", "The session was played by a faux script, which cannot be taken up half-way.", {
    hint,
  });
}
