/** The fields of a form of an MCP server, and what a line of text means for one of them. */
import { isObject, isTexts } from "./json.ts";
import { sanitiseLine } from "./text.ts";

export type FieldValue = string | number | boolean | string[];

export interface FormField {
  readonly name: string;
  readonly label: string;
  /** Describes what fits, such as `integer; 1 to 8; optional`. */
  readonly hint: string;
  /** The values to choose from; empty when any value of the type fits. */
  readonly choices: readonly FormChoice[];
  readonly isRequired: boolean;
  readonly schema: Readonly<Record<string, unknown>>;
}

interface FormChoice {
  readonly value: string;
  /** The title of the value and the value, or the value alone. */
  readonly label: string;
}

interface FormSchema {
  readonly properties?: Readonly<Record<string, unknown>> | undefined;
  readonly required?: readonly string[] | undefined;
}

export function formFields({ properties = {}, required = [] }: FormSchema = {}): readonly FormField[] {
  return Object.entries(properties).map(([name, given]) => {
    const schema = isObject(given) ? given : {};
    const isRequired = required.includes(name);
    const about = typeof schema.description === "string" ? ` – ${sanitiseLine(schema.description)}` : "";
    const label = `${sanitiseLine(typeof schema.title === "string" ? schema.title : name)}${about}`;
    return { name, label, hint: hintOf(schema, isRequired), choices: choicesOf(schema), isRequired, schema };
  });
}

function hintOf(schema: FormField["schema"], isRequired: boolean): string {
  const choices = choicesOf(schema);
  const kind = typeof schema.type === "string" ? schema.type : "text";
  const parts = [
    choices.length > 0 ? choices.map(({ value }) => value).join(" | ") : kind,
    limits(schema),
    schema.default === undefined ? "" : `default: ${String(schema.default)}`,
    isRequired ? "" : "optional",
  ];
  return parts
    .filter((part) => part !== "")
    .map(sanitiseLine)
    .join("; ");
}

/** The numbered choices of a field; empty when any value of the type fits. */
export const fieldMenu = ({ schema, choices }: FormField): readonly FormChoice[] =>
  schema.type === "boolean" ? YES_OR_NO : choices;

const YES_OR_NO = ["yes", "no"].map((value) => ({ value, label: value }));

/** The value for a number of the menu; a list has several. Any other text stays. */
export function chosenValue(field: FormField, text: string): string {
  const menu = fieldMenu(field);
  const one = (word: string): string => (/^\d+$/.test(word) ? menu[Number(word) - 1]?.value : undefined) ?? word;
  if (menu.length === 0) return text;
  return field.schema.type === "array" && text !== ""
    ? text
        .split(",")
        .map((word) => one(word.trim()))
        .join(",")
    : one(text);
}

/** The meaning of a line: a value, no value (the default, or an optional field that is left out), or why it does not fit. */
export type FieldAnswer =
  | { readonly kind: "value"; readonly value: FieldValue }
  | { readonly kind: "none" }
  | { readonly kind: "problem"; readonly problem: string };

export function fieldAnswer({ schema, isRequired }: FormField, text: string): FieldAnswer {
  if (text === "") {
    if (schema.default !== undefined || !isRequired) return { kind: "none" };
    return { kind: "problem", problem: "a value is required" };
  }
  const value = typedValue(schema, text);
  if (value === undefined) return { kind: "problem", problem: `enter ${hintOf(schema, true)}` };
  const size = typeof value === "number" ? value : value === true || value === false ? undefined : value.length;
  const { least, most } = bounds(schema);
  if (size !== undefined && ((least !== undefined && size < least) || (most !== undefined && size > most))) {
    return { kind: "problem", problem: `enter ${limits(schema)}` };
  }
  return { kind: "value", value };
}

/** Undefined if the text is not a value of the field's type. */
function typedValue(schema: FormField["schema"], text: string): FieldValue | undefined {
  const choices = choicesOf(schema).map(({ value }) => value);
  switch (schema.type) {
    case "boolean":
      if (/^(y(es)?|true)$/i.test(text)) return true;
      return /^(no?|false)$/i.test(text) ? false : undefined;
    case "number":
    case "integer": {
      const number = Number(text);
      return Number.isFinite(number) && (schema.type === "number" || Number.isInteger(number)) ? number : undefined;
    }
    case "array": {
      const items = text.split(",").map((item) => item.trim());
      return items.every((item) => choices.length === 0 || choices.includes(item)) ? items : undefined;
    }
    default:
      return choices.length > 0 && !choices.includes(text) ? undefined : text;
  }
}

/** Returns the values of `enum`, or of `const` in `oneOf` and `anyOf`, of the field or of its items. */
function choicesOf(schema: FormField["schema"]): readonly FormChoice[] {
  const source = isObject(schema.items) ? schema.items : schema;
  if (Array.isArray(source.enum))
    return source.enum.map(String).map((value) => ({ value, label: sanitiseLine(value) }));
  const titled = [source.oneOf, source.anyOf].find(Array.isArray) ?? [];
  return titled.flatMap((one: unknown) => {
    if (!isObject(one) || typeof one.const !== "string") return [];
    const { const: value, title = value } = one;
    return [{ value, label: sanitiseLine(title === value ? value : `${String(title)} (${value})`) }];
  });
}

/** Returns the default values of a form's fields (SEP-1034), used for fields that were not filled in. */
export function formDefaults({ properties = {} }: FormSchema): Record<string, FieldValue> {
  const defaults: Record<string, FieldValue> = {};
  for (const [name, field] of Object.entries(properties)) {
    const value = isObject(field) ? field.default : undefined;
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") defaults[name] = value;
    else if (isTexts(value)) defaults[name] = value;
  }
  return defaults;
}

/** Of the number, of the characters of a text, or of the items of a list. */
function bounds(schema: FormField["schema"]): {
  readonly least: number | undefined;
  readonly most: number | undefined;
} {
  const [least, most] =
    schema.type === "number" || schema.type === "integer"
      ? [schema.minimum, schema.maximum]
      : schema.type === "array"
        ? [schema.minItems, schema.maxItems]
        : [schema.minLength, schema.maxLength];
  return { least: typeof least === "number" ? least : undefined, most: typeof most === "number" ? most : undefined };
}

function limits(schema: FormField["schema"]): string {
  const { least, most } = bounds(schema);
  const isNumber = schema.type === "number" || schema.type === "integer";
  const unit = isNumber ? "" : schema.type === "array" ? " items" : " characters";
  if (least !== undefined && most !== undefined) return `${least} to ${most}${unit}`;
  if (least !== undefined) return `at least ${least}${unit}`;
  return most === undefined ? "" : `at most ${most}${unit}`;
}
