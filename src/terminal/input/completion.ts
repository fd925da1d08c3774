/** Completion of `/command` and `@file` before the caret. */
import { fuzzyFilter } from "@earendil-works/pi-tui/dist/fuzzy.js";

export interface CommandEntry {
  readonly name: string;
  readonly description: string;
  readonly hint?: string;
}

export interface Suggestion {
  /** Replaces the last `replaces` characters before the caret. */
  readonly text: string;
  readonly replaces: number;
  readonly label: string;
  readonly detail: string;
}

export interface CompletionSources {
  commands(): readonly CommandEntry[];
  /** Paths relative to the working folder; undefined while they are read. */
  files(): readonly string[] | undefined;
}

/** More than fit on the screen: the list scrolls. */
const MAX_SHOWN = 60;

/** Returns what the text before the caret can become, best first. */
export function suggestions(
  { text, isFirstLine }: { readonly text: string; readonly isFirstLine: boolean },
  sources: CompletionSources,
): readonly Suggestion[] {
  const command = isFirstLine ? /^\/(mcp:\S*|[\w:.-]*)$/.exec(text) : null;
  if (command) return commandSuggestions(command[1] ?? "", sources.commands());
  const file = /(?:^|\s)@([^\s@]*)$/.exec(text);
  if (file) return fileSuggestions(file[1] ?? "", sources.files() ?? []);
  return [];
}

function commandSuggestions(typed: string, commands: readonly CommandEntry[]): Suggestion[] {
  const named = commands.filter(({ name }) => name.startsWith(typed));
  const others = commands.filter(
    (command) =>
      !named.includes(command) &&
      typed.length > 1 &&
      (command.name.includes(typed) || command.description.toLowerCase().includes(typed.toLowerCase())),
  );
  return [...named, ...others].slice(0, MAX_SHOWN).map(({ name, description, hint }) => ({
    text: `/${name} `,
    replaces: typed.length + 1,
    label: `/${name}${hint === undefined ? "" : ` ${hint}`}`,
    detail: description,
  }));
}

/** A line range after a colon stays behind the completed path. */
function fileSuggestions(typed: string, files: readonly string[]): Suggestion[] {
  const [, path = typed, range = ""] = /^(.*?)(:\d+(?:-\d*)?)?$/.exec(typed) ?? [];
  const starting = files.filter((file) => file.startsWith(path));
  const found = starting.length >= MAX_SHOWN ? starting : fuzzyFilter([...files], path, (file) => file);
  const unique = [...new Set([...starting, ...found])];
  return unique.slice(0, MAX_SHOWN).map((file) => ({
    text: `@${file}${range}${file.endsWith("/") ? "" : " "}`,
    replaces: typed.length + 1,
    label: file,
    detail: "",
  }));
}
