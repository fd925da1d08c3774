/** Prints the type of a zod schema in the notation of TypeScript. */
import * as z from "zod";

type JsonSchema = z.core.JSONSchema.BaseSchema;

export interface Member {
  readonly name: string;
  readonly isOptional: boolean;
  readonly type: string;
}

export function jsonSchemaOf(schema: z.ZodType): JsonSchema {
  return z.toJSONSchema(schema, { unrepresentable: "any", io: "input", cycles: "ref", reused: "inline" });
}

/** Returns the members of an object schema; of a union, the members of all its objects. */
export function membersOf(schema: JsonSchema): Member[] {
  const choices = schema.anyOf ?? schema.oneOf ?? schema.allOf;
  if (choices !== undefined) {
    const all = choices.flatMap((choice) => membersOf(choice as JsonSchema));
    return all.filter((member, index) => all.findIndex(({ name }) => name === member.name) === index);
  }
  return Object.entries(schema.properties ?? {}).map(([name, member]) => ({
    name,
    isOptional: !schema.required?.includes(name),
    type: typeOf(member as JsonSchema),
  }));
}

/** Shows nested objects only by the names of their members. */
export function typeOf(schema: JsonSchema): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) return unique(choices.map((choice) => typeOf(choice as JsonSchema))).join(" | ");
  if (Array.isArray(schema.type)) return schema.type.join(" | ");
  if (schema.type === "array") return arrayOf(schema.items === undefined ? "any" : typeOf(schema.items as JsonSchema));
  if (schema.type === "object") return objectOf(schema);
  return schema.type === "integer" ? "number" : (schema.type ?? "any");
}

function arrayOf(item: string): string {
  return item.includes(" | ") ? `(${item})[]` : `${item}[]`;
}

function objectOf(schema: JsonSchema): string {
  const names = membersOf(schema).map(({ name, isOptional }) => (isOptional ? `${name}?` : name));
  return names.length === 0 ? "object" : `{ ${names.join(", ")} }`;
}

const unique = (texts: readonly string[]): string[] => [...new Set(texts)];
