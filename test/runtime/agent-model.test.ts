import { describe, expect, it } from "vitest";
import type { AgentDefinition } from "../../src/agents/agent.ts";
import type { ModelRow } from "../../src/model/list-models.ts";
import { chooseModel } from "../../src/runtime/models/agent-model.ts";
import type { SessionModel } from "../../src/session/session-model.ts";

const row = (ref: string): ModelRow => {
  const [provider = "", ...rest] = ref.split("/");
  const name = rest.join("/");
  return { ...{ provider, id: ref, name, ref, usable: true, reason: "", contextWindow: null, price: null } };
};
const unused = { costOf: () => null } as unknown as SessionModel;

async function complementOf(parent: string, others: readonly string[]): Promise<string> {
  const { model } = await chooseModel(
    {
      definition: { name: "rubber-duck", models: [] } as unknown as AgentDefinition,
      parent,
      settings: "complementary",
    },
    { models: { list: async () => [parent, ...others].map(row) }, main: unused, modelFor: async () => unused },
  );
  return model;
}

describe("a model of another family", () => {
  it.each([
    [
      "is found at the same provider",
      "router/anthropic/claude-opus-5-5",
      ["router/openai/gpt-6"],
      "router/openai/gpt-6",
    ],
    [
      "is not the same family at a second provider",
      "anthropic/claude-opus-5-5",
      ["bedrock/claude-haiku-4-5", "google/gemini-3-pro"],
      "google/gemini-3-pro",
    ],
    ["is not a smaller model of the family", "openai/gpt-6", ["openai/gpt-6-mini", "openai/o5"], "openai/gpt-6"],
    ["may have a name that tells no family", "openai/gpt-6", ["local/house-model"], "local/house-model"],
  ])("ORC-08 the model of another family is chosen: %s", async (_, parent, others, expected) => {
    expect(await complementOf(parent, others)).toBe(expected);
  });
});
