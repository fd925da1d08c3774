export interface SearchQuery {
  readonly text: string;
  readonly maxResults: number;
}

/** A page that a search found. Its texts are untrusted. */
export interface SearchHit {
  /** http or https. */
  readonly url: string;
  readonly title: string;
  readonly snippet?: string;
  /** As written by the search service. */
  readonly published?: string;
}

export interface SearchAnswer {
  /** The service or the model that searched. */
  readonly by: string;
  /** Its answer in words, with numbers such as [2] that refer to the hits; absent for search services. */
  readonly text?: string;
  readonly hits: readonly SearchHit[];
}

/** The port of `web_search`, provided by the session. Throws a `ToolError` when the search fails. */
export interface WebSearch {
  /** Returns the address that receives the query, with the query as `q`, for permission rules and the user. */
  address(query: string): string;
  search(query: SearchQuery, signal: AbortSignal): Promise<SearchAnswer>;
}
