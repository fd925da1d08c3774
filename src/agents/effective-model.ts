/** Which model an agent runs on, and how hard it thinks. Nothing is replaced without a word. */
import { clip, nearest } from "../lib/text.ts";
import type { AgentDefinition } from "./agent.ts";

export interface ModelQuestion {
  /** What the call itself asked for. */
  readonly call?: string;
  /** What a person's settings say of this agent. */
  readonly settings?: string;
  readonly definition: Pick<AgentDefinition, "name" | "models" | "modelPolicy">;
  /** What whoever starts it runs on, resolved. */
  readonly parent: string;
  /** Left out where nobody knows the list; then names go to the provider as they are. */
  readonly available?: readonly string[];
}

export type ModelAnswer =
  | {
      readonly model: string;
      readonly source: "call" | "settings" | "definition" | "parent";
      /** Which wish could not be met. */
      readonly warning?: string;
    }
  /** Worded for whoever asked. */
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
      refused: `The agent ${definition.name} needs ${definition.models.join(" or ")}, which cannot be used here.`,
    };
  }
  return { model: parent, source: "parent", ...warned(unmet, definition.name, parent) };
}

/** Efforts of one model say nothing about another: the parent's counts only on the same model. */
export function effectiveEffort(question: {
  /** Asked for with the work itself. */
  readonly call?: string;
  readonly settings?: string;
  readonly definition: Pick<AgentDefinition, "reasoningEffort">;
  readonly parent: { readonly model: string; readonly effort?: string };
  readonly model: string;
}): string | undefined {
  const { call, settings, definition, parent, model } = question;
  return call ?? settings ?? definition.reasoningEffort ?? (parent.model === model ? parent.effort : undefined);
}

/** As it is called in the list; definitions also write `GPT-5 mini`, `gpt-5-mini (vendor)` or leave the provider out. */
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
  return { warning: `The agent ${agent} runs on ${model}: ${unmet.join(", ")} cannot be used here.` };
}

function noSuchModel(wanted: string, available: readonly string[]): string {
  const close = nearest(wanted, available);
  const listed = available.slice(0, MAX_LISTED).join(", ");
  const more = available.length > MAX_LISTED ? ` and ${available.length - MAX_LISTED} more` : "";
  const hint = close === undefined ? "" : ` Did you mean ${close}?`;
  return `There is no model ${JSON.stringify(clip(wanted, 80))}.${hint} Valid models: ${listed}${more}.`;
}
