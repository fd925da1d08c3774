import { firstCharacters, plural } from "../../lib/text.ts";
import type { SessionLog } from "../../store/store.ts";

export const LARGE_OUTPUT_BYTES = 20_480;
const PREVIEW_CHARACTERS = 500;

/** Stores output that is too large for a model and returns its replacement. Smaller output is returned unchanged. */
export async function boundOutput(output: {
  content: string;
  toolName: string;
  maxBytes: number;
  log: Pick<SessionLog, "writeFile" | "clientFiles">;
  /** Names of the model's tools. The text recommends those that read files. */
  readers: readonly string[];
  /** Called with each path under which the agent may look for the file. */
  onFile?(path: string): void;
}): Promise<string> {
  const { content, toolName, maxBytes, log } = output;
  if (content.length * 3 <= maxBytes) return content;
  const bytes = Buffer.byteLength(content);
  if (bytes <= maxBytes) return content;
  const path = await log.writeFile(fileName(toolName), content);
  const copy = log.clientFiles?.copyOf(path);
  for (const known of [path, ...(copy === undefined ? [] : [copy])]) output.onFile?.(known);
  return [
    `Output too large to read at once (${(bytes / 1024).toFixed(1)} KB). Saved to: ${path}`,
    ...adviceOf(output.readers, copy, content),
    "",
    `Preview (first ${PREVIEW_CHARACTERS} chars):`,
    firstCharacters(content, PREVIEW_CHARACTERS),
  ].join("\n");
}

/** Recommends only tools that the model has. */
function adviceOf(readers: readonly string[], copy: string | undefined, content: string): string[] {
  const ways = [
    ...(readers.includes("view")
      ? [`read parts of it with view and a view_range (${plural(countLines(content), "line")})`]
      : []),
    ...(readers.includes("grep") ? ["search it with grep"] : []),
  ];
  const advice = ways.join(", or ");
  const hint = copy === undefined ? "" : `: here it is ${copy}`;
  return advice === "" ? [] : [`${advice.charAt(0).toUpperCase()}${advice.slice(1)}${hint}.`];
}

function countLines(content: string): number {
  let lines = content.endsWith("\n") ? 0 : 1;
  for (let at = content.indexOf("\n"); at >= 0; at = content.indexOf("\n", at + 1)) lines += 1;
  return lines;
}

const MAX_NAME_CHARACTERS = 40;

/**
 * Returns the file name; the store puts a number before it. Clients recognise these files by the form of their names.
 */
function fileName(toolName: string): string {
  const letters = toolName.toLowerCase().replace(/[^a-z0-9]/g, "");
  return `copilot-tool-output-${letters.slice(0, MAX_NAME_CHARACTERS) || "tool"}.txt`;
}
