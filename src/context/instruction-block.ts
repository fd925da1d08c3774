/** Formats instruction texts as blocks of a prompt, within a budget. */

import { type FrameTag, wrapInTag } from "../lib/quoting.ts";
import type { InstructionText } from "./instruction-reader.ts";

/** A shorter excerpt of a file is omitted as useless. */
const MIN_BYTES = 256;

export interface InstructionBlock {
  /** `undefined` if nothing of the text fits. */
  readonly text: string | undefined;
  readonly isCut: boolean;
}

/** Returns a block of at most `maxBytes`, wrapper included. A mark inside shows where it was cut. */
export function blockOf(
  instruction: InstructionText,
  { tag, opening = "", glob, maxBytes }: { tag: FrameTag; opening?: string; glob?: string; maxBytes: number },
): InstructionBlock {
  const { shownPath, scope, importedBy, body } = instruction;
  const attributes = { path: shownPath, scope, imported_by: importedBy, applies_to: glob };
  const wrap = (text: string): string => wrapInTag(tag, attributes, opening === "" ? text : `${opening}\n\n${text}`);
  const room = maxBytes - byteLength(wrap(""));
  const bodyBytes = byteLength(body);
  if (bodyBytes <= room) return { text: wrap(body), isCut: false };
  const mark = `\n[Cut here by troupe: there is no room for the other ${bodyBytes} bytes of the file.]`;
  const kept = room - byteLength(mark);
  if (kept < MIN_BYTES) return { text: undefined, isCut: true };
  const missing = mark.replace(String(bodyBytes), String(bodyBytes - kept));
  return { text: wrap(firstBytes(body, kept) + missing), isCut: true };
}

export function byteLength(text: string): number {
  return Buffer.byteLength(text);
}

/** Cuts at a character boundary. */
function firstBytes(text: string, count: number): string {
  return new TextDecoder().decode(Buffer.from(text).subarray(0, count), { stream: true });
}
