/**
 * The reason why a model call failed. The kind decides what happens next: `retry.ts` uses the kind, clients show the
 * message and the hint.
 */
export type ModelErrorKind =
  /** 401, 403: the key is missing or wrong. Never retried. */
  | "authentication"
  /** 402 or a quota code: waiting does not help. Never retried. */
  | "quota"
  /** 400, 404, 413, 422: the request is invalid. Never retried. */
  | "request"
  /** The conversation does not fit into the model's context window. Never retried unchanged. */
  | "context_length"
  /** 429 and 529. Retried after the time that the provider gives. */
  | "rate_limit"
  /** 408, 409, 499, 5xx. Retried. */
  | "server"
  /** No connection, or the connection broke. Retried. */
  | "network"
  /** No data for too long, or the whole call took too long. Retried a limited number of times. */
  | "timeout"
  /** The reply does not follow the wire's protocol, or ended without a finish reason. Retried. */
  | "protocol"
  /** The provider refused to answer because of the content. Never retried. */
  | "content_filter"
  /** A defect in our code. */
  | "internal";

export interface ModelErrorDetails {
  kind: ModelErrorKind;
  provider: string;
  statusCode?: number;
  /** The provider's own code, such as `insufficient_quota`. */
  code?: string;
  /** The request parameter that the provider rejects, as named by the provider. */
  parameter?: string;
  /** The wait that the provider asked for, in milliseconds. */
  retryAfterMs?: number;
  /**
   * The provider's own statement about retries. `false` prevents a retry; `true` does not override a kind that is never
   * retried.
   */
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
  /** Set if the provider states it. `false` prevents a retry; otherwise the kind decides. */
  readonly retryable: boolean | undefined;
  /** Advice for the user, in one line. */
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

  /** Returns the error for a stream that ends without a finish reason, for all decoders. */
  static incomplete(provider: string): ModelError {
    return new ModelError(`${provider}: the reply broke off before it was finished`, { kind: "protocol", provider });
  }

  static from(cause: unknown, provider: string): ModelError {
    if (cause instanceof ModelError) return cause;
    const message = cause instanceof Error ? cause.message : String(cause);
    return new ModelError(`${provider}: ${message}`, { kind: "internal", provider, cause });
  }
}

/** Returns the kind for an HTTP status without a more precise reason. */
export function kindOfStatus(status: number): ModelErrorKind {
  if (status === 401 || status === 403) return "authentication";
  if (status === 402) return "quota";
  if (status === 429 || status === 529) return "rate_limit";
  if (status === 408 || status === 409 || status === 499 || status >= 500) return "server";
  return "request";
}
