/** Where a search looks: one folder or file, or several. */
import { isAbsolute, normalize, sep } from "node:path";
import * as z from "zod";
import { type Opened, type PathScope, resolveInside } from "../lib/node/paths.ts";
import { pathFailure } from "./path-failure.ts";

const MAX_PLACES = 50;

export const placeFields = {
  path: z.string().optional().describe("Where to search; absolute, or relative to the working folder (the default)"),
  paths: z
    .union([z.string(), z.array(z.string()).max(MAX_PLACES)])
    .optional()
    .describe("One or several places to search, instead of path"),
};

export function placesOf(call: { path?: string | undefined; paths?: string | string[] | undefined }): string[] {
  const places = [...new Set([call.path ?? [], call.paths ?? []].flat())];
  return places.length === 0 ? ["."] : places;
}

/** The one path that covers all of them: what a permission is asked for. */
export function coveringPath(places: readonly string[]): string {
  const [first = ".", ...others] = places.map((place) => normalize(place));
  if (others.length === 0) return places[0] ?? ".";
  const all = [first, ...others];
  if (!all.every(isAbsolute)) return all.some((place) => isAbsolute(place) || place.startsWith("..")) ? "/" : ".";
  const shared = first.split(sep);
  for (const place of others) {
    const parts = place.split(sep);
    const different = shared.findIndex((part, index) => part !== parts[index]);
    if (different >= 0) shared.length = different;
  }
  return shared.join(sep) || sep;
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
