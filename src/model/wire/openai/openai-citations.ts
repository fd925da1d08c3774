/** Citations in the formats of OpenAI, OpenRouter, xAI and Perplexity. */
import { defined } from "../../../lib/defined.ts";
import { isObject } from "../../../lib/json.ts";
import type { Citations } from "../../../protocol/citations.ts";
import { textOf } from "../reply.ts";

type Fields = Readonly<Record<string, unknown>>;
type Source = Citations["sources"][number];
type Span = Citations["spans"][number];

export const citationLimits = {
  references: 10_000,
  citedCharacters: 4_096,
  titleCharacters: 1_000,
  urlCharacters: 4_096,
};

/** Returns the URL if a browser can open it, otherwise `undefined`. */
export function webAddress(value: unknown): string | undefined {
  const url = textOf(value);
  return /^https?:\/\//i.test(url) && url.length <= citationLimits.urlCharacters ? url : undefined;
}

/** Collects the citations of one reply. Sources without a position in the text are listed too. */
export class OpenaiCitations {
  readonly #sources = new Map<string, Source>();
  readonly #spans: Span[] = [];
  #listed: readonly unknown[] = [];
  #count = 0;

  /**
   * Adds annotations of `text`, which starts at `offset` of the reply. Annotations count in code points, our spans in
   * UTF-16 code units.
   */
  annotate(annotations: unknown, text: string, offset: number): void {
    if (!Array.isArray(annotations)) return;
    for (const annotation of annotations.filter(isObject)) {
      if (++this.#count > citationLimits.references) return;
      const fields = isObject(annotation.url_citation) ? annotation.url_citation : annotation;
      const source = this.#sourceOf(fields);
      const range = source && rangeIn(text, fields.start_index, fields.end_index);
      if (!source || !range) continue;
      const citedText = textOf(fields.content).slice(0, citationLimits.citedCharacters);
      const references = [{ sourceId: source.id, ...(citedText !== "" && { citedText }) }];
      this.#spans.push({ startIndex: offset + range.start, endIndex: offset + range.end, references });
    }
  }

  /** Stores Perplexity's list of sources. It repeats with every chunk; the last one counts. */
  list({ citations, search_results: results }: Fields): void {
    if (Array.isArray(results) && results.length > 0) this.#listed = results;
    else if (Array.isArray(citations) && this.#listed.every((entry) => typeof entry === "string")) {
      this.#listed = citations;
    }
  }

  /** Returns the citations of the whole reply, with a span for each marker such as [2] that names a listed source. */
  all(text: string): Citations | undefined {
    const listed = this.#listed
      .slice(0, citationLimits.references)
      .map((entry) => this.#sourceOf(isObject(entry) ? entry : { url: entry }));
    const markers = listed.length === 0 ? [] : [...text.matchAll(/\[(\d{1,4})\]/g)];
    const marked = markers.slice(0, citationLimits.references).flatMap((marker): Span[] => {
      const source = listed[Number(marker[1]) - 1];
      if (!source) return [];
      const references = [{ sourceId: source.id }];
      return [{ startIndex: marker.index, endIndex: marker.index + marker[0].length, references }];
    });
    if (this.#sources.size === 0) return undefined;
    return { sources: [...this.#sources.values()], spans: [...this.#spans, ...marked] };
  }

  /** Returns one source per URL or file. */
  #sourceOf(fields: Fields): Source | undefined {
    const url = webAddress(fields.url);
    const key = url ?? textOf(fields.file_id);
    if (key === "") return undefined;
    const title = (textOf(fields.title) || textOf(fields.filename)).slice(0, citationLimits.titleCharacters);
    const source = this.#sources.get(key) ?? {
      id: `source-${this.#sources.size + 1}`,
      provider: "openai" as const,
      ...(title !== "" && { title }),
      ...defined({ url }),
    };
    this.#sources.set(key, source);
    return source;
  }
}

function rangeIn(text: string, first: unknown, last: unknown): { start: number; end: number } | undefined {
  if (typeof first !== "number" || typeof last !== "number") return undefined;
  const start = codeUnits(text, first);
  const end = codeUnits(text, last);
  return start !== undefined && end !== undefined && start < end ? { start, end } : undefined;
}

/** Converts an index in code points to UTF-16 code units. */
function codeUnits(text: string, codePoints: number): number | undefined {
  if (!Number.isInteger(codePoints) || codePoints < 0 || codePoints > text.length) return undefined;
  if (!/[\ud800-\udbff]/.test(text.slice(0, 2 * codePoints))) return codePoints;
  let at = 0;
  for (let count = 0; count < codePoints && at < text.length; count++)
    at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  return at;
}
