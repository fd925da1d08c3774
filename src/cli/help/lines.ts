/** Layout of help texts. */
import type { Option } from "../options.ts";
import type { Subcommand } from "../table/command.ts";

export const WIDTH = 80;
const NARROW_COLUMN = 6;

/** The width of help texts for a terminal with this many columns: at least 40, at most `WIDTH`. */
export const helpWidth = (columns = WIDTH): number => Math.max(40, Math.min(columns, WIDTH));

/**
 * Returns a term and its description in two columns, wrapped to `width`. A term gets its own line if it is too long, or if
 * the terminal is too narrow for two columns.
 */
export function entry(term: string, description: string, column: number, width = WIDTH): string {
  const from = column > width * 0.6 ? NARROW_COLUMN : column;
  const rows = wrap(description, width - from);
  const first = `  ${term}`;
  const indent = " ".repeat(from);
  if (first.length + 2 > from) return [first, ...rows.map((row) => indent + row)].join("\n");
  return rows.map((row, index) => (index === 0 ? first.padEnd(from) : indent) + row).join("\n");
}

export function wrap(text: string, width: number): string[] {
  const rows = [""];
  for (const word of text.split(" ")) {
    const row = rows.at(-1) ?? "";
    if (row !== "" && row.length + 1 + word.length > width) rows.push(word);
    else rows[rows.length - 1] = row === "" ? word : `${row} ${word}`;
  }
  return rows;
}

/** `-C, --cd <folder>` */
export const flagTerm = ({ name, short, value }: Option): string =>
  `${short ? `-${short}, ` : "    "}--${name}${value ? ` <${value}>` : ""}`;

/** `<id> [message …]` */
export function argumentsText({ arguments: given = [] }: Subcommand): string {
  return given
    .map(({ name, optional, repeated }) => {
      const text = `${name}${repeated ? " …" : ""}`;
      return optional ? `[${text}]` : `<${text}>`;
    })
    .join(" ");
}

/** `troupe tasks resume <id> [message] [flags]` */
export function usageLine(path: readonly string[], command: Subcommand): string {
  const hasFlags = Object.keys(command.flags ?? {}).length > 0 || command.takesSessionFlags;
  return ["troupe", ...path, argumentsText(command), hasFlags ? "[flags]" : ""].filter(Boolean).join(" ");
}
