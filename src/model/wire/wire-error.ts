/**
 * Converts a provider's error to a `ModelError`. The kind decides about retries, the hint tells the user what to do,
 * and no message ever contains a key.
 */
import { isObject } from "../../lib/json.ts";
import { clip, sanitise } from "../../lib/text.ts";
import { kindOfStatus, ModelError, type ModelErrorDetails, type ModelErrorKind } from "../model-error.ts";
import type { Endpoint } from "./endpoint.ts";
import { limits } from "./limits.ts";
import { type ProviderErrorText, providerErrorOf, readProviderError } from "./provider-error-text.ts";

interface Refusal {
  readonly status: number;
  header(name: string): string | undefined;
  readonly body: string;
  /** Values that must not be shown. */
  readonly secrets: readonly string[];
}

/** Returns the error for a reply that violates the wire's protocol. */
export function protocolError(provider: string, what: string): ModelError {
  return new ModelError(`${provider}: ${what}`, { kind: "protocol", provider });
}

/** Returns the error for a response that is not a success. */
export function httpError(endpoint: Endpoint, refusal: Refusal): ModelError {
  const { status } = refusal;
  const parsed = readProviderError(refusal.body);
  const kind = kindOf(parsed, status);
  const reason = parsed.message ?? (status < 400 ? redirection(refusal) : "no reason given");
  return new ModelError(`${endpoint.id}: ${presentable(reason, refusal.secrets)} (HTTP ${status})`, {
    kind,
    provider: endpoint.id,
    statusCode: status,
    hint: hintFor(kind, endpoint, status),
    ...optional("code", parsed.code && presentable(parsed.code, refusal.secrets)),
    ...optional("parameter", parsed.parameter && presentable(parsed.parameter, refusal.secrets)),
    ...optional("retryAfterMs", retryAfter(refusal, endpoint.stamp?.now() ?? Date.now())),
    ...optional("retryable", retryable(refusal, parsed)),
  });
}

/** Returns the provider's own statement if there is one. An account that is used up for days is not retried. */
function retryable({ header }: Refusal, { codes }: ProviderErrorText): boolean | undefined {
  const said = { true: true, false: false }[header("x-should-retry") ?? ""];
  return said ?? (codes.some((code) => /^user_\w+_rate_limited$/.test(code)) ? false : undefined);
}

/** Returns the error that a reply contained after it started as a success. */
export function reportedError(endpoint: Endpoint, error: unknown): ModelError {
  const parsed = providerErrorOf(error);
  const kind = kindOf(parsed, parsed.status);
  return new ModelError(`${endpoint.id}: ${presentable(parsed.message ?? "the reply failed without a reason")}`, {
    kind,
    provider: endpoint.id,
    hint: hintFor(kind, endpoint, parsed.status),
    ...optional("code", parsed.code && presentable(parsed.code)),
    ...optional("statusCode", parsed.status),
  });
}

export interface RefusalDetails {
  /** The explanation of the model or the provider. */
  readonly said?: string;
  /** The policy that applied, such as `cyber`. */
  readonly category?: string;
  /** A model that may answer. */
  readonly otherModel?: string;
}

/** Returns the error for an answer that the provider refused because of its content. */
export function refusedContent(endpoint: Endpoint, details: RefusalDetails = {}): ModelError {
  const { said = "", category = "", otherModel = "" } = details;
  const reason = said.trim() === "" ? "" : `: ${presentable(said)}`;
  const policy = category.trim() === "" ? "" : ` (category: ${presentable(category)})`;
  const isSilent = reason + policy === "";
  const message = isSilent ? "the reply was stopped by a filter" : `the model refused${policy}${reason}`;
  const other = otherModel.trim() === "" ? "" : ` The provider suggests ${presentable(otherModel)}.`;
  return new ModelError(`${endpoint.id}: ${message}`, {
    kind: "content_filter",
    provider: endpoint.id,
    hint: `${hintFor("content_filter", endpoint, undefined)}${other}`,
    ...optional("code", category.trim() === "" ? undefined : presentable(category)),
  });
}

/** Returns the error for a failed or broken connection. */
export function networkError(endpoint: Endpoint, origin: string, cause: unknown): ModelError {
  const code = causeCode(cause);
  const timedOut = code !== undefined && /TIMEOUT|ETIMEDOUT/.test(code);
  const details: ModelErrorDetails = {
    kind: timedOut ? "timeout" : "network",
    provider: endpoint.id,
    hint: networkHint(code, origin),
    cause,
    ...(code !== undefined && certificateCode.test(code) && { retryable: false }),
  };
  return new ModelError(`${endpoint.id}: ${networkProblem(code, origin)}`, { ...details, ...optional("code", code) });
}

const kindOfCode: Readonly<Record<string, ModelErrorKind>> = {
  insufficient_quota: "quota",
  quota_exceeded: "quota",
  billing_hard_limit_reached: "quota",
  billing_not_active: "quota",
  billing_error: "quota",
  context_length_exceeded: "context_length",
  content_filter: "content_filter",
  content_policy_violation: "content_filter",
  overloaded_error: "rate_limit",
  rate_limit_error: "rate_limit",
  rate_limit_exceeded: "rate_limit",
  authentication_error: "authentication",
  permission_error: "authentication",
  invalid_api_key: "authentication",
  invalid_request_error: "request",
  invalid_prompt: "request",
  not_found_error: "request",
  model_not_found: "request",
  request_too_large: "request",
  api_error: "server",
  server_error: "server",
  timeout_error: "server",
  // Groq: the model wrote an invalid call or invalid JSON. Another attempt may succeed.
  tool_use_failed: "protocol",
  json_validate_failed: "protocol",
};

/** Kinds for which the code is more specific than the status. For the others the status is more reliable. */
const tellingKinds: ReadonlySet<ModelErrorKind | undefined> = new Set([
  "quota",
  "context_length",
  "content_filter",
  "protocol",
]);

function kindOf(parsed: ProviderErrorText, status: number | undefined): ModelErrorKind {
  const kinds = parsed.codes.map((code) => kindOfCode[code.toLowerCase()]);
  const telling = kinds.find((kind) => tellingKinds.has(kind));
  if (telling) return telling;
  const message = parsed.message ?? "";
  if (status === undefined || (status >= 400 && status < 500 && status !== 401)) {
    if (/credit balance is too low|insufficient (?:balance|credits?|funds)/i.test(message)) return "quota";
    if (status !== 429 && tooLong.test(message)) return "context_length";
  }
  if (status !== undefined && status >= 300) return kindOfStatus(status);
  return kinds.find((kind) => kind !== undefined) ?? "server";
}

const tooLong =
  /maximum context length|context (?:length|window|size)|prompt is too long|input is too long|exceeds? the (?:model's )?(?:maximum )?(?:token|context) limit|too many (?:input )?tokens/i;

function hintFor(kind: ModelErrorKind, endpoint: Endpoint, status: number | undefined): string {
  switch (kind) {
    case "authentication":
      return endpoint.keyHint ?? `Check the API key of ${endpoint.id}, and that it may use this model.`;
    case "quota":
      return `Check plan and billing of your ${endpoint.id} account: waiting does not help.`;
    case "context_length":
      return "The conversation does not fit the model: compact it, start a new one, or use a model with a larger window.";
    case "rate_limit":
      return "Wait a moment, or use another model.";
    case "content_filter":
      return "Reword the request, or use another model.";
    case "request":
      return requestHint(endpoint, status);
    default:
      return "The provider has a problem. Try again later, or use another model.";
  }
}

function requestHint(endpoint: Endpoint, status: number | undefined): string {
  if (status === 404)
    return `Check the model name (\`troupe models\` lists them) and the base URL ${addressOf(endpoint)}.`;
  if (status === 413) return "The request is too large: remove images and large attachments, or start a new session.";
  if (status !== undefined && status < 400)
    return "Set the base URL to the final address: keys are not sent to redirects.";
  return "The provider did not accept the request: check the model name and its settings.";
}

/** Returns the base URL without credentials and query. */
function addressOf(endpoint: Endpoint): string {
  const { pathname } = URL.canParse(endpoint.baseUrl) ? new URL(endpoint.baseUrl) : { pathname: "" };
  return `${endpointOrigin(endpoint)}${pathname === "/" ? "" : pathname}`;
}

/** Returns scheme, host and port, which may be shown. */
export function endpointOrigin(endpoint: Endpoint): string {
  return URL.canParse(endpoint.baseUrl) ? new URL(endpoint.baseUrl).origin : "(not an address)";
}

function redirection({ header }: Refusal): string {
  const target = header("location") ?? "";
  return `the server redirects${URL.canParse(target) ? ` to ${new URL(target).origin}` : ""}`;
}

/** Returns the wait that the provider asked for. Ignores invalid, zero and past times. */
function retryAfter({ header }: Refusal, now: number): number | undefined {
  const asked = askedFor(header("retry-after-ms")?.trim() ?? "", header("retry-after")?.trim() ?? "", now);
  return asked > 0 ? asked : undefined;
}

function askedFor(milliseconds: string, value: string, now: number): number {
  if (number.test(milliseconds)) return Number(milliseconds);
  if (number.test(value)) return Number(value) * 1000;
  return httpDate.test(value) ? Date.parse(value) - now : Number.NaN;
}

const number = /^[+-]?\d{1,15}(?:\.\d+)?(?:e\d{1,2})?$/i;
const httpDate = /^(?:[A-Z][a-z]{2,8}, )?\d{1,2}[ -][A-Z][a-z]{2}[ -]\d{2,4} \d{2}:\d{2}:\d{2} (?:GMT|UTC|[+-]\d{4})$/;

function causeCode(cause: unknown): string | undefined {
  for (let depth = 0, at = cause; depth < 5 && isObject(at); depth++) {
    if (typeof at.code === "string") return at.code;
    at = Array.isArray(at.errors) ? at.errors[0] : at.cause;
  }
  return undefined;
}

function networkProblem(code: string | undefined, origin: string): string {
  if (code === "ECONNREFUSED") return `${origin} refused the connection`;
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return `the host of ${origin} was not found`;
  if (code !== undefined && certificateCode.test(code)) return `the certificate of ${origin} is not trusted (${code})`;
  return `the connection to ${origin} broke${code ? ` (${code})` : ""}`;
}

function networkHint(code: string | undefined, origin: string): string {
  if (code === "ECONNREFUSED") return `Is the server running at ${origin}?`;
  if (code !== undefined && certificateCode.test(code)) return "Name the right authority in NODE_EXTRA_CA_CERTS.";
  return `Check the address ${origin} and your connection.`;
}

const certificateCode = /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|ERR_TLS/;

/** Returns outside text in displayable form: short, on one line, without control characters or secrets. */
export function presentable(text: string, secrets: readonly string[] = []): string {
  let shown = text;
  for (const secret of secrets) shown = shown.replaceAll(secret, "[key]");
  return clip(sanitise(shown).replace(/\s+/g, " ").trim(), limits.messageCharacters);
}

function optional<K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } {
  return (value === undefined ? {} : { [key]: value }) as { [P in K]?: V };
}
