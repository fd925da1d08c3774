/** The agents that a model may choose. Descriptions are short because every request contains the list. */
import { clip } from "../lib/text.ts";
import type { AgentDefinition } from "./agent.ts";

export interface ModelOption {
  readonly name: string;
  readonly description: string;
}

const MAX_DESCRIPTION_CHARACTERS = 300;
const MAX_CHARACTERS_IN_ALL = 4096;
const MIN_DESCRIPTION_CHARACTERS = 20;

/**
 * Returns every agent that a model may choose. If the descriptions are too long in total, the longest are cut first.
 */
export function modelChoices(agents: readonly AgentDefinition[]): ModelOption[] {
  const chosen = agents.filter(({ infer }) => infer);
  const cap = fittingCap(chosen.map(({ description }) => description.length));
  return chosen.map(({ name, description }) => ({
    name,
    description: cap < MIN_DESCRIPTION_CHARACTERS ? "" : clip(description, cap),
  }));
}

/** Returns the largest length to which the descriptions can be cut so that all of them fit. */
function fittingCap(lengths: readonly number[]): number {
  const sizeAt = (cap: number): number => lengths.reduce((sum, length) => sum + Math.min(length, cap), 0);
  let cap = MAX_DESCRIPTION_CHARACTERS;
  while (cap > 0 && sizeAt(cap) > MAX_CHARACTERS_IN_ALL) cap--;
  return cap;
}
