import { firstCharacters } from "../lib/text.ts";
import type { SessionLog } from "../store/store.ts";

export const LARGE_OUTPUT_BYTES = 20_480;
const PREVIEW_CHARACTERS = 500;

/** Keeps what is too large for a model in the session's folder and returns what the model reads instead. */
export async function boundOutput(what: {
  content: string;
  toolName: string;
  maxBytes: number;
  log: Pick<SessionLog, "writeFile" | "elsewhere">;
}): Promise<string> {
  const { content, toolName, maxBytes, log } = what;
  if (content.length * 3 <= maxBytes) return content;
  const bytes = Buffer.byteLength(content);
  if (bytes <= maxBytes) return content;
  const path = await log.writeFile(`${toolName}-output.txt`, content);
  const copy = log.elsewhere?.copyOf(path);
  return [
    `Output too large to read at once (${(bytes / 1024).toFixed(1)} KB). Saved to: ${path}`,
    `Read parts of it with view and a view_range, or search it with grep${copy === undefined ? "" : `: here it is ${copy}`}.`,
    "",
    `Preview (first ${PREVIEW_CHARACTERS} chars):`,
    firstCharacters(content, PREVIEW_CHARACTERS),
  ].join("\n");
}
