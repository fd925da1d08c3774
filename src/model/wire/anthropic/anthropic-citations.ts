import { defined } from "../../../lib/defined.ts";
import { isObject } from "../../../lib/json.ts";
import type { Citations } from "../../../protocol/citations.ts";
import { citationLimits, webAddress } from "../openai/openai-citations.ts";
import { countOf, textOf } from "../reply.ts";

type Fields = Readonly<Record<string, unknown>>;
type Span = Citations["spans"][number];
type Reference = Span["references"][number];

/** Collects the citations of one reply, block by block. */
export class CitationReader {
  readonly #sources = new Map<string, Citations["sources"][number]>();
  readonly #spans: Span[] = [];
  #references: Reference[] = [];
  #count = 0;

  /** Adds a citation of the current block. */
  add(citation: unknown): void {
    if (!isObject(citation) || ++this.#count > citationLimits.references) return;
    const id = this.#sourceOf(citation);
    const cited = textOf(citation.cited_text).slice(0, citationLimits.citedCharacters);
    const location = locationOf(citation);
    this.#references.push({ sourceId: id, ...(cited !== "" && { citedText: cited }), ...defined({ location }) });
  }

  /** Ends the current block, which is this range of the reply's text. */
  close(startIndex: number, endIndex: number): void {
    const references = this.#references;
    this.#references = [];
    if (references.length > 0 && endIndex > startIndex) this.#spans.push({ startIndex, endIndex, references });
  }

  /** Returns the source's key. Documents of the request have an index; pages found by the provider have a URL. */
  #sourceOf(citation: Fields): string {
    const isDocument = citation.document_index !== undefined;
    const address = textOf(citation.url) || textOf(citation.source);
    const key = isDocument ? `document-${countOf(citation.document_index)}` : address;
    const known = this.#sources.get(key);
    if (known) return known.id;
    const id = isDocument ? key : `source-${this.#sources.size + 1}`;
    const title = textOf(isDocument ? citation.document_title : citation.title);
    const url = isDocument ? undefined : webAddress(address);
    this.#sources.set(key, {
      id,
      provider: "anthropic",
      ...(title !== "" && { title: title.slice(0, citationLimits.titleCharacters) }),
      ...defined({ url }),
    });
    return id;
  }

  get all(): Citations | undefined {
    return this.#spans.length === 0 ? undefined : { sources: [...this.#sources.values()], spans: this.#spans };
  }
}

function locationOf(citation: Fields): Reference["location"] {
  switch (citation.type) {
    case "char_location":
      return {
        type: "char",
        startIndex: countOf(citation.start_char_index),
        endIndex: countOf(citation.end_char_index),
      };
    case "page_location":
      // The API's end is the page after the last.
      return {
        type: "page",
        startPage: countOf(citation.start_page_number),
        endPage: Math.max(countOf(citation.start_page_number), countOf(citation.end_page_number) - 1),
      };
    case "content_block_location":
    case "search_result_location":
      return {
        type: "block",
        startBlock: countOf(citation.start_block_index),
        endBlock: countOf(citation.end_block_index),
      };
    default:
      return undefined;
  }
}
