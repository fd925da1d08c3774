/** Plans the answer to "How is this repository organised?". */
import { isOpen, partsOf } from "../delegate.ts";
import { entryPointsOf } from "../project/entry-points.ts";
import { importantFolders, speakersOf } from "../project/folders.ts";
import { baseName, isCode, isTest } from "../project/languages.ts";
import { isManifest, manifestRank, readManifest } from "../project/manifests.ts";
import { askSurvey, surveyOf } from "../project/survey.ts";
import { remarkFor } from "../remarks.ts";
import { reportsOf } from "../report.ts";
import { type Focus, writeOverview } from "../write-overview.ts";
import {
  ask,
  glob,
  type PlannedCall,
  type Scene,
  type UnderstudyStep,
  unfoldFiles,
  view,
  wholeLinesOf,
} from "./plan.ts";

const HEAD = [1, 40] as const;
const README_HEAD = [1, 60] as const;
const MAX_FOLDERS = 28;
const FEW_FOLDERS = 4;
const MAX_LEADS = 14;

export function planOverview(scene: Scene, focus?: Focus): UnderstudyStep {
  const look = ask(scene, [view("."), glob("**/*")]);
  if (look !== undefined) return look;
  const listing = askSurvey(scene);
  if (listing !== undefined) return listing;

  const survey = surveyOf(scene);
  const folders = importantFolders(survey.files, MAX_FOLDERS);
  const manifests = topManifests(survey.files);
  const parts = focus === undefined ? partsOf(scene, folders) : [];
  const reports = reportsOf(scene, parts, new Set(survey.files));
  const others = new Set([...parts.filter((part) => isOpen(scene, part)), ...reports].map(({ folder }) => folder));
  const mine = folders.filter((folder) => !others.has(folder.path));
  const isWhole = focus === undefined;
  const speakers = isWhole ? mine.flatMap((folder) => speakersOf(folder, survey.files).slice(0, 1)) : [];
  const readme = topReadme(survey.files);
  const leads = isWhole && folders.length < FEW_FOLDERS ? leadingFiles(survey.files) : [];
  const read = ask(scene, [
    ...parts.map(({ call }) => call),
    ...(readme === undefined ? [] : [view(readme, README_HEAD)]),
    ...manifests.map((path) => view(path)),
    ...speakers.map(head),
    ...leads.map(head),
  ]);
  if (read !== undefined) return read;
  const rest = ask(scene, unfoldFiles(scene, manifests));
  if (rest !== undefined) return rest;

  const facts = manifests.flatMap((path) => readManifest(path, wholeLinesOf(scene, path)) ?? []);
  const entries = focus === undefined || focus === "entries" ? entryPointsOf(survey.files, facts) : [];
  const sight = { scene, files: survey.files, reports };
  const silent = (isWhole ? mine : []).filter((folder) => remarkFor(sight, folder) === undefined);
  const more = [
    ...entries.flatMap((entry) => (entry.source === undefined ? [] : [head(entry.source)])),
    ...silent.flatMap((folder) => speakersOf(folder, survey.files).slice(1, 2).map(head)),
  ];
  const again = ask(scene, more);
  if (again !== undefined) return again;
  const found = { survey, folders, facts, entries, readme, leads, focus, parts, reports };
  return { kind: "answer", text: writeOverview(scene, found) };
}

function head(path: string): PlannedCall {
  return baseName(path) === "package.json" ? view(path) : view(path, HEAD);
}

/** Returns the top-level source files, which describe a flat project. */
function leadingFiles(files: readonly string[]): string[] {
  return files.filter((path) => !path.includes("/") && isCode(path) && !isTest(path)).slice(0, MAX_LEADS);
}

function topManifests(files: readonly string[]): string[] {
  return files
    .filter((path) => !path.includes("/") && isManifest(path))
    .sort((a, b) => manifestRank(a) - manifestRank(b))
    .slice(0, 4);
}

function topReadme(files: readonly string[]): string | undefined {
  const readmes = files.filter((path) => /^readme(\.\w+)?$/i.test(path));
  return (
    readmes.find((path) => /\.md$/i.test(path)) ??
    readmes[0] ??
    files.find((path) => /^docs?\/(readme|index|overview)\.md$/i.test(path))
  );
}
