import { noUsage } from "../../model/provider.ts";
import type { Tool } from "../../tools/tool.ts";
import type { Expected } from "../budget/reservations.ts";
import type { SessionModel } from "../session-model.ts";

/** Most replies are far shorter. The actual length is counted afterwards. */
const USUAL_OUTPUT_TOKENS = 4_096;
const CHARACTERS_PER_TOKEN = 4;

/** Returns the expected usage of an agent's next call: its complete input and a reply of the usual length. */
export function expectedCall(request: {
  readonly model: SessionModel;
  readonly system: string;
  readonly tools: readonly Tool[];
  /** The length of all messages. */
  readonly characters: number;
}): Expected {
  const { model, system, tools, characters } = request;
  const outputTokens = Math.min(model.maxOutputTokens ?? USUAL_OUTPUT_TOKENS, USUAL_OUTPUT_TOKENS);
  let inputTokens: number | undefined;
  const input = (): number => {
    inputTokens ??= Math.ceil((system.length + characters + schemaCharacters(tools)) / CHARACTERS_PER_TOKEN);
    return inputTokens;
  };
  return {
    tokens: () => input() + outputTokens,
    costUsd: () => model.costOf({ ...noUsage, inputTokens: input(), outputTokens }),
  };
}

function schemaCharacters(tools: readonly Tool[]): number {
  return tools.reduce(
    (sum, { name, description, parameters }) => sum + JSON.stringify({ name, description, parameters }).length,
    0,
  );
}
