/** The understudy's knowledge of programming languages. Tables only, so that a new language is one line. */

export interface Language {
  readonly name: string;
  /** Extensions without the dot, or whole file names in lower case. */
  readonly endings: readonly string[];
  readonly family: SyntaxFamily;
}

export type SyntaxFamily =
  | "script"
  | "python"
  | "go"
  | "rust"
  | "braces"
  | "c"
  | "ruby"
  | "elixir"
  | "shell"
  | "sql"
  | "make"
  | "prose"
  | "data";

/** Ties are listed in this order. */
export const languages: readonly Language[] = [
  { name: "TypeScript", endings: ["ts", "tsx", "mts", "cts"], family: "script" },
  { name: "JavaScript", endings: ["js", "jsx", "mjs", "cjs"], family: "script" },
  { name: "Vue", endings: ["vue"], family: "script" },
  { name: "Svelte", endings: ["svelte"], family: "script" },
  { name: "Python", endings: ["py", "pyi"], family: "python" },
  { name: "Go", endings: ["go"], family: "go" },
  { name: "Rust", endings: ["rs"], family: "rust" },
  { name: "Java", endings: ["java"], family: "braces" },
  { name: "Kotlin", endings: ["kt", "kts"], family: "braces" },
  { name: "Scala", endings: ["scala"], family: "braces" },
  { name: "C#", endings: ["cs"], family: "braces" },
  { name: "Swift", endings: ["swift"], family: "braces" },
  { name: "Dart", endings: ["dart"], family: "braces" },
  { name: "PHP", endings: ["php"], family: "braces" },
  { name: "C", endings: ["c", "h"], family: "c" },
  { name: "C++", endings: ["cc", "cpp", "cxx", "hpp", "hh", "hxx"], family: "c" },
  { name: "Ruby", endings: ["rb", "rake", "gemfile", "rakefile"], family: "ruby" },
  { name: "Elixir", endings: ["ex", "exs"], family: "elixir" },
  { name: "Shell", endings: ["sh", "bash", "zsh"], family: "shell" },
  { name: "SQL", endings: ["sql"], family: "sql" },
  { name: "Make", endings: ["mk", "makefile"], family: "make" },
  { name: "Markdown", endings: ["md", "mdx", "markdown"], family: "prose" },
  { name: "Text", endings: ["txt", "rst", "adoc"], family: "prose" },
  { name: "JSON", endings: ["json", "jsonc", "jsonl"], family: "data" },
  { name: "YAML", endings: ["yml", "yaml"], family: "data" },
  { name: "TOML", endings: ["toml"], family: "data" },
  { name: "HTML", endings: ["html", "htm"], family: "data" },
  { name: "CSS", endings: ["css", "scss", "less"], family: "data" },
  { name: "XML", endings: ["xml"], family: "data" },
];

const byEnding = new Map(languages.flatMap((language) => language.endings.map((ending) => [ending, language])));

export function languageOf(path: string): Language | undefined {
  const name = baseName(path).toLowerCase();
  return byEnding.get(name) ?? byEnding.get(name.slice(name.lastIndexOf(".") + 1));
}

export function isEnding(word: string): boolean {
  return byEnding.has(word.toLowerCase());
}

export function isCode(path: string): boolean {
  const family = languageOf(path)?.family;
  return family !== undefined && family !== "prose" && family !== "data";
}

/** True for tests and files that only tests use. */
export function isTest(path: string): boolean {
  return /(^|\/)(tests?|__tests__|spec|specs|testdata|fixtures?|__fixtures__|e2e)\/|[._-](test|spec)\.\w+$|_test\.\w+$|(^|\/)(test_|conftest)[^/]*\.py$|Tests?\.(java|kt|cs|swift)$/.test(
    path,
  );
}

export function isProse(path: string): boolean {
  return languageOf(path)?.family === "prose";
}

/** True for generated and third-party files: they are not counted and never read first. */
export function isForeign(path: string): boolean {
  return /(^|\/)(node_modules|\.git|\.hg|dist|vendor|third_party|__pycache__|\.venv|venv|\.tox|\.next|\.cache|coverage)\/|\.min\.(js|css)$|(^|\/)(package-lock\.json|pnpm-lock\.yaml|yarn\.lock|Cargo\.lock|poetry\.lock|uv\.lock|go\.sum|Gemfile\.lock|composer\.lock|bun\.lockb?|deno\.lock|npm-shrinkwrap\.json|Pipfile\.lock|pdm\.lock|mix\.lock|pubspec\.lock|Package\.resolved|flake\.lock)$/.test(
    path,
  );
}

const braceWords =
  "class|interface|enum|record|object|trait|struct|protocol|extension|fun|func|def|function|actor|mixin";
const modifiers =
  "public|private|protected|internal|static|final|abstract|override|virtual|async|sealed|open|suspend|data|synchronized|default|inline|export";

/** Each pattern has the groups `kind` (if the text states it) and `name`. Matched against one line. */
export const declarationPatterns: Readonly<Record<SyntaxFamily, readonly RegExp[]>> = {
  script: [
    /^(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(?<kind>function|class|interface|type|enum|namespace|const|let|var)\b\*?\s+(?<name>[\p{L}\p{M}\p{N}_$]+)/u,
    /^(?:module\.)?exports\.(?<name>[\p{L}\p{M}\p{N}_$]+)\s*=/u,
  ],
  python: [
    /^(?:\s{4})?(?:async\s+)?(?<kind>def|class)\s+(?<name>[\p{L}\p{M}\p{N}_]+)/u,
    /^(?<name>\p{Lu}[\p{Lu}\p{N}_]{2,})\s*(?::[^=]+)?=/u,
  ],
  go: [
    /^(?<kind>func)\s+(?:\([^)]*\)\s*)?(?<name>[\p{L}\p{M}\p{N}_]+)/u,
    /^(?<kind>type|var|const)\s+(?<name>[\p{L}\p{M}\p{N}_]+)/u,
  ],
  rust: [
    /^\s{0,4}(?:pub(?:\([^)]*\))?\s+)?(?:(?:async|unsafe|const|extern(?:\s+"[^"]*")?)\s+)*(?<kind>fn|struct|enum|trait|mod|type|static|const|union|macro_rules!)\s+(?<name>[\p{L}\p{M}\p{N}_]+)/u,
    /^(?<kind>impl)(?:<[^>]*>)?\s+(?<name>[\p{L}\p{M}\p{N}_:<>]+)/u,
  ],
  braces: [
    new RegExp(`^\\s*(?:(?:${modifiers})\\s+)*(?<kind>${braceWords})\\s+(?<name>[\\p{L}\\p{M}\\p{N}_]+)`, "u"),
    new RegExp(
      `^\\s+(?:(?:${modifiers})\\s+)+(?:<[^>]+>\\s+)?[\\p{L}\\p{M}\\p{N}_<>\\[\\],.?]+\\s+(?<name>[\\p{L}\\p{M}\\p{N}_]+)\\s*\\(`,
      "u",
    ),
  ],
  c: [
    /^(?:typedef\s+)?(?<kind>struct|class|enum|union|namespace)\s+(?<name>[\p{L}\p{M}\p{N}_]+)(?![\p{L}\p{M}\p{N}_])[^;]*$/u,
    /^#(?<kind>define)\s+(?<name>[\p{L}\p{M}\p{N}_]+)/u,
    /^(?!return\b|else\b|typedef\b)[\p{L}_][\p{L}\p{M}\p{N}_\s*&:<>,]*[\s*&](?<name>[\p{L}\p{M}\p{N}_:~]+)\s*\([^;]*$/u,
  ],
  ruby: [/^\s{0,4}(?<kind>class|module|def)\s+(?<name>[\p{L}\p{M}\p{N}_.:?!]+)/u],
  elixir: [/^\s{0,2}(?<kind>defmodule|defmacro|defp?)\s+(?<name>[\p{L}\p{M}\p{N}_.?!]+)/u],
  shell: [/^(?:(?<kind>function)\s+)?(?<name>[\p{L}\p{M}\p{N}_-]+)\s*\(\)\s*\{?/u],
  sql: [
    /^\s*create\s+(?:or\s+replace\s+)?(?<kind>table|view|function|procedure|index)\s+(?:if\s+not\s+exists\s+)?(?<name>[\p{L}\p{M}\p{N}_."]+)/iu,
  ],
  make: [/^(?<name>[A-Za-z][\p{L}\p{M}\p{N}_.-]*)\s*:(?!=)/u],
  prose: [/^(?<kind>#{1,3})\s+(?<name>.+?)\s*#*$/u],
  data: [],
};

/** Group 1 is the dependency. */
export const importPatterns: Readonly<Record<SyntaxFamily, readonly RegExp[]>> = {
  script: [/\bfrom\s+["']([^"']+)["']/u, /^\s*import\s+["']([^"']+)["']/u, /\brequire\(\s*["']([^"']+)["']\s*\)/u],
  python: [/^\s*from\s+([\p{L}\p{M}\p{N}_.]+)\s+import\b/u, /^\s*import\s+([\p{L}\p{M}\p{N}_.]+)/u],
  go: [/^(?:import\s+|\t|\s{4})(?:[\p{L}\p{M}\p{N}_.]+\s+)?"([^"]+)"$/u],
  rust: [/^\s*(?:pub\s+)?use\s+([\p{L}\p{M}\p{N}_:]+)/u],
  braces: [/^\s*(?:import|using|use)\s+(?:static\s+)?([\p{L}\p{M}\p{N}_.\\*]+)/u],
  c: [/^\s*#\s*include\s+[<"]([^>"]+)[>"]/u],
  ruby: [/^\s*require(?:_relative)?\s+["']([^"']+)["']/u],
  elixir: [/^\s*(?:alias|import|use|require)\s+([\p{L}\p{M}\p{N}_.]+)/u],
  shell: [/^\s*(?:source|\.)\s+(\S+)/u],
  sql: [],
  make: [/^-?include\s+(\S+)/u],
  prose: [],
  data: [],
};

/**
 * Returns a search pattern for definitions of one of `names` (regular expressions for a whole name) in any language.
 */
export function definitionSearch(names: readonly string[]): string {
  const name = `(?:${names.join("|")})`;
  const words =
    "function\\*?|class|interface|type|enum|const|let|var|namespace|module|def|defp|defmodule|defmacro|fn|func(?:\\s*\\([^)]*\\))?|fun|struct|trait|impl|mod|static|union|record|object|protocol|macro_rules!|#define|(?i:create\\s+table)";
  return [
    `(?:^|[\\s(])(?:${words})\\s+${name}\\b`,
    `^\\s*(?:(?:${modifiers}|readonly|get|set)\\s+)+(?:[\\w<>\\[\\],.?]+\\s+)?${name}\\s*\\(`,
    `^\\s{0,2}${name}\\s*(?::[^=;]{1,60})?=[^=]`,
    `^\\s+${name}\\s*\\([^;]*\\)[^;]*\\{\\s*$`,
  ].join("|");
}

export function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

export function folderOf(path: string): string {
  const slash = path.lastIndexOf("/");
  return slash < 0 ? "" : path.slice(0, slash);
}

/** Returns the file name without folder and extension. */
export function stemOf(path: string): string {
  const name = baseName(path);
  const dot = name.lastIndexOf(".");
  return dot > 0 ? name.slice(0, dot) : name;
}

export function escapePattern(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, (character) => (character === "/" ? "/" : `\\${character}`));
}
