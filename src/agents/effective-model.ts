/** Resolves an agent's model and reasoning effort. Falling back to another model always produces a warning. */
import { clip, nearest } from "../lib/text.ts";
import type { AgentDefinition } from "./agent.ts";

export interface ModelQuestion {
  /** The model requested by the call. */
  readonly call?: string;
  /** The model configured for this agent in the user's settings. */
  readonly settings?: string;
  readonly definition: Pick<AgentDefinition, "name" | "models" | "modelPolicy">;
  /** The parent agent's model, resolved. */
  readonly parent: string;
  /** The known models. If undefined, names are passed to the provider unchanged. */
  readonly available?: readonly string[];
}

export type ModelAnswer =
  | {
      readonly model: string;
      readonly source: "call" | "settings" | "definition" | "parent";
      /** Names the requested models that are unavailable. */
      readonly warning?: string;
    }
  /** An error message for the caller. */
  | { readonly refused: string };

const MAX_LISTED = 30;

export function effectiveModel(question: ModelQuestion): ModelAnswer {
  const { call, settings, definition, parent, available } = question;
  const has = (wanted: string): string | undefined => (isInherit(wanted) ? parent : usableModel(wanted, available));
  if (call !== undefined && call.trim() !== "") {
    const model = has(call);
    return model === undefined ? { refused: noSuchModel(call, available ?? []) } : { model, source: "call" };
  }
  const unmet: string[] = [];
  const own = settings === undefined ? undefined : has(settings);
  if (own !== undefined) return { model: own, source: "settings" };
  if (settings !== undefined) unmet.push(`${clip(settings, 80)} (settings)`);
  for (const wanted of definition.models) {
    const model = has(wanted);
    if (model !== undefined) return { model, source: "definition", ...warned(unmet, definition.name, model) };
    unmet.push(clip(wanted, 80));
  }
  if (definition.modelPolicy === "required" && definition.models.length > 0) {
    return {
      refused: `The agent ${definition.name} needs ${definition.models.join(" or ")}, which is not available.`,
    };
  }
  return { model: parent, source: "parent", ...warned(unmet, definition.name, parent) };
}

/** Returns the reasoning effort. The parent's effort applies only if both agents use the same model. */
export function effectiveEffort(question: {
  /** The effort requested by the call. */
  readonly call?: string;
  readonly settings?: string;
  readonly definition: Pick<AgentDefinition, "reasoningEffort">;
  readonly parent: { readonly model: string; readonly effort?: string };
  readonly model: string;
}): string | undefined {
  const { call, settings, definition, parent, model } = question;
  return call ?? settings ?? definition.reasoningEffort ?? (parent.model === model ? parent.effort : undefined);
}

/**
 * Returns the listed name that matches `wanted`, or undefined. Accepts `GPT-5 mini`, `gpt-5-mini (vendor)` and names
 * without a provider prefix.
 */
function usableModel(wanted: string, available: readonly string[] | undefined): string | undefined {
  const asked = wanted.trim();
  if (available === undefined) return asked;
  if (available.includes(asked)) return asked;
  const plain = plainModel(asked);
  const alike = available.find((model) => plainModel(model) === plain);
  if (alike !== undefined || plain === "") return alike;
  const behind = available.filter((model) => plainModel(model).endsWith(`/${plain}`));
  return behind.length === 1 ? behind[0] : undefined;
}

const plainModel = (name: string): string =>
  name
    .toLowerCase()
    .replace(/\s*\([^)]*\)\s*$/, "")
    .trim()
    .replace(/[\s_]+/g, "-");

const isInherit = (wanted: string): boolean => wanted.trim().toLowerCase() === "inherit";

function warned(unmet: readonly string[], agent: string, model: string): { warning?: string } {
  if (unmet.length === 0) return {};
  return { warning: `The agent ${agent} runs on ${model}, because ${unmet.join(", ")} is not available.` };
}

function noSuchModel(wanted: string, available: readonly string[]): string {
  const close = nearest(wanted, available);
  const listed = available.slice(0, MAX_LISTED).join(", ");
  const more = available.length > MAX_LISTED ? ` and ${available.length - MAX_LISTED} more` : "";
  const hint = close === undefined ? "" : ` Did you mean ${close}?`;
  return `There is no model ${JSON.stringify(clip(wanted, 80))}.${hint} Valid models: ${listed}${more}.`;
}
