/** Small repositories in several languages, written into temporary folders. */
import { mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

export interface Stage extends AsyncDisposable {
  readonly cwd: string;
  readonly scratch: string;
}

export async function stage(files: Readonly<Record<string, string>>): Promise<Stage> {
  const root = await realpath(await mkdtemp(join(tmpdir(), "understudy-")));
  const cwd = join(root, "project");
  await mkdir(cwd);
  const folders = new Set(Object.keys(files).map((path) => dirname(join(cwd, path))));
  await Promise.all([...folders].map((folder) => mkdir(folder, { recursive: true })));
  await Promise.all(Object.entries(files).map(([path, text]) => writeFile(join(cwd, path), text)));
  const remove = () => rm(root, { recursive: true, force: true });
  return { cwd, scratch: join(root, "scratch"), [Symbol.asyncDispose]: remove };
}

export const typescript = {
  "README.md":
    "# Ledger\n\n[![badge](x.svg)](y)\n\nLedger keeps accounts in plain files. It is small.\n\n## Use\n\nRun it.\n",
  "package.json": `${JSON.stringify(
    {
      name: "ledger",
      description: "Accounts in plain files",
      bin: { ledger: "dist/cli.js" },
      scripts: { build: "tsc", test: "vitest run", "docs:make": "typedoc" },
    },
    null,
    2,
  )}\n`,
  "src/cli.ts":
    '#!/usr/bin/env node\n/** The command line: parses arguments and prints. */\nimport { openBook } from "./book/book.ts";\n\nopenBook(process.argv[2] ?? ".");\n',
  "src/book/book.ts": [
    "/**",
    " * A book is a folder of entries. Nothing else writes there.",
    " */",
    'import { readFileSync } from "node:fs";',
    'import { parseEntry } from "./parse-entry.ts";',
    "",
    "const MAX_ENTRIES = 1000;",
    "",
    "/** Opens the book in a folder. */",
    "export function openBook(folder: string): string[] {",
    '  const text = readFileSync(folder, "utf8");',
    "  return text",
    '    .split("\\n")',
    "    .slice(0, MAX_ENTRIES)",
    "    .map((line) => parseEntry(line));",
    "}",
    "",
    "export class ClosedBookError extends Error {}",
    "",
  ].join("\n"),
  "src/book/parse-entry.ts": "export function parseEntry(line: string): string {\n  return line.trim();\n}\n",
  "src/book/parse-entry.test.ts":
    'import { parseEntry } from "./parse-entry.ts";\n\nif (parseEntry(" a ") !== "a") throw new Error("parseEntry");\n',
  "node_modules/left/index.js": "export function openBook() {}\n",
  ".gitignore": "node_modules\ndist\n",
  "CHANGELOG.md": "# Changelog\n\n## 1.1.0\n\n- Faster opening\n- Fewer words\n\n## 1.0.0\n\n- First\n",
} as const;

export const python = {
  "README.rst": "Weather\n=======\n\nFetches forecasts and draws them.\n",
  "pyproject.toml":
    '[project]\nname = "weather"\ndescription = "Forecasts in the terminal"\n\n[project.scripts]\nweather = "weather.cli:main"\n\n[tool.pytest.ini_options]\naddopts = "-q"\n',
  "weather/__init__.py": '"""Forecasts: fetching, keeping, drawing."""\n',
  "weather/cli.py":
    '"""Command line of weather.\n\nOne command per function.\n"""\nimport sys\n\nfrom weather.fetch import fetch_forecast\n\n\ndef main() -> int:\n    print(fetch_forecast(sys.argv[1]))\n    return 0\n',
  "weather/fetch.py":
    '# Copyright 2024 Somebody\n"""Talks to the service."""\n\nTIMEOUT_SECONDS = 5\n\n\nclass FetchError(Exception):\n    """Raised when the service is away."""\n\n\ndef fetch_forecast(place: str) -> str:\n    if not place:\n        raise FetchError("no place")\n    return place\n',
  "tests/test_fetch.py":
    "from weather.fetch import fetch_forecast\n\n\ndef test_fetch():\n    assert fetch_forecast('x') == 'x'\n",
} as const;

export const go = {
  "go.mod": "module example.org/relay\n\ngo 1.22\n",
  Makefile: "build:\n\tgo build ./...\n\ntest: build\n\tgo test ./...\n",
  "cmd/relay/main.go":
    '// Command relay forwards messages.\npackage main\n\nimport "example.org/relay/internal/queue"\n\nfunc main() {\n\tqueue.New(8).Push("x")\n}\n',
  "internal/queue/queue.go":
    "// Package queue holds messages until they can be sent.\npackage queue\n\n// Queue is bounded.\ntype Queue struct {\n\titems []string\n\tlimit int\n}\n\nfunc New(limit int) *Queue {\n\treturn &Queue{limit: limit}\n}\n\nfunc (q *Queue) Push(item string) bool {\n\tif len(q.items) >= q.limit {\n\t\treturn false\n\t}\n\tq.items = append(q.items, item)\n\treturn true\n}\n",
} as const;

export const docsOnly = {
  "index.md": "# Handbook\n\nHow we work, and why.\n",
  "people/hiring.md": "# Hiring\n\nWe hire slowly.\n\n## Steps\n\nTalk first.\n",
  "people/leave.md": "# Leave\n\nTake it.\n",
} as const;

/** Fifty files in each package: 3,000 in 60. */
export function monorepo(packages: number): Record<string, string> {
  const files: Record<string, string> = {
    "package.json":
      '{\n  "name": "everything",\n  "private": true,\n  "workspaces": ["packages/*"],\n  "scripts": { "test": "run-all" }\n}\n',
    "README.md": "# Everything\n\nAll of our packages in one place.\n",
  };
  for (let number = 1; number <= packages; number++) {
    const name = `packages/package-${String(number).padStart(2, "0")}`;
    files[`${name}/package.json`] = `{\n  "name": "package-${number}",\n  "description": "Part number ${number}"\n}\n`;
    files[`${name}/src/index.ts`] = `/** Entry of part ${number}. */\nexport const part${number} = ${number};\n`;
    for (let file = 1; file <= 48; file++) {
      files[`${name}/src/feature-with-a-long-name-${file}.ts`] =
        `export function feature${number}x${file}(): number {\n  return ${file};\n}\n`;
    }
  }
  return files;
}

/** Three parts of some size in `src`, one of tests and a folder that is too small to be one. */
export function manyParts(): Record<string, string> {
  const files: Record<string, string> = {
    "README.md": "# Depot\n\nDepot sells what it has in stock.\n",
    "package.json": '{\n  "name": "depot",\n  "bin": "bin/depot.js"\n}\n',
    "bin/depot.js": 'import "../src/orders/orders.js";\n',
    "src/orders/orders.ts":
      '/** Orders, from the wish to the parcel. */\nimport { take } from "../stock/stock.ts";\nimport { price } from "./price.ts";\n\nexport const order = () => price(take());\n',
    "src/orders/price.ts":
      '/** What something costs today. */\nimport { round } from "../lib/round.ts";\n\nexport const price = (amount: number) => round(amount);\n',
    "src/stock/stock.ts": "/**\n * Stock: what lies on the shelves.\n */\nexport const take = () => 1;\n",
    "src/lib/lib.ts": "/** Small things that know nothing of shops. */\nexport {};\n",
    "src/lib/round.ts": "export const round = Math.round;\n",
  };
  for (const part of ["orders", "stock", "lib"]) {
    for (let number = 1; number <= 5; number++) {
      const text =
        part === "orders" ? 'import { price } from "./price.ts";\n\nexport const a = price;\n' : "export {};\n";
      files[`src/${part}/more-${number}.ts`] = text;
      files[`test/${part}-${number}.test.ts`] = `import "../src/${part}/more-${number}.ts";\n`;
    }
  }
  return files;
}
