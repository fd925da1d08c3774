/**
 * Makes an output schema explicit so that a validator checks all of it. Adds implied types and describes required
 * names. Throws for anything that cannot be checked.
 */

import { forbiddenKey } from "../../hooks/bounded-json.ts";
import { defined } from "../../lib/defined.ts";
import { isObject, type Json } from "../../lib/json.ts";
import { TroupeError } from "../../protocol/errors.ts";

export type StrictSchema = Readonly<Record<string, unknown>>;

const MAX_BYTES = 64 * 1024;
const MAX_DEPTH = 32;

export function strictSchema(schema: unknown): StrictSchema {
  if (!isObject(schema)) throw schemaError("it is not an object");
  const text = JSON.stringify(schema);
  if (Buffer.byteLength(text) > MAX_BYTES) throw schemaError(`it has more than ${MAX_BYTES} bytes`);
  const forbidden = forbiddenKey(schema);
  if (forbidden !== undefined) throw schemaError(`the name ${forbidden} is not allowed in it`);
  const strict = stricter(JSON.parse(text) as Json, 0);
  const isForObjects = isObject(strict) && (strict.type === "object" || strict.type === undefined);
  if (!isForObjects) throw schemaError("a result is an object, and the schema describes something else");
  return strict.type === undefined && strict.$ref === undefined ? { ...strict, type: "object" } : strict;
}

function schemaError(why: string): TroupeError {
  return new TroupeError("configuration", `The output schema cannot be used: ${why}.`, {
    hint: 'Give a JSON Schema with "type": "object".',
  });
}

const ANNOTATIONS = new Set(
  (
    "$schema $id $comment title description default examples deprecated readOnly writeOnly format contentEncoding " +
    "contentMediaType nullable"
  ).split(" "),
);
/** The type that each keyword applies to. */
const KINDS: Readonly<Record<string, string>> = {
  ...kind(
    "object",
    "properties required additionalProperties patternProperties propertyNames minProperties maxProperties",
  ),
  ...kind("array", "items prefixItems minItems maxItems uniqueItems contains"),
  ...kind("string", "minLength maxLength pattern"),
  ...kind("number", "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf"),
};
const GENERAL = new Set("type enum const anyOf oneOf allOf not $ref $defs definitions".split(" "));

function kind(name: string, keywords: string): Record<string, string> {
  return Object.fromEntries(keywords.split(" ").map((keyword) => [keyword, name]));
}

const ONE = ["items", "additionalProperties", "propertyNames", "not", "contains"];
const MANY = ["prefixItems", "anyOf", "oneOf", "allOf", "items"];
const NAMED = ["properties", "patternProperties", "$defs", "definitions"];

function stricter(schema: Json, depth: number): unknown {
  if (depth > MAX_DEPTH) throw schemaError(`it is nested more than ${MAX_DEPTH} deep`);
  if (typeof schema === "boolean") return schema;
  if (!isObject(schema)) throw schemaError("it has something in it that is not a schema");
  for (const name of Object.keys(schema)) {
    const isKnown = ANNOTATIONS.has(name) || name in KINDS || GENERAL.has(name) || name.startsWith("x-");
    if (!isKnown) throw schemaError(`the keyword ${name.slice(0, 100)} is not supported`);
  }
  const inner = (value: unknown): unknown => stricter(value as Json, depth + 1);
  const entries = Object.entries(schema).map(([name, value]): [string, unknown] => {
    if (NAMED.includes(name) && isObject(value)) {
      return [name, Object.fromEntries(Object.entries(value).map(([key, one]) => [key, inner(one)]))];
    }
    if (MANY.includes(name) && Array.isArray(value)) return [name, value.map(inner)];
    return [name, ONE.includes(name) ? inner(value) : value];
  });
  return withoutSiblings(choices(describeOptional(typed(Object.fromEntries(entries)))));
}

type Node = Record<string, unknown>;

function typed(schema: Node): Node {
  if (schema.type !== undefined) return schema;
  const kinds = new Set(Object.keys(schema).flatMap((name) => KINDS[name] ?? []));
  if (kinds.size > 1) throw schemaError(`keywords for ${[...kinds].join(" and ")} stand together without a type`);
  const [only] = kinds;
  return only === undefined ? schema : { ...schema, type: only };
}

/** A required name without a description may have any value, but must be present. */
function describeOptional(schema: Node): Node {
  const required = schema.required;
  if (!Array.isArray(required)) return schema;
  const known = isObject(schema.properties) ? schema.properties : {};
  const added = required.filter((name) => typeof name === "string" && !Object.hasOwn(known, name));
  return { ...schema, properties: { ...known, ...Object.fromEntries(added.map((name) => [name, {}])) } };
}

/** Keeps only the `enum` or `const` values that also match the type. */
function choices(schema: Node): Node {
  const values = Array.isArray(schema.enum) ? schema.enum : "const" in schema ? [schema.const] : undefined;
  if (values === undefined) return schema;
  if (values.some((value) => typeof value === "object" && value !== null)) {
    throw schemaError("enum and const may only have strings, numbers, booleans and null");
  }
  const types = schema.type === undefined ? undefined : [schema.type].flat();
  const fitting = values.filter((value) => types?.some((type) => isOfType(value, type)) ?? true);
  if (fitting.length === 0) throw schemaError("no value of an enum or const has the type that is asked for");
  const { type: _type, const: _const, ...rest } = schema;
  return { ...rest, enum: fitting };
}

function isOfType(value: unknown, type: unknown): boolean {
  if (type === "null") return value === null;
  if (type === "integer") return Number.isInteger(value);
  return typeof value === type;
}

/** Moves keywords beside `$ref` into `allOf`, because they would be ignored otherwise. */
function withoutSiblings(schema: Node): Node {
  const { $ref, $defs, definitions, ...rest } = schema;
  const isPlain = Object.keys(rest).every((name) => ANNOTATIONS.has(name) || name.startsWith("x-"));
  if ($ref === undefined || isPlain) return schema;
  const shared = { ...defined({ $defs, definitions }) };
  return { ...shared, allOf: [{ $ref }, rest] };
}
