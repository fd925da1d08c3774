import { describe, expect, test } from "vitest";
import type { ModelRequest, Provider, ResponseFormat } from "../../src/model/provider.ts";
import { anthropicMessages } from "../../src/model/wire/anthropic/anthropic.ts";
import type { Endpoint } from "../../src/model/wire/endpoint.ts";
import { openaiChat } from "../../src/model/wire/openai/openai-chat.ts";
import { openaiResponses } from "../../src/model/wire/openai/openai-responses.ts";
import { collect, recorder, request } from "./support.ts";

const schema = { type: "object", properties: { answer: { type: "number", minimum: 0 } }, required: ["answer"] };
const strict: ResponseFormat = {
  type: "json_schema",
  jsonSchema: { name: "sum", description: "A sum", schema, strict: true },
};
const loose: ResponseFormat = { type: "json_schema", jsonSchema: { name: "sum", schema } };
const object: ResponseFormat = { type: "json_object" };

async function bodyOf(
  wire: (endpoint: Endpoint) => Provider,
  more: Partial<ModelRequest>,
): Promise<Record<string, unknown>> {
  const { place: endpoint, bodies } = recorder(() => new Response("{}"));
  await collect(wire(endpoint), { ...request, ...more });
  return bodies[0] as Record<string, unknown>;
}

describe("a request for structured output", () => {
  test("structured output uses response_format on the chat completions wire", async () => {
    expect((await bodyOf(openaiChat, { responseFormat: strict })).response_format).toEqual({
      type: "json_schema",
      json_schema: { name: "sum", description: "A sum", schema, strict: true },
    });
    expect((await bodyOf(openaiChat, { responseFormat: loose })).response_format).toEqual({
      type: "json_schema",
      json_schema: { name: "sum", schema },
    });
  });

  test("structured output uses text.format on the responses wire", async () => {
    expect((await bodyOf(openaiResponses, { responseFormat: strict })).text).toEqual({
      format: { type: "json_schema", name: "sum", description: "A sum", schema, strict: true },
    });
  });

  test("structured output uses output_config.format on the messages wire, beside the effort", async () => {
    const body = await bodyOf(anthropicMessages, {
      ...{ model: "claude-sonnet-5-5", responseFormat: strict, reasoningEffort: "high" as const },
    });
    expect(body.output_config).toEqual({ effort: "high", format: { type: "json_schema", schema } });
    expect(JSON.stringify(body.system)).not.toContain("JSON");
  });

  test.each(["claude-sonnet-4-20250514", "claude-opus-4-0", "claude-3-7-sonnet-latest", "other-vendor-1"])(
    "structured output puts the schema into the instructions of %s, which has no parameter for it",
    async (model) => {
      const body = await bodyOf(anthropicMessages, { model, responseFormat: strict });
      expect(body.output_config).toBeUndefined();
      expect(body.system).toEqual([
        {
          type: "text",
          text: `Be brief.\n\nWrite your final answer as JSON that matches this JSON schema, without any text around it:\n${JSON.stringify(schema)}`,
          cache_control: { type: "ephemeral" },
        },
      ]);
    },
  );

  test.each(["claude-opus-4-1-20250805", "claude-haiku-4-5", "claude-opus-4-8", "anthropic/claude-sonnet-5-5"])(
    "structured output lets the API enforce the schema for %s",
    async (model) => {
      expect((await bodyOf(anthropicMessages, { model, responseFormat: loose })).output_config).toEqual({
        format: { type: "json_schema", schema },
      });
    },
  );

  test("JSON mode adds the word JSON to the instructions, which OpenAI requires", async () => {
    const chat = await bodyOf(openaiChat, { responseFormat: object, system: "" });
    expect(chat.response_format).toEqual({ type: "json_object" });
    expect(chat.messages).toEqual([
      { role: "system", content: "Write your final answer as one JSON object, without any text around it." },
      { role: "user", content: "Hello" },
    ]);
    const responses = await bodyOf(openaiResponses, { responseFormat: object });
    expect(responses.text).toEqual({ format: { type: "json_object" } });
    expect(responses.instructions).toMatch(/^Be brief\.\n\n.*JSON object/);
    const anthropic = await bodyOf(anthropicMessages, { model: "claude-sonnet-5-5", responseFormat: object });
    expect(anthropic.output_config).toBeUndefined();
    expect(JSON.stringify(anthropic.system)).toContain("JSON object");
  });

  test("a request without a format is unchanged by structured output", async () => {
    expect(await bodyOf(openaiChat, {})).not.toHaveProperty("response_format");
    expect(await bodyOf(openaiResponses, {})).not.toHaveProperty("text");
    expect(await bodyOf(anthropicMessages, {})).not.toHaveProperty("output_config");
  });
});
