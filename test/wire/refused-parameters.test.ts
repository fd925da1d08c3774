import { describe, expect, test } from "vitest";
import type { ModelEvent, ModelRequest, Provider } from "../../src/model/provider.ts";
import { anthropicMessages } from "../../src/model/wire/anthropic/anthropic.ts";
import type { Endpoint } from "../../src/model/wire/endpoint.ts";
import { openaiChat } from "../../src/model/wire/openai/openai-chat.ts";
import { openaiResponses } from "../../src/model/wire/openai/openai-responses.ts";
import { RefusedParameters } from "../../src/model/wire/optional-parameters.ts";
import { recordings } from "./recordings.ts";
import { collect, placeWith, request } from "./support.ts";

const full: Partial<ModelRequest> = { reasoningEffort: "high", maxOutputTokens: 500, cacheKey: "s-1" };
const openaiError = (message: string, param: string | null = null): object => ({
  error: { message, type: "invalid_request_error", param, code: null },
});

/** A server that refuses requests for as long as `refuse` finds something in them. */
function server(
  wire: (endpoint: Endpoint) => Provider,
  refuse: (body: string) => object | undefined,
  more?: Partial<Endpoint>,
) {
  const bodies: Record<string, unknown>[] = [];
  const stream = recordings.find((one) => one.provider === wire)?.stream ?? "";
  const respond = ({ body }: RequestInit): Response => {
    bodies.push(JSON.parse(String(body)));
    const refusal = refuse(String(body));
    return refusal ? new Response(JSON.stringify(refusal), { status: 400 }) : new Response(stream);
  };
  return { bodies, provider: wire(placeWith(respond, more)), again: () => wire(placeWith(respond, more)) };
}

const warnings = (events: readonly ModelEvent[]): string[] =>
  events.flatMap((event) => (event.type === "warning" ? [event.message] : []));

const refusing =
  (field: string, error: object) =>
  (body: string): object | undefined =>
    body.includes(`"${field}":`) ? error : undefined;

describe("a request with an optional parameter that is refused", () => {
  test("a refused optional parameter is left out in a second request, with a warning", async () => {
    const error = openaiError("Unknown parameter: 'stream_options'.", "stream_options");
    const { provider, bodies } = server(openaiChat, refusing("stream_options", error));
    const events = await collect(provider, { ...request, ...full });
    expect(warnings(events)).toEqual([
      'test refused the optional parameter "stream_options". The request was sent again without it, and "stream_options" stays off for this model until the program ends. Its message: test: Unknown parameter: \'stream_options\'. (HTTP 400)',
    ]);
    expect(events.at(-1)).toMatchObject({ type: "end", stop: "tools" });
    const { stream_options: _, ...rest } = bodies[0] ?? {};
    expect(bodies.slice(1)).toEqual([rest]);
  });

  test("a refused optional parameter is left out from then on, for all sessions and for that model only", async () => {
    const refused = new RefusedParameters();
    const error = openaiError("Unrecognized request argument supplied: reasoning_effort");
    const { provider, again, bodies } = server(openaiChat, refusing("reasoning_effort", error), { refused });
    await collect(provider, { ...request, ...full });
    expect(warnings(await collect(again(), { ...request, ...full }))).toEqual([]);
    expect(bodies.map((body) => body.reasoning_effort)).toEqual(["high", undefined, undefined]);
    expect(warnings(await collect(again(), { ...request, ...full, model: "m-2" }))).toHaveLength(1);
  });

  test.each([
    [
      "a validation error of Mistral",
      "stream_options",
      { message: { detail: [{ loc: ["body", "stream_options"], msg: "Extra inputs are not permitted" }] } },
    ],
    [
      "an unknown name at Google",
      "reasoning_effort",
      [
        {
          error: {
            code: 400,
            message: 'Invalid JSON payload received. Unknown name "reasoning_effort": Cannot find field.',
            status: "INVALID_ARGUMENT",
          },
        },
      ],
    ],
    ["an unsupported property at Groq", "stream_options", openaiError("property 'stream_options' is unsupported")],
    [
      "an unsupported value",
      "reasoning_effort",
      openaiError("Unsupported value: 'reasoning_effort' does not support 'high' with this model.", "reasoning_effort"),
    ],
    [
      "an error that a gateway wraps",
      "stream_options",
      {
        error: {
          message: "Provider returned error",
          code: 400,
          metadata: { raw: JSON.stringify(openaiError("Unknown parameter: stream_options")) },
        },
      },
    ],
  ])("a refused optional parameter is recognised in %s", async (_name, field, error) => {
    const { provider, bodies } = server(openaiChat, refusing(field, error));
    const events = await collect(provider, { ...request, ...full });
    expect(events.at(-1)).toMatchObject({ stop: "tools" });
    expect(bodies).toHaveLength(2);
    expect(bodies[1]).not.toHaveProperty(field);
  });

  test("a refused name of the output limit is replaced by the other name", async () => {
    const error = openaiError(
      "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
      "max_tokens",
    );
    const { provider, bodies } = server(openaiChat, refusing("max_tokens", error));
    await collect(provider, { ...request, ...full });
    expect(bodies).toMatchObject([{ max_tokens: 500 }, { max_completion_tokens: 500 }]);
  });

  test("several refused optional parameters are all left out", async () => {
    const error = (field: string): object => openaiError(`Unknown parameter: '${field}'.`, field);
    const { provider, bodies } = server(
      openaiChat,
      (body) => ["stream_options", "reasoning_effort"].filter((field) => body.includes(`"${field}":`)).map(error)[0],
    );
    expect(warnings(await collect(provider, { ...request, ...full }))).toHaveLength(2);
    expect(bodies).toHaveLength(3);
  });

  test.each([
    "This response_format type is unavailable now",
    "This model does not support response format `json_schema`.",
  ])("a refused response format is requested in the instructions: %s", async (words) => {
    const schema = { type: "object", properties: { answer: { type: "number" } } };
    const { provider, bodies } = server(openaiChat, refusing("response_format", openaiError(words)));
    const responseFormat = { type: "json_schema", jsonSchema: { name: "sum", schema } } as const;
    await collect(provider, { ...request, responseFormat });
    expect(bodies[1]).not.toHaveProperty("response_format");
    expect(JSON.stringify(bodies[1]?.messages)).toContain(JSON.stringify(JSON.stringify(schema)).slice(1, -1));
  });

  test("refused reasoning of earlier replies is left out", async () => {
    const error = openaiError("'messages.2' : property 'reasoning_content' is unsupported");
    const { provider, bodies } = server(openaiChat, refusing("reasoning_content", error));
    const reasoning = { text: "Hm.", wireField: "reasoning_content" };
    const messages = [...request.messages, { role: "assistant", content: "Yes.", calls: [], reasoning } as const];
    expect((await collect(provider, { ...request, messages })).at(-1)).toMatchObject({ stop: "tools" });
    expect(bodies[1]?.messages).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hello" },
      { role: "assistant", content: "Yes." },
    ]);
  });

  test("refused summaries on the responses wire leave the effort in the request", async () => {
    const error = openaiError(
      "Your organization must be verified to generate reasoning summaries.",
      "reasoning.summary",
    );
    const { provider, bodies } = server(openaiResponses, refusing("summary", error));
    await collect(provider, { ...request, ...full });
    expect(bodies.map(({ reasoning }) => reasoning)).toEqual([{ effort: "high", summary: "auto" }, { effort: "high" }]);
  });

  test("refused encrypted reasoning on the responses wire is left out", async () => {
    const error = openaiError("Encrypted content is not supported with this model.", "include");
    const { provider, bodies } = server(openaiResponses, refusing("include", error));
    await collect(provider, { ...request, ...full });
    expect(bodies[1]).not.toHaveProperty("include");
  });

  test.each([
    ["effort", "This model does not support the effort parameter.", { thinking: { type: "adaptive" } }],
    ["effort", "This model does not support effort level 'high'. Supported: low.", { thinking: { type: "adaptive" } }],
    [
      "thinking",
      "thinking.type: Input tag 'adaptive' is not supported by this model",
      { output_config: { effort: "high" } },
    ],
    [
      "cache_control",
      "system.0.cache_control: Extra inputs are not permitted",
      { system: [{ type: "text", text: "Be brief." }] },
    ],
  ])("the refused parameter %s on the messages wire is left out", async (field, message, rest) => {
    const error = { type: "error", error: { type: "invalid_request_error", message } };
    const { provider, bodies } = server(anthropicMessages, refusing(field, error));
    const events = await collect(provider, { ...request, ...full, model: "claude-sonnet-5-5" });
    expect(events.at(-1)).toMatchObject({ stop: "tools" });
    expect(bodies[1]).toMatchObject(rest);
    expect(JSON.stringify(bodies[1])).not.toContain(`"${field}":`);
  });
});

describe("an error about anything else", () => {
  test.each([
    ["an unknown model", openaiError("The model 'm-1' does not exist", "model")],
    [
      "a parameter that was not sent",
      openaiError("Unknown parameter: 'max_completion_tokens'.", "max_completion_tokens"),
    ],
    ["a parameter that is needed", openaiError("Invalid value for 'messages': not supported", "messages")],
    ["a word that is also a parameter", openaiError("This model gave no reasoning and is unsupported")],
  ])("an error about anything other than a parameter is reported at once: %s", async (_name, error) => {
    const { provider, bodies } = server(openaiChat, () => error);
    const events = await collect(provider, { ...request, ...full });
    expect(events).toMatchObject([{ type: "end", stop: "error", error: { statusCode: 400 } }]);
    expect(bodies).toHaveLength(1);
  });

  test("a request that still fails without the parameter is reported, and nothing is stored", async () => {
    const error = openaiError("Unknown parameter: 'stream_options'.", "stream_options");
    const { provider, bodies } = server(openaiChat, () => error);
    expect(await collect(provider)).toMatchObject([{ type: "end", stop: "error" }]);
    expect(await collect(provider)).toMatchObject([{ type: "end", stop: "error" }]);
    expect(bodies.map((body) => "stream_options" in body)).toEqual([true, false, true, false]);
  });

  test("a refused schema is reported, so that its author can fix it", async () => {
    const error = openaiError(
      "Invalid schema for response_format 'sum': 'additionalProperties' is required",
      "response_format",
    );
    const { provider, bodies } = server(openaiChat, () => error);
    const responseFormat = { type: "json_schema", jsonSchema: { name: "sum", schema: {} } } as const;
    expect(await collect(provider, { ...request, responseFormat })).toMatchObject([{ stop: "error" }]);
    expect(bodies).toHaveLength(1);
  });
});
