/**
 * The subset of JSON Schema in which factories declare arguments and answers. Unsupported keywords are dropped, so that
 * they neither reject a valid value nor stop a run.
 */
import { isObject, type Json } from "../lib/json.ts";

type Shape = Record<string, Json>;

const MAX_DEPTH = 32;
const KINDS = new Set(["null", "boolean", "integer", "number", "string", "array", "object"]);

/**
 * Wraps the schema in an object with one member: an agent's answer must be an object, but a factory may ask for any
 * type.
 */
export function answerSchema(given: Json): Shape {
  return { type: "object", properties: { value: shapeOf(given, 0) }, required: ["value"] };
}

/** Extracts the value from an answer to `answerSchema`. */
export function answerValue(response: string): Json {
  const value: unknown = JSON.parse(response);
  return isObject(value) && "value" in value ? (value.value as Json) : null;
}

function shapeOf(given: Json, depth: number): Shape {
  if (!isObject(given) || depth > MAX_DEPTH) return {};
  const shape: Shape = {};
  const inner = (value: unknown): Shape => shapeOf(value as Json, depth + 1);
  const kinds = [given.type].flat().filter((kind) => typeof kind === "string" && KINDS.has(kind)) as string[];
  if (kinds.length === 1) shape.type = kinds[0] ?? "object";
  if (kinds.length > 1) shape.anyOf = kinds.map((type) => ({ ...partsOf(given, inner, type), type }));
  else Object.assign(shape, partsOf(given, inner, kinds[0]));
  if (Array.isArray(given.enum) && given.enum.length > 0) shape.enum = given.enum as Json[];
  if (given.const !== undefined) shape.const = given.const as Json;
  for (const name of ["description", "title"]) if (typeof given[name] === "string") shape[name] = given[name];
  const choices = [given.anyOf, given.oneOf].filter(Array.isArray).map((list) => ({ anyOf: list.map(inner) }));
  const all = Array.isArray(given.allOf) ? given.allOf.map(inner) : [];
  const both = [...choices, ...all];
  if (both.length > 0) shape.allOf = both;
  return shape;
}

/** Returns the keywords that apply only to objects and arrays. */
function partsOf(
  given: Readonly<Record<string, unknown>>,
  inner: (value: unknown) => Shape,
  kind: string | undefined,
): Shape {
  const parts: Shape = {};
  const isFor = (name: string): boolean => kind === undefined || kind === name;
  if (isFor("object") && isObject(given.properties)) {
    parts.properties = Object.fromEntries(
      Object.entries(given.properties).map(([name, value]) => [name, inner(value)]),
    );
  }
  if (isFor("object") && Array.isArray(given.required)) {
    const required = given.required.filter((name): name is string => typeof name === "string");
    if (required.length > 0) parts.required = required;
  }
  if (isFor("array") && isObject(given.items)) parts.items = inner(given.items);
  return parts;
}
