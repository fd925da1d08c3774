/**
 * Chooses the model of an agent: the requested one, if it is available and not much more expensive than the session's.
 */

import type { AgentDefinition } from "../../agents/agent.ts";
import { effectiveModel } from "../../agents/effective-model.ts";
import { defined } from "../../lib/defined.ts";
import type { ModelRow } from "../../model/list-models.ts";
import { noUsage } from "../../model/provider.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { SessionModel } from "../../session/session-model.ts";
import type { Models } from "./models.ts";

interface ModelRequirements {
  readonly definition: AgentDefinition;
  /** The model of the parent. */
  readonly parent: string;
  readonly call?: string | undefined;
  /** The user's setting for this agent: a model, `small` or `complementary`. */
  readonly settings?: string | undefined;
}

interface ModelParts {
  readonly models: Pick<Models, "list">;
  /** The session's model. */
  readonly main: SessionModel;
  readonly maxCostRatio?: number | undefined;
  modelFor(name: string): Promise<SessionModel>;
}

/** Limit for a model that a call requests, as a multiple of the session's cost. Settings can change it. */
const MAX_COST_RATIO = 5;

/** Throws a `TroupeError` if the agent may not start. A replaced model is reported as a warning. */
export async function chooseModel(
  requirements: ModelRequirements,
  parts: ModelParts,
): Promise<{ readonly model: string; readonly warnings: readonly string[] }> {
  const { definition, parent, call } = requirements;
  const rows = call !== undefined || isKeyword(requirements.settings) ? await usableRows(parts.models) : [];
  const settings = isKeyword(requirements.settings)
    ? byKeyword(requirements.settings, parent, rows)
    : requirements.settings;
  const answer = effectiveModel({
    definition,
    parent,
    ...(call !== undefined && { call, ...availableModels(rows, parent) }),
    ...defined({ settings }),
  });
  if ("refused" in answer) throw new TroupeError("usage", answer.refused);
  const warnings = answer.warning === undefined ? [] : [answer.warning];
  try {
    const model = await parts.modelFor(answer.model);
    if (answer.source !== "call" || !isTooDear(model, parts)) return { model: answer.model, warnings };
    const downgraded = `The agent ${definition.name} was downgraded from ${answer.model} to ${parent}: it costs more than ${parts.maxCostRatio ?? MAX_COST_RATIO} times as much (subagents.maxCostRatio).`;
    return { model: parent, warnings: [...warnings, downgraded] };
  } catch (error) {
    const isPreference = answer.source === "definition" && definition.modelPolicy === "preferred";
    if (!isPreference || !(error instanceof TroupeError)) throw error;
    return {
      model: parent,
      warnings: [...warnings, `The agent ${definition.name} runs on ${parent}: ${error.message}`],
    };
  }
}

type ModelKeyword = "small" | "complementary";

const isKeyword = (wanted: string | undefined): wanted is ModelKeyword =>
  wanted === "small" || wanted === "complementary";

async function usableRows(models: Pick<Models, "list">): Promise<readonly ModelRow[]> {
  const rows = await models.list();
  // If a provider does not list its models, any name is accepted.
  return rows.some(({ reason }) => reason === "name a model") ? [] : rows.filter(({ usable }) => usable);
}

function availableModels(rows: readonly ModelRow[], parent: string): { available?: readonly string[] } {
  return rows.length === 0 ? {} : { available: [...new Set([parent, ...rows.map(({ ref }) => ref)])] };
}

/** Returns the cheapest model of the same provider, or the first of another family; undefined if there is none. */
function byKeyword(word: ModelKeyword, parent: string, rows: readonly ModelRow[]): string | undefined {
  const provider = parent.slice(0, parent.indexOf("/"));
  if (word === "complementary") {
    const own = familyOf(parent);
    return rows.find(({ ref }) => ref.includes("/") && familyOf(ref) !== own)?.ref;
  }
  const priced = rows.flatMap(({ provider: of, ref, price }) =>
    of === provider && price ? [{ ref, price: price.input + price.output }] : [],
  );
  return priced.sort((a, b) => a.price - b.price)[0]?.ref;
}

/** Patterns that identify a model's family, such as `claude` in `openrouter/anthropic/claude-opus-5-5`. */
const FAMILIES: readonly (readonly [family: string, pattern: RegExp])[] = [
  ["claude", /claude/],
  ["gemini", /gemini|gemma/],
  ["gpt", /gpt|chatgpt|codex|\bo\d/],
  ["mistral", /mistral|mixtral|ministral|magistral|devstral|codestral|pixtral/],
  ["llama", /llama/],
  ["qwen", /qwen|qwq/],
  ["deepseek", /deepseek/],
  ["grok", /grok/],
  ["glm", /\bglm/],
  ["kimi", /kimi|moonshot/],
];

/** Returns the family of `provider/model`. Unknown names form one family per provider. */
function familyOf(ref: string): string {
  const slash = ref.indexOf("/");
  const name = ref.slice(slash + 1).toLowerCase();
  return FAMILIES.find(([, pattern]) => pattern.test(name))?.[0] ?? `other models of ${ref.slice(0, slash)}`;
}

const SAMPLE = { ...noUsage, inputTokens: 1_000_000, outputTokens: 100_000 };

/** Returns false if a price is unknown. */
function isTooDear(model: SessionModel, { main, maxCostRatio = MAX_COST_RATIO }: ModelParts): boolean {
  const [wanted, usual] = [model.costOf(SAMPLE), main.costOf(SAMPLE)];
  return wanted !== null && usual !== null && wanted > usual * maxCostRatio;
}
