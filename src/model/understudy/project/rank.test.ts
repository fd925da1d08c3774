import { expect, test } from "vitest";
import type { Term } from "../terms.ts";
import type { Hit } from "./evidence.ts";
import { keyOf, rankHits } from "./rank.ts";

const name: readonly Term[] = [{ text: "openBook", kind: "name" }];

function order(hits: readonly Hit[], terms: readonly Term[]): string[] {
  return rankHits(hits, terms, new Set(hits.map(keyOf))).map((hit) => `${keyOf(hit)}${hit.defines ? " defines" : ""}`);
}

test("definitions come before uses, uses before tests, tests before prose", () => {
  const hits: Hit[] = [
    { path: "README.md", line: 1, text: "Call openBook first." },
    { path: "src/a.test.ts", line: 2, text: 'openBook("x");' },
    { path: "src/a.ts", line: 3, text: '  return openBook("x");' },
    { path: "src/a.ts", line: 1, text: 'import { openBook } from "./book.ts";' },
    { path: "src/book.ts", line: 9, text: "export function openBook(folder: string): Book {" },
  ];
  expect(order(hits, name)).toEqual([
    "src/book.ts:9 defines",
    "src/a.ts:3",
    "src/a.ts:1",
    "src/a.test.ts:2",
    "README.md:1",
  ]);
});

test("prose with a keyword in it is not a definition", () => {
  const words: readonly Term[] = [{ text: "route", kind: "word" }];
  const hits: Hit[] = [
    { path: "app.py", line: 1, text: "        a prefix, the static route will take precedence" },
    { path: "app.py", line: 2, text: "    def route(self, rule):" },
    { path: "app.py", line: 3, text: "    # def route is above" },
  ];
  expect(order(hits, words)).toEqual(["app.py:2 defines", "app.py:1", "app.py:3"]);
});

test("definitions are recognised in many languages", () => {
  const cases: readonly (readonly [string, string])[] = [
    ["a.go", "func (b *Book) openBook(path string) error {"],
    ["a.rs", "    pub async fn openBook(path: &str) -> Book {"],
    ["A.java", "  public static Book openBook(String path) {"],
    ["a.rb", "  def openBook(path)"],
    ["a.c", "int openBook(const char *path)"],
    ["a.kt", "fun openBook(path: String): Book {"],
    ["a.ex", "  def openBook(path) do"],
    ["a.sh", "openBook() {"],
    ["a.ts", "  openBook(path: string): Book {"],
  ];
  for (const [path, text] of cases) expect(order([{ path, line: 1, text }], name)).toEqual([`${path}:1 defines`]);
});
