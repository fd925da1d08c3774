/** Writes the map of a repository from the collected evidence. */
import { plural } from "../../lib/text.ts";
import type { PromptPart } from "./delegate.ts";
import { hindrances, linesOf, type Scene, viewed } from "./plan/plan.ts";
import type { EntryPoint } from "./project/entry-points.ts";
import { type Folder, isAside, speakersOf, speaksForFolder } from "./project/folders.ts";
import { baseName, folderOf, isCode, isTest, languageOf, languages } from "./project/languages.ts";
import type { Manifest, ManifestFact } from "./project/manifests.ts";
import { declarationsIn, firstParagraph, leadingRemark, titleOf } from "./project/read-source.ts";
import { invocationOf, packageManagerOf } from "./project/script-runner.ts";
import type { Survey } from "./project/survey.ts";
import { type FoundRemark, remarkFor } from "./remarks.ts";
import { type Report, unreported } from "./report.ts";
import { cite, heading, inlineCode, inlineText, limitRows, list, remarkRow, writeAnswer } from "./write-answer.ts";
import { partSection } from "./write-parts.ts";

export interface OverviewFacts {
  /** Top-level source files, read because there are few folders. */
  readonly leads: readonly string[];
  readonly survey: Survey;
  readonly folders: readonly Folder[];
  readonly facts: readonly Manifest[];
  readonly entries: readonly EntryPoint[];
  readonly readme: string | undefined;
  readonly focus: Focus | undefined;
  /** The parts that agents explored, and their reports. */
  readonly parts: readonly PromptPart[];
  readonly reports: readonly Report[];
}

/** The requested part of the map. It comes first. */
export type Focus = "entries" | "commands" | "tests";

export function writeOverview(scene: Scene, found: OverviewFacts): string {
  const { survey, folders, facts, entries } = found;
  const notes = [...hindrances(scene, ["view", "glob"]), ...unreported(scene, found.parts, found.reports)];
  if (survey.files.length === 0) {
    const seen = viewed(scene, ".");
    const nothing =
      seen.kind === "nothing" && notes.length > 0
        ? "I could not look into this folder."
        : "This folder is empty: there is nothing to describe yet.";
    const hidden =
      seen.kind === "folder" && seen.entries.length > 0
        ? `It holds only: ${list(
            seen.entries.map((name) => `\`${name}\``),
            12,
          )}.`
        : undefined;
    return writeAnswer([hidden ?? nothing, notes]);
  }
  const commands = facts.flatMap((manifest) => manifest.commands);
  const entrySection = heading(
    "Entry points",
    entries.map((entry) => entryRow(scene, entry)),
  );
  const ordered = found.focus === "tests" ? [...commands].sort((a, b) => testing(b) - testing(a)) : commands;
  const commandSection = heading("Build and test", limitRows(commandRows(scene, found, ordered), 9, "more commands"));
  const first = found.focus === undefined ? [] : found.focus === "entries" ? entrySection : commandSection;
  const missing =
    found.focus === undefined || first.length > 0
      ? undefined
      : `I found no ${found.focus === "entries" ? "entry point" : "command"}: no manifest names one${found.focus === "entries" ? ", and no file is named like one" : ""}.`;
  if (found.focus !== undefined) return writeAnswer([first, missing, WHOLE_MAP, notes]);
  const sight = { scene, files: survey.files, reports: found.reports };
  const remarks = new Map(folders.map((folder) => [folder, remarkFor(sight, folder)]));
  return writeAnswer([
    first,
    missing,
    whatItIs(scene, found),
    heading(`Folders (${extentOf(survey)}; in brackets how many are beneath)`, [
      ...folders.map((folder) => folderRow(folder, survey, remarks.get(folder))),
      ...unlistedRow(folders, survey),
    ]),
    partSection(found.reports, {
      folders: folders.map(({ path }) => path),
      said: new Set([...remarks.values(), ...entries].flatMap((one) => saidOf(one))),
      names: facts.flatMap(({ about }) => about).flatMap(({ label, value }) => (label === "name" ? [value] : [])),
    }),
    heading("Top-level files", [...topFiles(survey.files), ...found.leads.flatMap((path) => leadRow(scene, path))]),
    [`**Languages:** ${languageCounts(survey)}`],
    first === entrySection ? [] : entrySection,
    first === commandSection ? [] : commandSection,
    heading("Where to start reading", startRows(found)),
    notes,
  ]);
}

const WHOLE_MAP = "For the map of the whole project ask: *how is this repository organised?*";

/** Returns how much of the project the numbers cover. */
function extentOf({ files, total, exact, cut, tops }: Survey): string {
  const looked =
    tops.looked < tops.all ? `${thousands(tops.looked)} of ${thousands(tops.all)} top-level folders looked at` : "";
  if (!cut || (exact && looked === "")) return plural(total, "file");
  const known =
    total > files.length
      ? `${thousands(files.length)} of ${exact ? "" : "at least "}${thousands(total)} files seen`
      : `at least ${plural(total, "file")}`;
  return looked === "" ? known : `${known}, ${looked}`;
}

function thousands(count: number): string {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ",");
}

function unlistedRow(folders: readonly Folder[], { files, tops }: Survey): string[] {
  const known = new Set(files.flatMap((path) => /^[^./][^/]*(?=\/)/.exec(path)?.[0] ?? []));
  const listed = new Set(folders.map((folder) => folder.path.split("/")[0] ?? ""));
  const missing = Math.max(known.size, tops.all) - listed.size;
  return missing > 0 ? [`- … ${plural(missing, "more folder")} not listed`] : [];
}

function testing(command: ManifestFact): number {
  return Number(/^(tests?|check|spec|pytest)\b/.test(command.label)) * 2 + Number(/test/.test(command.label));
}

function whatItIs(scene: Scene, { facts, readme }: OverviewFacts): string[] {
  const about = facts.flatMap((manifest) => manifest.about);
  const name = about.find((fact) => fact.label === "name");
  const description = about.find((fact) => fact.label === "description");
  const lines = readme === undefined ? [] : linesOf(scene, readme);
  const title = titleOf(lines);
  const paragraph = firstParagraph(lines);
  const shownName = name?.value ?? title?.text;
  const rows: string[] = [];
  const same = paragraph !== undefined && sameStart(paragraph.text, description?.value ?? "");
  const fuller = same && paragraph.text.length > (description?.value.length ?? 0);
  if (description !== undefined && !fuller)
    rows.push(`${inlineText(description.value, 220)} (${citeFact(description)})`);
  if (readme !== undefined && (fuller || !same)) rows.push(...remarkRow(readme, paragraph));
  if (rows.length === 0)
    rows.push("Neither a README nor a manifest says what this is; what follows is read from the files themselves.");
  return [
    shownName === undefined ? "**What it is**" : `**${inlineText(shownName, 80)}**`,
    ...rows.flatMap((row, index) => (index === 0 ? [row] : ["", row])),
  ];
}

/** Returns the number of files. For a cut list it is a lower bound, marked with "+". */
function countOf(folder: Folder, { counted, tops }: Survey): string {
  const known = counted.get(folder.path);
  if (known !== undefined) return String(known);
  const top = folder.path.split("/")[0] ?? "";
  return counted.has(top) || tops.passedOver.has(top) ? `${folder.files}+` : String(folder.files);
}

/** True if a README starts with the manifest's words and adds nothing. */
function sameStart(a: string, b: string): boolean {
  const words = (text: string) =>
    text
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu)
      ?.slice(0, 5)
      .join(" ") ?? "";
  return words(a) === words(b);
}

function saidOf(one: FoundRemark | EntryPoint | undefined): string[] {
  if (one === undefined) return [];
  const path = "remark" in one ? one.path : one.source;
  return path === undefined ? [] : [path];
}

function folderRow(folder: Folder, survey: Survey, found: FoundRemark | undefined): string {
  const { files } = survey;
  const start = `${"  ".repeat(folder.depth)}- \`${folder.path}/\` (${countOf(folder, survey)})`;
  const rest = folder.unlisted > 0 ? `; ${plural(folder.unlisted, "more folder")} inside not listed` : "";
  if (found !== undefined) {
    const own = folderOf(found.path) === folder.path && speaksForFolder(folder.path, found.path);
    const at = cite(found.path, found.remark.line);
    if (own) return `${start} – ${inlineText(found.remark.text, 150)} ${at}${rest}`;
    const names = fileNames(folder.path, files);
    return `${start} – ${names === "" ? "" : `${names}; `}${at}: ${inlineText(found.remark.text, 90)}${rest}`;
  }
  const names = fileNames(folder.path, files);
  return names === "" ? `${start}${rest}` : `${start} – ${names}${rest}`;
}

function fileNames(folder: string, files: readonly string[]): string {
  const direct = files.filter((file) => folderOf(file) === folder);
  const plain = direct.filter((file) => !isTest(file));
  return list(
    (plain.length > 0 ? plain : direct).map((file) => baseName(file)),
    3,
  );
}

function topFiles(files: readonly string[]): string[] {
  const top = files.filter((path) => !path.includes("/"));
  return top.length === 0
    ? []
    : [
        list(
          top.map((path) => `\`${path}\``),
          16,
        ),
      ];
}

function leadRow(scene: Scene, path: string): string[] {
  const lines = linesOf(scene, path);
  const remark = leadingRemark(path, lines);
  if (remark !== undefined) return [`- \`${path}\` – ${inlineText(remark.text, 130)} ${cite(path, remark.line)}`];
  const declared = declarationsIn(path, lines).filter((one) => one.visible);
  const first = declared[0];
  if (first === undefined) return [];
  return [
    `- \`${path}\` – declares ${list(
      declared.map((one) => `\`${one.name}\``),
      4,
    )} ${cite(path, first.line)}`,
  ];
}

function languageCounts({ files, cut }: Survey): string {
  const counts = new Map<string, number>();
  for (const path of files) {
    const name = languageOf(path)?.name;
    if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  const order = new Map(languages.map((language, index) => [language.name, index]));
  const sorted = [...counts].sort((a, b) => b[1] - a[1] || (order.get(a[0]) ?? 0) - (order.get(b[0]) ?? 0));
  if (sorted.length === 0) return "none that I know by extension";
  return `${list(
    sorted.map(([name, count]) => `${name} ${count}`),
    7,
  )}${cut ? ` (of the ${files.length} files I could list)` : " (files)"}`;
}

function entryRow(scene: Scene, entry: EntryPoint): string {
  const declared = entry.facts.length === 0 ? "" : ` – ${entry.label} in ${citeFact(entry.facts[0])}`;
  if (entry.source === undefined) {
    const built = list([...new Set(entry.facts.map((fact) => `\`${fact.value}\``))], 4);
    return `- ${built}${declared}; not among the files, so probably built`;
  }
  const made = entry.facts[0]?.value ?? entry.source;
  const shown = `- \`${entry.source}\`${made === entry.source ? "" : ` (as \`${made}\`)`}${declared}`;
  const remark = leadingRemark(entry.source, linesOf(scene, entry.source));
  return remark === undefined ? shown : `${shown}: ${inlineText(remark.text, 110)} ${cite(entry.source, remark.line)}`;
}

const USEFUL =
  /^(install|setup|bootstrap|dev|start|serve|build|compile|test|tests|check|lint|fmt|format|types?|typecheck|run|all|bench|release)\b/;

function commandRows(scene: Scene, { focus, facts }: OverviewFacts, commands: readonly ManifestFact[]): string[] {
  const manager = packageManagerOf(scene, facts);
  const useful = commands.filter((command) => USEFUL.test(command.label));
  const others = commands.filter((command) => !USEFUL.test(command.label));
  const ordered = focus === "tests" ? commands : [...useful, ...others];
  return ordered.map((command) => {
    const invoked = invocationOf(command, manager);
    const body = invoked === command.value ? "" : ` → ${inlineCode(command.value)}`;
    return `- \`${invoked}\`${body} ${command.line === undefined ? `(because there is a \`${command.path}\`)` : citeFact(command)}`;
  });
}

function startRows({ survey, folders, entries, readme }: OverviewFacts): string[] {
  const guides = survey.files.filter((path) =>
    /^(docs\/)?(architecture|contributing|design|overview|agents|hacking|development)\.(md|rst|txt)$/i.test(path),
  );
  const biggest = folders
    .filter((folder) => !isAside(folder.path))
    .map((folder) => ({ folder, speaker: speakersOf(folder, survey.files).find(isCode) }))
    .filter(({ speaker }) => speaker !== undefined)
    .sort((a, b) => b.folder.files - a.folder.files || (a.folder.path < b.folder.path ? -1 : 1))
    .slice(0, 2);
  const tests = typicalTest(survey.files);
  const reads = new Map<string, string>();
  const read = (path: string, why: string) => reads.set(path, reads.get(path) ?? why);
  for (const path of [...(readme === undefined ? [] : [readme]), ...guides.slice(0, 3)]) read(path, "");
  for (const { source } of entries.slice(0, 2)) if (source !== undefined) read(source, " (entry point)");
  for (const { folder, speaker } of biggest) {
    if (speaker !== undefined) read(speaker, ` (the first of \`${folder.path}/\`, ${plural(folder.files, "file")})`);
  }
  if (tests !== undefined) read(tests, " (how it is tested)");
  return [...reads].slice(0, 7).map(([path, why], index) => `${index + 1}. \`${path}\`${why}`);
}

/** Returns a test of the top folder with the most tests, as near to its root as possible. */
function typicalTest(files: readonly string[]): string | undefined {
  const tests = files.filter((path) => isTest(path) && isCode(path));
  const counts = new Map<string, number>();
  const topOf = (path: string) => path.slice(0, Math.max(0, path.indexOf("/")));
  for (const path of tests) counts.set(topOf(path), (counts.get(topOf(path)) ?? 0) + 1);
  const depth = (path: string) => path.split("/").length;
  const most = (path: string) => counts.get(topOf(path)) ?? 0;
  return tests.sort((a, b) => most(b) - most(a) || depth(a) - depth(b) || (a < b ? -1 : 1))[0];
}

function citeFact(fact: ManifestFact | undefined): string {
  if (fact === undefined) return "";
  return fact.line === undefined ? `\`${fact.path}\`` : cite(fact.path, fact.line);
}
