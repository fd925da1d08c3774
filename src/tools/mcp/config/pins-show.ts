/** Formats tool definitions for approval: in full, with hidden characters made visible. */
import { clip, sanitise } from "../../../lib/text.ts";
import type { McpToolDefinition } from "../server.ts";

const MAX_CHARACTERS = 64 * 1024;

/** Returns everything that a model will read of the tool. */
export function shownDefinition(definition: Omit<McpToolDefinition, "server">): string {
  const { name, title, description, inputSchema, annotations } = definition;
  const parts = [
    `tool ${visible(name).replaceAll("\n", " ⏎ ")}`,
    ...(title === undefined ? [] : [`title: ${visible(title).replaceAll("\n", " ⏎ ")}`]),
    ...indented(visible(description)),
    `input: ${visible(JSON.stringify(inputSchema, undefined, 2))}`,
    ...(annotations === undefined ? [] : [`the server says: ${visible(JSON.stringify(annotations))}`]),
  ];
  return clip(parts.join("\n"), MAX_CHARACTERS, "\n[cut: the definition is too long to be reviewed]");
}

/** Returns a line diff: `-` was approved, `+` is the server's current definition. */
export async function shownChange(before: McpToolDefinition, after: McpToolDefinition): Promise<string> {
  const { diffLines } = await import("diff");
  const changes = diffLines(`${shownDefinition(before)}\n`, `${shownDefinition(after)}\n`, {
    timeout: 1000,
    maxEditLength: 2000,
  });
  if (changes === undefined) return `- ${shownDefinition(before)}\n+ ${shownDefinition(after)}`;
  return changes
    .flatMap(({ value, added, removed }) => {
      const mark = added ? "+" : removed ? "-" : " ";
      return value
        .replace(/\n$/, "")
        .split("\n")
        .map((text) => `${mark} ${text}`);
    })
    .join("\n");
}

/** Fillers, joiners and selectors: invisible, but a model reads them. */
const HIDDEN: readonly (readonly [first: number, last: number])[] = [
  [0xad, 0xad],
  [0x34f, 0x34f],
  [0x61c, 0x61c],
  [0x115f, 0x1160],
  [0x17b4, 0x17b5],
  [0x180b, 0x180f],
  [0x2028, 0x2029],
  [0x3164, 0x3164],
  [0xfe00, 0xfe0f],
  [0xffa0, 0xffa0],
  [0xfff0, 0xfffb],
  [0xe0080, 0xe0fff],
];

/** In addition to `sanitise`, shows characters that can carry invisible text. */
export function visible(text: string): string {
  return sanitise(text).replace(/[^\u0000-\u00ac]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    if (!HIDDEN.some(([first, last]) => code >= first && code <= last)) return character;
    return `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
  });
}

/** Indents, so that no line of a description can look like one of ours. */
const indented = (text: string): string[] => text.split("\n").map((one) => `  | ${one}`);
