/** The text of AGENTS.md, from the facts of a repository. */
import { clip } from "../../lib/text.ts";
import type { ManifestFact } from "../../model/understudy/project/manifests.ts";
import { invocationOf } from "../../model/understudy/project/script-runner.ts";
import type { RepositorySurvey } from "./survey.ts";

export function agentsFile(facts: RepositorySurvey): string {
  const parts = [
    `# ${facts.name}`,
    ...(facts.description === undefined ? [] : [clip(oneLine(facts.description), MAX_DESCRIPTION)]),
    section("Commands", commandLines(facts)),
    section("Layout", layoutLines(facts)),
    section("Conventions", conventionLines(facts)),
  ].filter((part) => part !== "");
  return `${parts.join("\n\n")}\n`;
}

const MAX_DESCRIPTION = 300;
const MAX_ABOUT = 100;
const MAX_COMMANDS = 12;

const section = (title: string, lines: readonly string[]): string =>
  lines.length === 0 ? "" : `## ${title}\n\n${lines.join("\n")}`;

const oneLine = (text: string): string => text.replace(/\s+/g, " ").trim();

/** Labels that people look for first, in this order. */
const WANTED = /^(install|setup|build|test|check|lint|types|typecheck|type-check|format|fmt|start|dev|run)$/;
const LIFECYCLE = /^(pre|post)(?!view|vious)|^(prepare|prepack|publish|version|dependencies)$/;

function commandLines(facts: RepositorySurvey): string[] {
  const all = facts.manifests.flatMap(({ commands }) => commands).filter(({ label }) => !LIFECYCLE.test(label));
  const ranked = [...all.filter(isWanted), ...all.filter((command) => !isWanted(command))];
  const shown = ranked.slice(0, MAX_COMMANDS).map((command) => {
    const line = invocationOf(command, facts.packageManager);
    return {
      line: shortened(line),
      comment: line === command.value ? command.label : clip(oneLine(command.value), 70),
    };
  });
  const rows = [...installLine(facts), ...shown, ...oneTest(facts)];
  const unique = rows.filter(({ line }, index) => rows.findIndex((other) => other.line === line) === index);
  if (unique.length === 0) return [];
  const width = Math.max(...unique.map(({ line }) => line.length));
  return ["```sh", ...unique.map(({ line, comment }) => `${line.padEnd(width)}  # ${comment}`), "```"];
}

const isWanted = ({ label }: ManifestFact): boolean => WANTED.test(label);

/** `npm run test` has a short form. */
const shortened = (line: string): string => line.replace(/^(npm|pnpm|yarn) run (test|start)$/, "$1 $2");

function installLine({ manifests, packageManager, isLocked }: RepositorySurvey): { line: string; comment: string }[] {
  if (!manifests.some(({ path }) => path.endsWith("package.json"))) return [];
  return [{ line: packageManager === "npm" && isLocked ? "npm ci" : `${packageManager} install`, comment: "install" }];
}

/** How one test file or one test is run, for the usual test programs. */
function oneTest({ packages, manifests, files }: RepositorySurvey): { line: string; comment: string }[] {
  const has = (name: string): boolean => manifests.some(({ path }) => path.endsWith(name));
  const usesPytest = manifests.some(({ commands }) => commands.some(({ value }) => value === "pytest"));
  const lines = [
    packages.has("vitest") && "npx vitest run <file>",
    packages.has("jest") && "npx jest <file>",
    packages.has("mocha") && "npx mocha <file>",
    (usesPytest || files.includes("pytest.ini")) && "pytest <file>::<test>",
    has("go.mod") && "go test ./<folder> -run <Test>",
    has("Cargo.toml") && "cargo test <name>",
  ];
  return lines.flatMap((line) => (line ? [{ line, comment: "one test" }] : []));
}

function layoutLines({ folders, isCut }: RepositorySurvey): string[] {
  const lines = folders.map(({ path, depth, files, about }) => {
    const text = about === undefined ? `${files} ${files === 1 ? "file" : "files"}` : clip(oneLine(about), MAX_ABOUT);
    return `${"  ".repeat(depth)}- \`${path}\`: ${text}`;
  });
  return isCut ? [...lines, "- and more: the repository was too large to list"] : lines;
}

/** Files that decide on format, lint and types. */
const TOOLS: readonly (readonly [RegExp, string])[] = [
  [/^biome\.jsonc?$/, "Biome formats and lints"],
  [/^(\.eslintrc(\.\w+)?|eslint\.config\.\w+)$/, "ESLint"],
  [/^(\.prettierrc(\.\w+)?|prettier\.config\.\w+)$/, "Prettier formats"],
  [/^tsconfig\.json$/, "TypeScript settings"],
  [/^(ruff\.toml|\.ruff\.toml)$/, "Ruff"],
  [/^(\.flake8|\.pylintrc)$/, "Python lint"],
  [/^(rustfmt|\.rustfmt)\.toml$/, "rustfmt"],
  [/^\.golangci\.ya?ml$/, "golangci-lint"],
  [/^\.editorconfig$/, "editor settings"],
  [/^\.pre-commit-config\.ya?ml$/, "hooks before each commit"],
];

function conventionLines({ languages, tests, files }: RepositorySurvey): string[] {
  const written = languages.slice(0, 4).map(({ name, files: count }) => `${name} (${count})`);
  const tools = TOOLS.flatMap(([pattern, what]) => {
    const file = files.find((path) => pattern.test(path));
    return file === undefined ? [] : [`- \`${file}\`: ${what}`];
  });
  const workflows = files.filter((path) => /^\.github\/workflows\/[^/]+\.ya?ml$/.test(path));
  return [
    ...(written.length > 0 ? [`- Languages, by files: ${written.join(", ")}`] : []),
    ...(tests > 0 ? [`- ${tests} test ${tests === 1 ? "file" : "files"}; ${testsAre(files)}`] : []),
    ...tools,
    ...(workflows.length > 0 ? [`- CI: ${workflows.map((path) => `\`${path}\``).join(", ")}`] : []),
  ];
}

function testsAre(files: readonly string[]): string {
  const folder = ["test", "tests", "spec", "__tests__"].find((name) =>
    files.some((path) => path.startsWith(`${name}/`)),
  );
  return folder === undefined ? "they lie beside the code" : `most lie in \`${folder}\``;
}
