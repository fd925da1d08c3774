/** Every frame around text of others is made by `wrapInTag`, with a tag that `quoted` encodes in such text. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { frameTags, summaryTags } from "../src/lib/quoting.ts";

const root = fileURLToPath(new URL("../", import.meta.url));
const known = new Set<string>([...frameTags, ...summaryTags]);
/** They read pages, prompts and replies of others, or write pages for people; they frame nothing. */
const READERS =
  /^src\/(?:web\/(?:export-html|open-browser|access|web)\.ts$|acp\/key-page\.ts$|(?:model\/understudy|model\/wire|tools\/web(?!\/web-(?:fetch|search)\.))\/)|\.test\.ts$/;
/** Frames of ours that hold no text of others, or that escape it by themselves. */
const BY_HAND = [
  "src/session/compaction/context-report.ts",
  "src/session/turn/prompt-form.ts",
  "src/tools/shell/finished-notice.ts",
];
const MAKERS = ["src/lib/quoting.ts", "src/lib/summary-sections.ts"];

const sources = readdirSync(`${root}src`, { recursive: true, encoding: "utf8" })
  .map((path) => `src/${path.replaceAll("\\", "/")}`)
  .filter((path) => /\.(?:ts|md)$/.test(path) && !READERS.test(path))
  .map((path) => ({ path, text: readFileSync(`${root}${path}`, "utf8") }));

test("the quoting knows every tag that troupe's texts close", () => {
  const unknown = sources.flatMap(({ path, text }) =>
    Array.from(text.matchAll(/<\/([a-z][a-z0-9_-]*)>/g), ([, tag = ""]) => tag)
      .filter((tag) => !known.has(tag))
      .map((tag) => `${path}: ${tag}`),
  );
  expect(unknown).toEqual([]);
});

test("only listed files frame text with tags", () => {
  const closing = sources.filter(
    ({ path, text }) => path.endsWith(".ts") && /<\/(?:[a-z][a-z0-9_-]*>|\$\{)/.test(text),
  );
  expect(closing.map(({ path }) => path).sort()).toEqual([...BY_HAND, ...MAKERS].sort());
});
