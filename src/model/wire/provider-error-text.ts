/** Reads a provider's error message. Providers and gateways use many formats; an unknown one is shown as it is. */
import { isObject } from "../../lib/json.ts";
import { parseBounded } from "./bounded-json.ts";

type Fields = Readonly<Record<string, unknown>>;

export interface ProviderErrorText {
  readonly message: string | undefined;
  /** The most specific of its codes. */
  readonly code: string | undefined;
  /** All its codes and types, to derive the kind. */
  readonly codes: readonly string[];
  /** The HTTP status, if the body contains one. */
  readonly status: number | undefined;
  /** The request parameter that the provider rejects, as named by the provider. */
  readonly parameter: string | undefined;
}

const nothing = { code: undefined, codes: [], status: undefined, parameter: undefined } as const;

/** Parses the body of an HTTP error. */
export function readProviderError(body: string): ProviderErrorText {
  const text = body.trim();
  if (text.startsWith("{") || text.startsWith("[")) {
    const parsed = parseBounded(text);
    if (parsed.ok) return providerErrorOf(parsed.value);
  }
  if (text.startsWith("<")) {
    const title = /<title[^>]*>([^<]*)<\/title>/i.exec(text)?.[1]?.trim();
    return { message: title ? `a web page came back: ${title}` : "a web page came back", ...nothing };
  }
  return { message: text === "" ? undefined : text, ...nothing };
}

/** Parses a value. A value of unknown format becomes the message, as JSON. */
export function providerErrorOf(value: unknown): ProviderErrorText {
  const found = search(value, 0);
  if (found.message !== undefined) return found;
  const isEmpty = !isObject(value) && !Array.isArray(value) ? true : Object.keys(value).length === 0;
  return isEmpty ? found : { ...found, message: JSON.stringify(value) };
}

/** Gateways wrap each other's errors. This bounds how deep they are unwrapped. */
const MAX_DEPTH = 6;
/** Maximum number of errors shown from a list. */
const MAX_LISTED = 3;

function search(value: unknown, depth: number): ProviderErrorText {
  if (typeof value === "string") return { message: value.trim() === "" ? undefined : value, ...nothing };
  if (depth >= MAX_DEPTH) return { message: undefined, ...nothing };
  if (Array.isArray(value)) return searchList(value, depth);
  if (!isObject(value)) return { message: undefined, ...nothing };
  const { error, errors } = value;
  const nested = [error, errors].find((part) => isObject(part) || (Array.isArray(part) && part.length > 0));
  const inner = nested === undefined ? undefined : search(nested, depth + 1);
  if (inner?.message !== undefined) return inner;
  return textOfFields(value, depth, typeof error === "string" ? error : undefined);
}

function searchList(list: readonly unknown[], depth: number): ProviderErrorText {
  const complaints = list.slice(0, MAX_LISTED).map((entry) => search(entry, depth + 1));
  const messages = complaints.flatMap(({ message }) => message ?? []);
  const [first = { message: undefined, ...nothing }] = complaints;
  return messages.length === 0 ? first : { ...first, message: messages.join("; ") };
}

function textOfFields(value: Fields, depth: number, error: string | undefined): ProviderErrorText {
  const inner = innerError(value, depth);
  const codes = [value.code, value.status, value.type].filter((code) => typeof code === "string" && code !== "");
  const status = [value.code, value.status, value.status_code].find((code) => typeof code === "number");
  const location = locationOf(value);
  const message = inner?.message ?? (error?.trim() ? error : undefined);
  const wrapped = wrappedMessage(value, depth);
  return {
    message: message && `${location ? `${location}: ` : ""}${message}${wrapped ? `: ${wrapped}` : ""}`,
    code: codes[0] as string | undefined,
    codes: codes as string[],
    status: (status as number | undefined) ?? inner?.status,
    parameter: parameterOf(value) ?? location ?? inner?.parameter,
  };
}

const messageFields = ["message", "detail", "msg", "error_description", "error_message", "title", "reason"] as const;

function innerError(value: Fields, depth: number): ProviderErrorText | undefined {
  for (const field of messageFields) {
    const found = search(value[field], depth + 1);
    if (found.message !== undefined) return found;
  }
  return undefined;
}

/** Returns the wrapped error: OpenRouter puts the provider's own message, often JSON, into `metadata.raw`. */
function wrappedMessage({ metadata }: Fields, depth: number): string | undefined {
  const raw = isObject(metadata) ? metadata.raw : undefined;
  if (typeof raw !== "string" || raw.trim() === "") return undefined;
  const parsed = parseBounded(raw);
  return parsed.ok ? (search(parsed.value, depth + 1).message ?? raw) : raw;
}

/** Returns the path of a validation error, such as `["body", "stream_options"]`. */
function locationOf({ loc }: Fields): string | undefined {
  if (!Array.isArray(loc)) return undefined;
  const path = loc.filter((step) => step !== "body" && (typeof step === "string" || typeof step === "number"));
  return path.length === 0 ? undefined : path.join(".");
}

function parameterOf({ param, details }: Fields): string | undefined {
  if (typeof param === "string" && param !== "") return param;
  const violations = (Array.isArray(details) ? details : []).flatMap((detail: unknown) =>
    isObject(detail) && Array.isArray(detail.fieldViolations) ? detail.fieldViolations : [],
  );
  const field = violations.find((violation) => isObject(violation) && typeof violation.field === "string");
  return isObject(field) ? String(field.field) : undefined;
}
