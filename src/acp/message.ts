import { fileURLToPath } from "node:url";
import { defined } from "../lib/defined.ts";
import { quoted, quotedLine, wrapInTag } from "../lib/quoting.ts";
import { clip } from "../lib/text.ts";
import type { Attachment } from "../protocol/event.ts";
import { RpcError, rpcCodes } from "../protocol/rpc/errors.ts";
import type { PromptBlock } from "./params.ts";

/** An editor's prompt in the form that a session accepts. */
export interface EditorMessage {
  /** The user's text and the quotes in it, in order. */
  readonly prompt: string;
  /** The user's text without quotes, if it begins with a slash and may be a command. */
  readonly command: string | undefined;
  /** Only the quotes. */
  readonly quotes: string;
  readonly attachments: readonly Attachment[];
}

const MAX_URI_CHARACTERS = 4096;
const NO_AUDIO = "troupe cannot listen to audio. Send the words as text.";

/**
 * Converts an editor's blocks. Text is the prompt. Quotes and links are data, marked with their source. Throws for
 * audio.
 */
export function messageOf(blocks: readonly PromptBlock[]): EditorMessage {
  const parts: { readonly text: string; readonly isTyped: boolean }[] = [];
  const attachments: Attachment[] = [];
  for (const block of blocks) {
    const part = block.type === "text" ? block.text : dataOf(block);
    if (typeof part !== "string") attachments.push(part);
    else parts.push({ text: part, isTyped: block.type === "text" });
  }
  const typed = parts.filter(({ isTyped }) => isTyped).map(({ text }) => text);
  const quotes = parts.filter(({ isTyped }) => !isTyped).map(({ text }) => text);
  const isCommand = blocks[0]?.type === "text" && typed[0]?.trimStart().startsWith("/") === true;
  return {
    prompt: parts.map(({ text }) => text).join("\n\n"),
    command: isCommand ? typed.join("").trim() : undefined,
    quotes: quotes.join("\n\n"),
    attachments,
  };
}

function dataOf(block: Exclude<PromptBlock, { type: "text" }>): string | Attachment {
  switch (block.type) {
    case "audio":
      throw new RpcError(rpcCodes.invalidParams, NO_AUDIO);
    case "image":
      return { type: "blob", mimeType: block.mimeType, data: block.data };
    case "resource_link":
      return fileOf(block.uri, block.name) ?? linked(block);
    case "resource": {
      const { resource } = block;
      if ("text" in resource) return `Quoted from ${quotedLine(resource.uri)}:\n\n${quoted(resource.text)}`;
      const type = resource.mimeType ?? "application/octet-stream";
      return { type: "blob", mimeType: type, data: resource.blob, displayName: nameIn(resource.uri) };
    }
  }
}

/** A link that is not a file is data, whatever it contains. */
const linked = ({ uri, name }: { uri: string; name: string }): string =>
  wrapInTag("linked_resource", { name }, clip(quoted(uri).replace(/\s+/g, " "), MAX_URI_CHARACTERS));

const nameIn = (uri: string): string => clip(uri.split(/[/\\]/).findLast((part) => part !== "") ?? uri, 200);

function fileOf(uri: string, displayName: string): Attachment | undefined {
  const path = pathOf(uri);
  if (path === undefined) return undefined;
  if (/[/\\]$/.test(path)) return { type: "directory", path, displayName };
  const lineRange = linesIn(uri);
  return { type: "file", path, displayName, ...defined({ lineRange }) };
}

function pathOf(uri: string): string | undefined {
  if (!uri.startsWith("file://")) return undefined;
  try {
    return fileURLToPath(uri);
  } catch {
    return undefined; // of another host, or no address at all
  }
}

/** Editors name lines in the fragment: `#L3`, `#L3-9`, `#L3:9`. */
function linesIn(uri: string): { start: number; end: number } | undefined {
  const [, first, last = first] = /#L(\d{1,9})(?:[-:]L?(\d{1,9}))?$/.exec(uri) ?? [];
  if (first === undefined) return undefined;
  return { start: Number(first), end: Math.max(Number(first), Number(last)) };
}
