import { defined } from "../lib/defined.ts";
import type { GivenProviders, ModelCapabilities } from "../model/given-providers.ts";
import type { ModelRow } from "../model/list-models.ts";
import type { ModelError } from "../model/model-error.ts";
import type { ReasoningEffort, ReasoningSummary } from "../model/provider.ts";
import type { ModelChangeSource } from "../protocol/event.ts";
import type { RunSettings } from "./run-settings.ts";
import type { SessionModel } from "./session-model.ts";

/** The session's current model, and how to change it. */
export interface ModelSelection {
  readonly current: SessionModel;
  readonly reasoningEffort: ReasoningEffort | undefined;
  readonly reasoningSummary: ReasoningSummary | undefined;
  /**
   * Called before a message is accepted: looks again for a model that was unavailable when the session started, or
   * whose provider has a new key. Never rejects.
   */
  ready(): Promise<void>;
  /** Returns all available models. */
  list(): Promise<readonly ModelRow[]>;
  /**
   * Switches the model from the next message on and emits `session.model_change`. Rejects, and changes nothing, if the
   * model does not exist.
   */
  select(name: string, change?: ModelChange): Promise<void>;
  /** Returns the model to offer after this error; undefined if there is none or it would not help. */
  insteadOf(error: ModelError): string | undefined;
  /** Changes the settings of the current model. */
  change(change: ModelChange): Promise<void>;
  /** Adds providers and models, and returns the models. Rejects, and changes nothing, if they are inconsistent. */
  add(given: GivenProviders): Promise<readonly ModelRow[]>;
}

export interface ModelChange {
  /** Null: the model's default. */
  readonly reasoningEffort?: ReasoningEffort | null;
  readonly reasoningSummary?: ReasoningSummary;
  /** Overrides the provider's description of the model. */
  readonly capabilities?: ModelCapabilities;
  /** The reason for an automatic change. */
  readonly cause?: string;
  /** The source of the change, as reported in the event. */
  readonly source?: ModelChangeSource;
}

/** The session's name for its model. */
export const modelName = ({ id, model }: Pick<SessionModel, "id" | "model">): string => id ?? model;

/** Returns the model and limits that a session reports when it starts. */
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
    ...defined({ reasoningEffort, reasoningSummary }),
    ...(credits?.most !== undefined && { sessionLimits: { maxAiCredits: credits.most } }),
  };
}

/** Returns a name under which the model can be found again. */
export function modelReference({ providerId, id, model }: Pick<SessionModel, "providerId" | "id" | "model">): string {
  const name = id ?? model;
  return name.startsWith(`${providerId}/`) ? name : `${providerId}/${name}`;
}
