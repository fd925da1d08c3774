/** Where a search looks: one folder or file, or several. */
import * as z from "zod";
import { type Opened, type PathScope, resolveInside } from "../../lib/node/paths.ts";
import type { Access } from "../../protocol/permission.ts";
import { pathFailure } from "./path-failure.ts";

const MAX_PLACES = 50;

export const placeFields = () => ({
  path: z.string().optional().describe("Where to search; absolute, or relative to the working folder (the default)"),
  paths: z
    .union([z.string(), z.array(z.string()).max(MAX_PLACES)])
    .optional()
    .describe("One or several places to search, instead of path"),
});

export function placesOf(call: { path?: string | undefined; paths?: string | string[] | undefined }): string[] {
  const places = [...new Set([call.path ?? [], call.paths ?? []].flat())];
  return places.length === 0 ? ["."] : places;
}

/** Each place is asked for by its own name: what covers them all may be far more. */
export function readingOf(places: readonly string[]): Access[] {
  return places.map((path) => ({ kind: "read", path }));
}

/** Held open while `search` runs, so that what was checked is what is searched. */
export async function withPlace<T>(
  place: string,
  scope: PathScope,
  search: (opened: Opened) => Promise<T>,
): Promise<T> {
  const opened = await resolveInside(place, scope).catch(pathFailure);
  try {
    return await search(opened);
  } finally {
    await opened.handle.close();
  }
}
