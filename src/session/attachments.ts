/**
 * Attachments of user messages. They are stored beside the log; those that are not images or documents are described to
 * the model as text.
 */
import { readdir, stat } from "node:fs/promises";
import { basename } from "node:path";
import { readRegular } from "../lib/node/shared-folder.ts";
import { quoted, wrapInTag } from "../lib/quoting.ts";
import { clip } from "../lib/text.ts";
import type { GivenAttachment } from "../protocol/define-event.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { Attachment } from "../protocol/event.ts";
import type { SessionLog } from "../store/store.ts";
import selectionNote from "./attached-selection.md";

const MAX_BLOB_BYTES = 32 * 1024 * 1024;
const MAX_COUNTED_BYTES = 16 * 1024 * 1024;
const MAX_TEXT_CHARACTERS = 64 * 1024;

/**
 * Returns the attachments as the log stores them: each has a name, and data is stored in a separate file. Throws a
 * `TroupeError` for unusable data.
 */
export async function storeAttachments(
  given: readonly GivenAttachment[],
  log: Pick<SessionLog, "writeAsset">,
): Promise<Attachment[]> {
  const stored: Attachment[] = [];
  for (const attachment of given) {
    if (attachment.type === "blob" && attachment.data !== undefined) {
      const { data, ...rest } = attachment;
      const bytes = Buffer.from(data, "base64");
      if (bytes.length > MAX_BLOB_BYTES) {
        const name = attachment.displayName ?? attachment.mimeType;
        throw new TroupeError("usage", `The attachment ${name} is larger than ${MAX_BLOB_BYTES / 1024 / 1024} MiB.`, {
          hint: "Save it to a file and attach the file.",
        });
      }
      if (bytes.length === 0 && isShown(attachment.mimeType)) {
        throw new TroupeError("usage", `The attachment ${attachment.mimeType} is empty, or its data is not base64.`);
      }
      const { assetId } = await log.writeAsset(bytes, attachment.mimeType.split("/")[1] ?? "bin");
      stored.push({ ...rest, assetId, byteLength: bytes.length });
    } else stored.push(withName(attachment));
  }
  return stored;
}

function withName(attachment: GivenAttachment): Attachment {
  switch (attachment.type) {
    case "file":
    case "directory":
      return { ...attachment, displayName: attachment.displayName ?? basename(attachment.path) };
    case "selection":
      return { ...attachment, displayName: attachment.displayName ?? basename(attachment.filePath) };
    default:
      return attachment;
  }
}

export const PDF = "application/pdf";
/** Types that models accept. A provider would reject any other type, and with it every later request of the session. */
const SHOWN: ReadonlySet<string> = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", PDF]);
/** Whether an attachment is passed to the model unchanged (images and documents). */
export const isShown = (mimeType: string): boolean => SHOWN.has(mimeType.toLowerCase());

/** Returns the prompt as the model reads it, with descriptions of the attachments around it. */
export async function withAttachments(
  prompt: string,
  attachments: readonly Attachment[],
  log: Pick<SessionLog, "readAsset">,
): Promise<string> {
  const before: string[] = [];
  const files: string[] = [];
  const references: string[] = [];
  const after: string[] = [];
  for (const attachment of attachments) {
    if (attachment.type === "selection") before.push(selection(attachment));
    else if (attachment.type === "file") files.push(`* ${named(attachment.path)} (${await fileFacts(attachment)})`);
    else if (attachment.type === "directory")
      files.push(`* ${named(attachment.path)} (${await folderFacts(attachment.path)})`);
    else if (attachment.type === "github_reference") references.push(reference(attachment));
    else if (!isShown(attachment.mimeType)) after.push(await blobText(attachment, log));
  }
  if (files.length > 0) after.push(wrapInTag("tagged_files", {}, files.join("\n")));
  if (references.length > 0) after.push(wrapInTag("github_references", {}, references.join("\n")));
  return [...before, prompt, ...after].join(APART);
}

/** Separates attachments from the prompt, so that they are not read as part of it. */
const APART = "\n\n\n\n";

/** Makes untrusted names and URLs safe: one line, without tags of ours. */
const named = (text: string): string => quoted(text).replace(/[\n\t]+/g, " ");

type Of<T extends Attachment["type"]> = Extract<Attachment, { type: T }>;

function selection({ displayName, text, selection: { start, end } }: Of<"selection">): string {
  const [first, last] = [start.line + 1, end.line + 1];
  const lines = first === last ? `line ${first}` : `lines ${first}-${last}`;
  const note = `${selectionNote.trim()}\nFile: ${named(displayName)} (${lines})`;
  return wrapInTag("ide_selection", {}, `${note}\n${fenceText(text)}`);
}

function reference({ number, title, referenceType, state, url }: Of<"github_reference">): string {
  return `#${number} - ${named(title)} [${named(referenceType)}] [${named(state)}] (${named(url)})`;
}

async function fileFacts({ path, lineRange }: Of<"file">): Promise<string> {
  const lines = await countLines(path);
  if (typeof lines === "string") return lines;
  if (!lineRange) return `${lines} lines`;
  const { start, end } = lineRange;
  return `${start === end ? `line ${start}` : `lines ${start}-${end}`} of ${lines} lines`;
}

/** Returns the number of lines, or the reason why they cannot be counted. */
async function countLines(path: string): Promise<number | string> {
  try {
    const { size } = await stat(path);
    if (size > MAX_COUNTED_BYTES) return `${size} bytes`;
    const bytes = await readRegular(path, MAX_COUNTED_BYTES);
    let lines = 1;
    for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) lines++;
    return lines;
  } catch {
    return "cannot be read";
  }
}

async function folderFacts(path: string): Promise<string> {
  try {
    if (!(await stat(path)).isDirectory()) return "is not a folder";
    return `${(await readdir(path)).length} items`;
  } catch {
    return "cannot be read";
  }
}

/** Fences a text. The fence is longer than any inside it. */
function fenceText(text: string): string {
  const longest = Math.max(2, ...Array.from(text.matchAll(/`+/g), ([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${quoted(text)}\n${fence}`;
}

/** Quotes text; for other data, returns only a note that it is attached. */
async function blobText(attachment: Of<"blob">, log: Pick<SessionLog, "readAsset">): Promise<string> {
  const { mimeType, displayName = "attachment", assetId, byteLength } = attachment;
  const isText = /^text\/|[/+](?:json|xml|yaml)$/.test(mimeType);
  const bytes = isText && assetId !== undefined ? await log.readAsset(assetId) : undefined;
  const head = `Attached: ${named(displayName)} (${named(mimeType)}${byteLength === undefined ? "" : `, ${byteLength} bytes`})`;
  if (!bytes) return `${head}: not shown`;
  return `${head}\n${fenceText(clip(Buffer.from(bytes).toString("utf8"), MAX_TEXT_CHARACTERS))}`;
}
