/** The fenced code blocks of the documentation. */
import { documents, read } from "./documents.ts";

export interface Block {
  /** `docs/how-to/hooks.md:12` */
  readonly at: string;
  readonly path: string;
  readonly language: string;
  /** The second word behind the fence. It says what the block is: `json settings`. */
  readonly kind: string;
  readonly content: string;
}

/** Pages whose blocks are checked. */
const pages = documents.filter((path) => path !== "ARCHITECTURE.md" && path !== "SECURITY.md");

export const blocks: readonly Block[] = pages.flatMap(blocksOf);

export const blocksIn = (language: string, kind?: string): readonly Block[] =>
  blocks.filter((block) => block.language === language && (kind === undefined || block.kind === kind));

function blocksOf(path: string): Block[] {
  const text = read(path);
  return [...text.matchAll(/^( *)```([^\n]*)\n([\s\S]*?)^\1```$/gm)].map((match) => {
    const [, indent = "", info = "", content = ""] = match;
    const [language = "", kind = ""] = info.trim().split(/\s+/);
    const line = text.slice(0, match.index).split("\n").length;
    return {
      at: `${path}:${line}`,
      path,
      language,
      kind,
      content: content.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
    };
  });
}
