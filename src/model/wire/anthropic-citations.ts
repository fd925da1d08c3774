import { isObject } from "../../lib/json.ts";
import type { Citations } from "../../protocol/citations.ts";
import { countOf, textOf } from "./reply.ts";

type Fields = Readonly<Record<string, unknown>>;
type Span = Citations["spans"][number];
type Reference = Span["references"][number];

const MAX_REFERENCES = 10_000;
const MAX_CITED_CHARACTERS = 4_096;

/** The citations of one reply, gathered block by block. */
export class CitationReader {
  readonly #sources = new Map<string, Citations["sources"][number]>();
  readonly #spans: Span[] = [];
  #references: Reference[] = [];
  #count = 0;

  /** One citation of the block that is being read. */
  add(citation: unknown): void {
    if (!isObject(citation) || ++this.#count > MAX_REFERENCES) return;
    const id = `document-${countOf(citation.document_index)}`;
    const title = textOf(citation.document_title);
    this.#sources.set(id, { id, provider: "anthropic", ...(title !== "" && { title }) });
    const cited = textOf(citation.cited_text).slice(0, MAX_CITED_CHARACTERS);
    const location = locationOf(citation);
    this.#references.push({ sourceId: id, ...(cited !== "" && { citedText: cited }), ...(location && { location }) });
  }

  /** The block has ended; it is this part of the reply's text. */
  close(startIndex: number, endIndex: number): void {
    const references = this.#references;
    this.#references = [];
    if (references.length > 0 && endIndex > startIndex) this.#spans.push({ startIndex, endIndex, references });
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
      // This API's end is the page after the last.
      return {
        type: "page",
        startPage: countOf(citation.start_page_number),
        endPage: Math.max(countOf(citation.start_page_number), countOf(citation.end_page_number) - 1),
      };
    case "content_block_location":
      return {
        type: "block",
        startBlock: countOf(citation.start_block_index),
        endBlock: countOf(citation.end_block_index),
      };
    default:
      return undefined;
  }
}
