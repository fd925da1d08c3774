import type { GivenProviders, ModelCapabilities } from "../model/given-providers.ts";
import type { ModelRow } from "../model/list-models.ts";
import type { ModelError } from "../model/model-error.ts";
import type { ReasoningEffort, ReasoningSummary } from "../model/provider.ts";
import type { ModelChangeSource } from "../protocol/event.ts";
import type { RunSettings } from "./run-settings.ts";
import type { SessionModel } from "./session-model.ts";

/** Who sits where a session's answers come from: for surfaces that show it, or put another model there. */
export interface ModelSelection {
  readonly current: SessionModel;
  readonly reasoningEffort: ReasoningEffort | undefined;
  readonly reasoningSummary: ReasoningSummary | undefined;
  /** Before a message is taken up: a model that could not be found when the session began is looked for. Never rejects. */
  ready(): Promise<void>;
  /** All there is to choose from. */
  list(): Promise<readonly ModelRow[]>;
  /** From the next message on; said as `session.model_change`. Rejects, and changes nothing, when there is no such model. */
  select(name: string, change?: ModelChange): Promise<void>;
  /** The model to offer where this one cannot go on; undefined where there is none, or nothing is gained by it. */
  insteadOf(error: ModelError): string | undefined;
  /** The same model, used otherwise. */
  change(change: ModelChange): Promise<void>;
  /** Providers and models join; returns the models. Rejects, and changes nothing, when they do not fit together. */
  add(given: GivenProviders): Promise<readonly ModelRow[]>;
}

export interface ModelChange {
  /** Null: as the model has it. */
  readonly reasoningEffort?: ReasoningEffort | null;
  readonly reasoningSummary?: ReasoningSummary;
  /** What is said of the model outranks what its provider says. */
  readonly capabilities?: ModelCapabilities;
  /** Why it was changed, when nobody asked for it. */
  readonly cause?: string;
  /** What changed it, as the event says it. */
  readonly source?: ModelChangeSource;
}

/** What a session calls its model. */
export const modelName = ({ id, model }: Pick<SessionModel, "id" | "model">): string => id ?? model;

/** What a session says of its model and its limits when it begins. */
export function selection(settings: Pick<RunSettings, "model" | "reasoningEffort" | "reasoningSummary" | "credits">): {
  selectedModel?: string;
  reasoningEffort?: string;
  reasoningSummary?: ReasoningSummary;
  sessionLimits?: { maxAiCredits: number };
} {
  const { model, reasoningEffort, reasoningSummary, credits } = settings;
  const name = modelName(model);
  return {
    ...(name !== "" && { selectedModel: name }),
    ...(reasoningEffort !== undefined && { reasoningEffort }),
    ...(reasoningSummary !== undefined && { reasoningSummary }),
    ...(credits?.most !== undefined && { sessionLimits: { maxAiCredits: credits.most } }),
  };
}

/** The model by the name under which it can be found again. */
export function modelReference({ providerId, id, model }: Pick<SessionModel, "providerId" | "id" | "model">): string {
  const name = id ?? model;
  return name.startsWith(`${providerId}/`) ? name : `${providerId}/${name}`;
}
