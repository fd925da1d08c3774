import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const read = (path: string): string => readFileSync(path, "utf8");

/** Every document, by its path from the root of the repository. */
export const documents: readonly string[] = [
  ...readdirSync(".").filter((name) => name.endsWith(".md")),
  ...["docs", "examples"].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".md"))
      .map((name) => join(folder, name)),
  ),
].sort();

/** The documents people follow at the keyboard. */
export const guides: readonly string[] = documents.filter(
  (path) => path === "README.md" || /^docs\/(tutorials|how-to|reference|explanation)\//.test(path),
);

/** The content of fenced blocks in one language. */
export function codeBlocks(markdown: string, language: string): string[] {
  return [...markdown.matchAll(/^```(\w*)(?: \w+)?\n([\s\S]*?)^```$/gm)].flatMap(([, found, content = ""]) =>
    found === language ? [content] : [],
  );
}

function withoutCodeBlocks(markdown: string): string {
  return markdown.replace(/^```[\s\S]*?^```$/gm, "");
}

/** What stands between backticks in running text. */
export function inlineCode(markdown: string): string[] {
  return [...withoutCodeBlocks(markdown).matchAll(/`([^`\n]+)`/g)].map(([, code = ""]) => code);
}

/** Targets of links, without those that lead out of the repository. */
export function relativeLinks(markdown: string): string[] {
  return [...withoutCodeBlocks(markdown).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = ""]) => target)
    .filter((target) => !/^[a-z]+:/.test(target));
}

/** The names under which a heading can be linked to. */
export function anchors(markdown: string): string[] {
  return [...withoutCodeBlocks(markdown).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^\p{Letter}\p{Number}\s_-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

/** The rows of the first table below a heading, cell by cell. */
export function tableBelow(markdown: string, heading: string): string[][] {
  const [, below = ""] = markdown.split(new RegExp(`^#+ ${heading}$`, "m"));
  const lines = below.split("\n");
  const first = lines.findIndex((line) => line.startsWith("|"));
  const end = lines.findIndex((line, index) => index > first && !line.startsWith("|"));
  return lines.slice(first + 2, end === -1 ? undefined : end).map(cells);
}

export function cells(row: string): string[] {
  return row
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim());
}

/** The source of the program and of its scripts. */
export const sources: readonly string[] = ["src", "scripts", "bin", "bench"].flatMap((folder) =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(ts|mjs|js)$/.test(name))
    .map((name) => read(join(folder, name))),
);
