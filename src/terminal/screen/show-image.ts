/** Shows an image file above the prompt, where the terminal can. */
import { readFile, stat } from "node:fs/promises";
import { imageLine, imageProtocol } from "./image.ts";

const MAX_BYTES = 4 * 1024 * 1024;

/** Never rejects: an image that cannot be read is not shown. */
export async function showImage(
  app: {
    readonly options: { readonly environment: Readonly<Record<string, string | undefined>> };
    commit(lines: readonly string[]): void;
  },
  path: string,
): Promise<void> {
  const protocol = imageProtocol(app.options.environment);
  if (!protocol) return;
  const { size } = await stat(path).catch(() => ({ size: Number.POSITIVE_INFINITY }));
  const line = size <= MAX_BYTES ? imageLine(await readFile(path).catch(() => Buffer.alloc(0)), protocol) : undefined;
  if (line !== undefined) app.commit([line]);
}
