/** Structured output on each wire. */
import { defined } from "../../lib/defined.ts";
import type { ModelRequest, ResponseFormat } from "../provider.ts";
import { encodeJson } from "./bounded-json.ts";

/** `response_format` of the chat completions wire. */
export function chatFormat(format: ResponseFormat): string {
  return encodeJson(
    format.type === "json_object"
      ? { type: "json_object" }
      : { type: "json_schema", json_schema: openaiSchema(format) },
  );
}

/** `text` of the responses wire. */
export function responsesFormat(format: ResponseFormat): string {
  return encodeJson({
    format: format.type === "json_object" ? { type: "json_object" } : { type: "json_schema", ...openaiSchema(format) },
  });
}

/** `output_config.format` of the messages wire, which has only schemas and always enforces them. */
export function anthropicFormat(format: ResponseFormat): object | undefined {
  return format.type === "json_schema" ? { type: "json_schema", schema: format.jsonSchema.schema } : undefined;
}

/**
 * Returns the system prompt with a description of the format.
 * - `enforced`: the request has a parameter for the format. Only JSON mode then needs words: OpenAI refuses such
 *   requests if they do not mention JSON.
 * - `asked`: only these words ask for the format.
 */
export function systemWithFormat({ system, responseFormat }: ModelRequest, by: "enforced" | "asked"): string {
  const instruction = responseFormat && instructionFor(responseFormat, by);
  if (!instruction) return system;
  return system.trim() === "" ? instruction : `${system}\n\n${instruction}`;
}

function instructionFor(format: ResponseFormat, by: "enforced" | "asked"): string | undefined {
  if (format.type === "json_object") return "Write your final answer as one JSON object, without any text around it.";
  if (by === "enforced") return undefined;
  const schema = encodeJson(format.jsonSchema.schema);
  return `Write your final answer as JSON that matches this JSON schema, without any text around it:\n${schema}`;
}

function openaiSchema({ jsonSchema }: Extract<ResponseFormat, { type: "json_schema" }>): object {
  const { name, description, schema, strict } = jsonSchema;
  return {
    name,
    ...defined({ description }),
    schema,
    ...defined({ strict }),
  };
}
