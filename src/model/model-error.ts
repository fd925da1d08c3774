/**
 * Why a model call failed, in kinds that decide what happens next: `retry.ts` looks at the kind, the surface shows
 * the message and the hint.
 */
export type ModelErrorKind =
  /** 401, 403: the key is missing or wrong. Never retried. */
  | "authentication"
  /** 402, or a quota code: nothing to wait for. Never retried. */
  | "quota"
  /** 400, 404, 413, 422: the request itself. Never retried. */
  | "request"
  /** The conversation does not fit the model's window. Never retried as it is. */
  | "context_length"
  /** 429 and 529. Retried after what the provider says. */
  | "rate_limit"
  /** 408, 409, 499, 5xx. Retried. */
  | "server"
  /** No connection, or it broke. Retried. */
  | "network"
  /** Nothing came for too long, or the whole call took too long. Retried before output. */
  | "timeout"
  /** The answer was not what the wire defines, or ended without a finish reason. */
  | "protocol"
  /** The provider refused to answer for reasons of content. Never retried. */
  | "content_filter"
  /** A defect on our side. */
  | "internal";

export interface ModelErrorDetails {
  kind: ModelErrorKind;
  provider: string;
  statusCode?: number;
  /** The provider's own code, such as `insufficient_quota`. */
  code?: string;
  /** The parameter of the request that the provider complains about, as the provider names it. */
  parameter?: string;
  /** What the provider asked us to wait, in milliseconds. */
  retryAfterMs?: number;
  /** What the provider itself says about trying again; it outranks what the kind would suggest. */
  retryable?: boolean;
  hint?: string;
  cause?: unknown;
}

export class ModelError extends Error {
  override readonly name = "ModelError";
  readonly kind: ModelErrorKind;
  readonly provider: string;
  readonly statusCode: number | undefined;
  readonly code: string | undefined;
  readonly parameter: string | undefined;
  readonly retryAfterMs: number | undefined;
  /** Set when the provider said so itself; otherwise the kind decides. */
  readonly retryable: boolean | undefined;
  /** What the user can do about it, in one line. */
  readonly hint: string | undefined;

  constructor(message: string, details: ModelErrorDetails) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.kind = details.kind;
    this.provider = details.provider;
    this.statusCode = details.statusCode;
    this.code = details.code;
    this.parameter = details.parameter;
    this.retryAfterMs = details.retryAfterMs;
    this.retryable = details.retryable;
    this.hint = details.hint;
  }

  /** A stream that stops without a finish reason is an error, whoever parsed it. */
  static incomplete(provider: string): ModelError {
    return new ModelError(`${provider}: the reply broke off before it was finished`, { kind: "protocol", provider });
  }

  static from(cause: unknown, provider: string): ModelError {
    if (cause instanceof ModelError) return cause;
    const message = cause instanceof Error ? cause.message : String(cause);
    return new ModelError(`${provider}: ${message}`, { kind: "internal", provider, cause });
  }
}
