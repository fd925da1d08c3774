/** Edits a settings file minimally: comments, order and unknown names stay. */
import { realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { isObject, type Json } from "../../lib/json.ts";
import { type Disk, nodeDisk, replaceFile } from "../../lib/node/disk.ts";
import { withFileLock } from "../../lib/node/file-lock.ts";
import { isInside } from "../../lib/node/paths.ts";
import { readSmallFile } from "../../lib/node/small-file.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { MAX_SETTINGS_BYTES } from "./settings.ts";
import { type JsonNode, skipSpace } from "./settings-jsonc.ts";
import { parseSettings, parseSettingsText } from "./settings-parse.ts";

export type SettingsObject = { readonly [name: string]: Json };

interface ChangeOptions {
  readonly disk?: Disk;
  /** A real path. A file that a link leads outside of it is not changed. */
  readonly below?: string;
}

/**
 * Changes the file under a lock, so that parallel changes are not lost. Throws and leaves the file unchanged if it is
 * invalid or would become so; the error names the line.
 */
export async function changeSettings(
  path: string,
  change: (current: SettingsObject) => SettingsObject,
  { disk = nodeDisk, below }: ChangeOptions = {},
): Promise<void> {
  const target = linkTarget(path);
  if (below !== undefined && !isInside(target, [below])) {
    const hint = "Replace the link with a file, or change your own settings with --user.";
    throw new TroupeError("configuration", `${path} leads outside ${below} and was not changed.`, { hint });
  }
  await withFileLock({ path: target, disk, Failure: TroupeError }, async () => {
    const file = readSmallFile(target, { maxBytes: MAX_SETTINGS_BYTES });
    if (file.kind === "refused") throw new TroupeError("configuration", `${path} ${file.reason}.`);
    const before = file.kind === "text" ? file.text : "{\n}\n";
    parseSettings(path, before);
    const current = parseSettingsText(path, before).value as SettingsObject;
    const next: SettingsObject = JSON.parse(JSON.stringify(change(current)));
    if (isDeepStrictEqual(next, current)) return;
    const after = editSettings(path, before, next);
    parseSettings(path, after);
    if (Buffer.byteLength(after) > MAX_SETTINGS_BYTES) {
      throw new TroupeError("configuration", `${path} would become larger than ${MAX_SETTINGS_BYTES / 1024} KiB.`);
    }
    await replaceFile(disk, target, after);
  });
}

/** Returns the text edited to hold `next`. Rewrites it if small edits are not enough. */
export function editSettings(path: string, text: string, next: SettingsObject): string {
  let edited = text;
  for (let round = 0; round < MAX_EDITS; round++) {
    const root = parseSettingsText(path, edited);
    const edit = firstEdit(edited, root, next);
    if (edit === undefined && isDeepStrictEqual(root.value, next)) return edited;
    if (edit === undefined) break;
    edited = edited.slice(0, edit.start) + edit.text + edited.slice(edit.end);
  }
  return `${JSON.stringify(next, null, 2)}\n`;
}

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

const MAX_EDITS = 200;

/** Returns one edit at a time, because every edit moves the text after it. */
function firstEdit(text: string, node: JsonNode, next: SettingsObject): Edit | undefined {
  for (const [name, member] of node.members) {
    const wanted = Object.hasOwn(next, name) ? next[name] : undefined;
    if (wanted === undefined) return removal(text, node, name);
    if (isDeepStrictEqual(member.value, wanted)) continue;
    if (isObject(member.value) && isObject(wanted)) return firstEdit(text, member, wanted as SettingsObject);
    return appending(text, member, wanted) ?? { ...member, text: formatValue(wanted, indentAt(text, member.from)) };
  }
  for (const [name, wanted] of Object.entries(next)) {
    if (!node.members.has(name)) return addition(text, node, name, wanted);
  }
  return undefined;
}

/** Returns an edit that appends elements to a list, so that comments between the others stay. */
function appending(text: string, node: JsonNode, wanted: Json): Edit | undefined {
  if (!Array.isArray(node.value) || !Array.isArray(wanted)) return undefined;
  const last = node.elements.at(-1);
  const isLonger = isDeepStrictEqual(wanted.slice(0, node.elements.length), node.value);
  if (last === undefined || !isLonger) return undefined;
  const indent = indentAt(text, last.start);
  const hasOwnLine = text.slice(node.start, last.start).includes("\n");
  const separator = hasOwnLine ? `,\n${indent}` : ", ";
  const added = wanted.slice(node.elements.length).map((element) => formatValue(element, indent));
  return { start: last.end, end: last.end, text: separator + added.join(separator) };
}

function addition(text: string, node: JsonNode, name: string, value: Json): Edit {
  const last = [...node.members.values()].at(-1);
  const outer = indentAt(text, node.from);
  const indent = last === undefined ? `${outer}  ` : indentAt(text, last.from);
  const member = `\n${indent}${JSON.stringify(name)}: ${formatValue(value, indent)}`;
  if (last !== undefined) return { start: last.end, end: last.end, text: `,${member}` };
  const start = text.slice(0, node.end - 1).trimEnd().length;
  return { start, end: node.end - 1, text: `${member}\n${outer}` };
}

/** Removes a member with its comma: the one after it, or the one before if it is the last. */
function removal(text: string, node: JsonNode, name: string): Edit {
  const members = [...node.members.values()];
  const index = [...node.members.keys()].indexOf(name);
  const member = members[index] ?? node;
  const behind = skipSpace(text, member.end);
  const comma = text[behind] === "," ? behind + 1 : member.end;
  if (index < members.length - 1) {
    const rest = /[ \t]*(?:\/\/[^\n]*)?\n?[ \t]*/y;
    rest.lastIndex = comma;
    rest.test(text);
    return { start: member.from, end: rest.lastIndex, text: "" };
  }
  return { start: members[index - 1]?.end ?? member.from, end: comma, text: "" };
}

function formatValue(value: Json, indent: string): string {
  return JSON.stringify(value, null, 2).replaceAll("\n", `\n${indent}`);
}

/** Returns the white space at the start of the line. */
function indentAt(text: string, position: number): string {
  const start = text.lastIndexOf("\n", position - 1) + 1;
  return /^[ \t]*/.exec(text.slice(start, position))?.[0] ?? "";
}

/** Resolves links, also of the folders of a missing file, so that the link stays and its target is changed. */
function linkTarget(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    const folder = dirname(path);
    return folder === path ? path : join(linkTarget(folder), basename(path));
  }
}
