export interface SearchQuery {
  readonly text: string;
  readonly maxResults: number;
}

/** A page that a search found. Its texts come from strangers. */
export interface SearchHit {
  /** http or https. */
  readonly url: string;
  readonly title: string;
  readonly snippet?: string;
  /** As the search service writes it. */
  readonly published?: string;
}

export interface SearchAnswer {
  /** The service or the model that searched. */
  readonly by: string;
  /** Its answer in words, with numbers such as [2] that refer to the hits; search services give none. */
  readonly text?: string;
  readonly hits: readonly SearchHit[];
}

/** How `web_search` searches; the session fills it in. Throws a `ToolError` when the search fails. */
export interface WebSearch {
  /** The address that the query goes to, with the query as `q`: for permission rules and for the user. */
  address(query: string): string;
  search(query: SearchQuery, signal: AbortSignal): Promise<SearchAnswer>;
}
