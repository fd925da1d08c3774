/** Differences of a service from the common chat completions wire. Data of its provider, used by the wire. */
export interface ChatDialect {
  /** Endpoints at these hosts and below them have the dialect, whatever provider they are configured as. */
  readonly hosts: readonly string[];
  /** The name of the limit of output tokens, where it is not `max_tokens`. */
  readonly maxTokensField?: "max_completion_tokens";
  /** Whether `prompt_cache_key` is known. */
  readonly takesCacheKey?: true;
  /** Ids of calls that are accepted, and the length of an id that replaces another. */
  readonly callIds?: { readonly pattern: RegExp; readonly length: number };
  /** Models that refuse a call without a thought signature. */
  readonly signedModels?: RegExp;
}

/** Returns the dialect of the service at this address, if it is one of `dialects`. */
export function chatDialectAt(baseUrl: string, dialects: readonly ChatDialect[]): ChatDialect | undefined {
  if (!URL.canParse(baseUrl)) return undefined;
  const { protocol, hostname } = new URL(baseUrl);
  const isAt = (host: string): boolean => hostname === host || hostname.endsWith(`.${host}`);
  return protocol === "https:" ? dialects.find(({ hosts }) => hosts.some(isAt)) : undefined;
}
