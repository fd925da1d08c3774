/** Formats command output. Foreign text is sanitised and shortened to one line. */
import { clip, sanitiseLine } from "../lib/text.ts";

const MAX_SHOWN = 200;
const MAX_LINES = 200;

export function clipLine(text: string, maxCharacters = MAX_SHOWN): string {
  return clip(sanitiseLine(text).replace(/\s+/g, " ").trim(), maxCharacters);
}

/** Joins at most `MAX_LINES` lines and says how many are missing. */
export function joinLines(lines: readonly string[]): string {
  const missing = lines.length - MAX_LINES;
  return [...lines.slice(0, MAX_LINES), ...(missing > 0 ? [`… and ${missing} more`] : [])].join("\n");
}

/** Formats a duration: "45 s", "3 min", "2 h 5 min", "1 d". */
export function duration(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return together([minutes, "min"], [seconds % 60, "s"]);
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return together([hours, "h"], [minutes % 60, "min"]);
  return together([Math.floor(hours / 24), "d"], [hours % 24, "h"]);
}

/** Replaces `{{name}}` in a template in one pass, so that an inserted text cannot add placeholders. */
export function filledIn(template: string, texts: Readonly<Record<string, string>>): string {
  return template.trim().replace(/\{\{(\w+)\}\}/g, (place, name: string) => texts[name] ?? place);
}

function together([large, largeUnit]: [number, string], [small, smallUnit]: [number, string]): string {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}
