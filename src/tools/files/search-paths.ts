/** The paths that a search looks in: one folder or file, or several. */
import * as z from "zod";
import { type OpenedEntry, type PathScope, resolveInside } from "../../lib/node/paths.ts";
import type { Access } from "../../protocol/permission.ts";
import { pathFailure } from "./path-failure.ts";

const MAX_PLACES = 50;

export const searchPathFields = () => ({
  path: z.string().optional().describe("Where to search; absolute, or relative to the working folder (the default)"),
  paths: z
    .union([z.string(), z.array(z.string()).max(MAX_PLACES)])
    .optional()
    .describe("One or several places to search, instead of path"),
});

export function searchPathsOf(call: { path?: string | undefined; paths?: string | string[] | undefined }): string[] {
  const paths = [...new Set([call.path ?? [], call.paths ?? []].flat())];
  return paths.length === 0 ? ["."] : paths;
}

/** Requests access to each path separately: a common parent could cover far more. */
export function readingOf(paths: readonly string[]): Access[] {
  return paths.map((path) => ({ kind: "read", path }));
}

/** Keeps the path open while `search` runs, so that the checked folder is the searched one. */
export async function withOpenPath<T>(
  path: string,
  scope: PathScope,
  search: (opened: OpenedEntry) => Promise<T>,
): Promise<T> {
  const opened = await resolveInside(path, scope).catch(pathFailure);
  try {
    return await search(opened);
  } finally {
    await opened.handle.close();
  }
}
