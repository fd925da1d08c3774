import type { OpenedEntry } from "../../lib/node/paths.ts";
import type { Image } from "../../protocol/message.ts";
import { readAt } from "./text-file.ts";

export const MAX_IMAGE_BYTES = 5 * 1024 * 1024;

/**
 * Returns the file as an image for the model. Returns null when its first bytes are not those of an image; the file
 * name is ignored.
 */
export async function readImage(opened: OpenedEntry, head: Buffer): Promise<Image | "too-large" | null> {
  const mimeType = imageType(head);
  if (mimeType === null) return null;
  const data = await readAt(opened.handle, 0, Math.min(opened.stat.size, MAX_IMAGE_BYTES) + 1);
  if (data.length > MAX_IMAGE_BYTES) return "too-large";
  return { mimeType, data: data.toString("base64"), description: `Image file at path ${opened.path}` };
}

function imageType(head: Buffer): string | null {
  const text = head.toString("latin1", 0, 16);
  if (text.startsWith("\u0089PNG\r\n\u001a\n")) return "image/png";
  if (text.startsWith("\u00ff\u00d8\u00ff")) return "image/jpeg";
  if (/^GIF8[79]a/.test(text)) return "image/gif";
  if (/^RIFF.{4}WEBP/s.test(text)) return "image/webp";
  return null;
}
