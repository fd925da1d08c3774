/** Any value that survives a JSON round trip unchanged. */
export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** Parses text that may be anything; the caller decides what a failure means. */
export function parseJson(text: string): { ok: true; value: Json } | { ok: false; error: string } {
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch (error) {
    return { ok: false, error: error instanceof Error ? error.message : String(error) };
  }
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
