/** Reads facts from a project's manifest. Each fact has the line it came from. */
import { isObject, parseJson } from "../../../lib/json.ts";
import { cutLine } from "../bounds.ts";
import type { SourceLine } from "./evidence.ts";
import { baseName } from "./languages.ts";

export interface ManifestFact {
  readonly label: string;
  readonly value: string;
  readonly path: string;
  /** Absent if the fact follows from the file's existence. */
  readonly line?: number;
}

export interface Manifest {
  readonly path: string;
  readonly about: readonly ManifestFact[];
  readonly entries: readonly ManifestFact[];
  readonly commands: readonly ManifestFact[];
  /** The package manager that package.json names. */
  readonly manager?: string;
}

const MAX_FACTS = 60;
const MAX_DEPTH = 6;

type Reader = (path: string, lines: readonly SourceLine[]) => Manifest;

/** In order of credibility. */
const readers: readonly (readonly [RegExp, Reader])[] = [
  [/^package\.json$/, readPackageJson],
  [/^pyproject\.toml$/, (path, lines) => readToml(path, lines, pyproject)],
  [/^Cargo\.toml$/, (path, lines) => readToml(path, lines, cargo)],
  [/^go\.mod$/, readGoMod],
  [/^pom\.xml$/, readPom],
  [
    /^build\.gradle(\.kts)?$/,
    (path) =>
      bare(path, [
        ["build", "./gradlew build"],
        ["test", "./gradlew test"],
      ]),
  ],
  [/^composer\.json$/, readPackageJson],
  [/^deno\.jsonc?$/, readPackageJson],
  [/^(GNUm|M|m)akefile$/, readMakefile],
  [/^justfile$/, readMakefile],
  [/^CMakeLists\.txt$/, (path) => bare(path, [["build", "cmake -B build && cmake --build build"]])],
  [
    /^mix\.exs$/,
    (path) =>
      bare(path, [
        ["build", "mix compile"],
        ["test", "mix test"],
      ]),
  ],
  [/^Gemfile$/, (path) => bare(path, [["install", "bundle install"]])],
  [/^setup\.(py|cfg)$/, (path) => bare(path, [["install", "pip install -e ."]])],
  [/^requirements\.txt$/, (path) => bare(path, [["install", "pip install -r requirements.txt"]])],
];

export function isManifest(path: string): boolean {
  return readers.some(([pattern]) => pattern.test(baseName(path)));
}

/** Returns the manifest's rank by credibility. */
export function manifestRank(path: string): number {
  return readers.findIndex(([pattern]) => pattern.test(baseName(path)));
}

export function readManifest(path: string, lines: readonly SourceLine[]): Manifest | undefined {
  const reader = readers[manifestRank(path)]?.[1];
  // JSON is parsed as a whole; the others are read line by line.
  if (reader === readPackageJson) return reader(path, lines);
  return reader?.(
    path,
    lines.map(({ number, text }) => ({ number, text: cutLine(text) })),
  );
}

function readPackageJson(path: string, lines: readonly SourceLine[]): Manifest {
  const parsed = parseJson(lines.map((line) => line.text).join("\n"));
  if (!parsed.ok || !isObject(parsed.value)) return { path, about: [], entries: [], commands: [] };
  const json = parsed.value;
  const at = (key: string, after = 0) =>
    lines.find((line) => line.number >= after && line.text.includes(`"${key}"`))?.number;
  const fact = (label: string, value: string, line: number | undefined): ManifestFact => ({
    label,
    value,
    path,
    ...(line === undefined ? {} : { line }),
  });
  const about = ["name", "description", "version"].flatMap((key) => {
    const value = json[key];
    return typeof value === "string" && value !== "" ? [fact(key, value, at(key))] : [];
  });
  const targets = (key: string): ManifestFact[] =>
    leaves(json[key])
      .slice(0, MAX_FACTS)
      .map((value) => fact(key, value.replace(/^\.\//, ""), at(value, at(key)) ?? at(key)));
  const scripts = isObject(json.scripts) ? json.scripts : isObject(json.tasks) ? json.tasks : {};
  const start = at("scripts") ?? at("tasks");
  const commands = Object.entries(scripts)
    .slice(0, MAX_FACTS)
    .flatMap(([name, command]) => (typeof command === "string" ? [fact(name, command, at(name, start))] : []));
  const manager = typeof json.packageManager === "string" ? json.packageManager.split("@")[0] : undefined;
  const entries = ["bin", "main", "module", "exports"].flatMap(targets);
  return { path, about, entries, commands, ...(manager === undefined ? {} : { manager }) };
}

/** Returns the files anywhere under `bin`, `exports` and the like, without type declarations. */
function leaves(value: unknown, depth = 0): string[] {
  if (typeof value === "string") return /\.d\.[mc]?ts$|\*|\.json$/.test(value) ? [] : [value];
  if (!isObject(value) || depth > MAX_DEPTH) return [];
  return [...new Set(Object.values(value).flatMap((inner) => leaves(inner, depth + 1)))];
}

interface TomlRules {
  readonly about: RegExp;
  readonly entries: RegExp;
  readonly commands: readonly (readonly [when: RegExp, label: string, command: string])[];
}

const pyproject: TomlRules = {
  about: /^(project|tool\.poetry)$/,
  entries: /^(project\.(gui-)?scripts|tool\.poetry\.scripts)$/,
  commands: [
    [/^tool\.pytest/, "test", "pytest"],
    [/^tool\.poetry$/, "install", "poetry install"],
    [/^(project|build-system)$/, "install", "pip install -e ."],
    [/^tool\.ruff/, "lint", "ruff check ."],
    [/^tool\.mypy/, "types", "mypy ."],
  ],
};

const cargo: TomlRules = {
  about: /^(package|workspace\.package)$/,
  entries: /^(bin|lib)$/,
  commands: [
    [/^(package|workspace)$/, "build", "cargo build"],
    [/^(package|workspace)$/, "test", "cargo test"],
  ],
};

function readToml(path: string, lines: readonly SourceLine[], rules: TomlRules): Manifest {
  const about: ManifestFact[] = [];
  const entries: ManifestFact[] = [];
  const commands: ManifestFact[] = [];
  let section = "";
  for (const [index, { text: written, number: at }] of lines.entries()) {
    // A text over several lines is represented by its first line.
    const long = /^\s*[\w.-]+\s*=\s*"""\\?$/.test(written) ? lines[index + 1] : undefined;
    const number = long?.number ?? at;
    const text = long === undefined ? written : `${written.split("=")[0]}= "${long.text.trim().replaceAll('"', "'")}"`;
    const header = /^\s*\[\[?([^\]]+)\]\]?/.exec(text)?.[1];
    if (header !== undefined) {
      section = header.trim();
      for (const [when, label, value] of rules.commands) {
        if (when.test(section) && !commands.some((known) => known.label === label))
          commands.push({ label, value, path, line: number });
      }
      continue;
    }
    const pair = /^\s*"?([\w.-]+)"?\s*=\s*"([^"]*)"/.exec(text);
    const [label, value] = [pair?.[1], pair?.[2]];
    if (label === undefined || value === undefined || value === "") continue;
    if (rules.about.test(section) && /^(name|description|version)$/.test(label))
      about.push({ label, value, path, line: number });
    else if (rules.entries.test(section) && (section.includes("scripts") || label === "path"))
      entries.push({ label, value, path, line: number });
  }
  return { path, about, entries, commands };
}

function readGoMod(path: string, lines: readonly SourceLine[]): Manifest {
  const found = lines.find((line) => line.text.startsWith("module "));
  const about =
    found === undefined ? [] : [{ label: "name", value: found.text.slice(7).trim(), path, line: found.number }];
  return {
    ...bare(path, [
      ["build", "go build ./..."],
      ["test", "go test ./..."],
    ]),
    about,
  };
}

function readPom(path: string, lines: readonly SourceLine[]): Manifest {
  const about = ["name", "artifactId", "description"].flatMap((tag) => {
    for (const line of lines) {
      const value = new RegExp(`<${tag}>([^<]+)</${tag}>`).exec(line.text)?.[1];
      if (value !== undefined)
        return [{ label: tag === "artifactId" ? "name" : tag, value: value.trim(), path, line: line.number }];
    }
    return [];
  });
  return {
    ...bare(path, [
      ["build", "mvn package"],
      ["test", "mvn test"],
    ]),
    about,
  };
}

function readMakefile(path: string, lines: readonly SourceLine[]): Manifest {
  const tool = baseName(path) === "justfile" ? "just" : "make";
  const commands = lines.flatMap((line) => {
    const label = /^([A-Za-z][\w-]*)(?![\w-])[^:=]*:(?![:=])/.exec(line.text)?.[1];
    return label === undefined ? [] : [{ label, value: `${tool} ${label}`, path, line: line.number }];
  });
  return { path, about: [], entries: [], commands };
}

function bare(path: string, commands: readonly (readonly [string, string])[]): Manifest {
  return { path, about: [], entries: [], commands: commands.map(([label, value]) => ({ label, value, path })) };
}
