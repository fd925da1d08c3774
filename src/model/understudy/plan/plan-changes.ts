/** Plans the answer to "What changed?": from git if a shell is offered, otherwise from the files in git's folder. */
import { plural } from "../../../lib/text.ts";
import { parseShell, type SourceLine } from "../project/evidence.ts";
import { cite, heading, inlineText, limitRows, list, writeAnswer } from "../write-answer.ts";
import {
  answerTo,
  ask,
  glob,
  globHits,
  grep,
  grepHits,
  hindrances,
  linesOf,
  type Scene,
  shell,
  type UnderstudyStep,
  view,
  viewed,
} from "./plan.ts";
import { cannot } from "./plan-talk.ts";

const STATUS = shell("git status --short", "See which files differ from the last commit");
const LOG = shell("git log --oneline -10", "See the last ten commits");
const STAT = shell("git diff --stat HEAD", "See how much changed in which files");
const REFLOG = ".git/logs/HEAD";
const CHANGELOGS = "{CHANGELOG,Changelog,changelog,CHANGES,HISTORY,NEWS}*";
const MAX_ENTRIES = 10;

export function planChanges(scene: Scene, opinion?: string): UnderstudyStep {
  const step = plannedChanges(scene);
  if (opinion === undefined || step.kind !== "answer") return step;
  return { ...step, text: writeAnswer([cannot(opinion), step.text]) };
}

function plannedChanges(scene: Scene): UnderstudyStep {
  if (scene.tools.has("bash")) {
    const run = ask(scene, [STATUS, LOG, STAT]);
    if (run !== undefined) return run;
    const log = parseShell(answerTo(scene, LOG));
    const status = parseShell(answerTo(scene, STATUS));
    if (log !== undefined || status !== undefined)
      return { kind: "answer", text: fromGit({ log, status, stat: parseShell(answerTo(scene, STAT)) }) };
  }
  const size = sizeOfReflog(scene);
  const look = ask(scene, [
    view(".git/HEAD"),
    { name: "grep", arguments: { pattern: "^", path: REFLOG, output_mode: "count" } },
    glob(CHANGELOGS),
  ]);
  if (look !== undefined) return look;
  const changelog = globHits(scene, CHANGELOGS).paths[0];
  const read = ask(scene, [
    ...(size > 0 ? [view(REFLOG, [Math.max(1, size - MAX_ENTRIES + 1), size])] : []),
    ...(changelog === undefined ? [] : [view(changelog, [1, 60])]),
    ...branchCalls(scene),
  ]);
  if (read !== undefined) return read;
  return { kind: "answer", text: fromFiles(scene, changelog) };
}

function sizeOfReflog(scene: Scene): number {
  const counted = answerTo(scene, { name: "grep", arguments: { pattern: "^", path: REFLOG, output_mode: "count" } });
  return counted === undefined || counted.failed ? 0 : Number(/:(\d+)\s*$/.exec(counted.content.slice(-100))?.[1] ?? 0);
}

function branchCalls(scene: Scene) {
  const head = viewed(scene, ".git/HEAD");
  const reference = head.kind === "file" ? /^ref: (\S+)$/.exec(head.lines[0]?.text ?? "")?.[1] : undefined;
  return reference === undefined ? [] : [grep("^", { path: `.git/${reference}`, limit: 1 })];
}

function fromGit(seen: { log: string | undefined; status: string | undefined; stat: string | undefined }): string {
  const status = (seen.status ?? "").split("\n").filter((row) => row.trim() !== "");
  const commits = (seen.log ?? "").split("\n").filter((row) => row.trim() !== "");
  const stat = (seen.stat ?? "").split("\n").filter((row) => row.trim() !== "");
  const words: Record<string, string> = {
    M: "modified",
    A: "added",
    D: "deleted",
    R: "renamed",
    "?": "untracked",
    U: "in conflict",
    C: "copied",
  };
  const rows = status.map((row) => `- ${words[row.trim()[0] ?? ""] ?? "changed"}: \`${row.slice(2).trim()}\``);
  return writeAnswer([
    seen.status === undefined
      ? "git status could not be read."
      : status.length === 0
        ? "The working tree is clean: nothing differs from the last commit."
        : `${plural(status.length, "file")} ${status.length === 1 ? "differs" : "differ"} from the last commit (\`git status --short\`):`,
    limitRows(rows, 30, "more files"),
    stat.length === 0 ? [] : [`In sum: ${stat.at(-1)?.trim()} (\`git diff --stat HEAD\`).`],
    heading(
      "Last commits (`git log --oneline -10`)",
      commits.map((row) => `- ${inlineText(row, 140)}`),
    ),
  ]);
}

function fromFiles(scene: Scene, changelog: string | undefined): string {
  const head = viewed(scene, ".git/HEAD");
  const entries = linesOf(scene, REFLOG).flatMap(reflogEntry).reverse();
  const log = changelog === undefined ? [] : linesOf(scene, changelog);
  const notes = hindrances(scene, ["view", "grep", "glob"]).filter((note) => !note.includes(".git/"));
  if (head.kind === "nothing" && log.length === 0) {
    return writeAnswer(["I see no `.git` folder and no change log here, so I cannot tell what changed.", notes]);
  }
  const branch =
    head.kind === "file" ? (/^ref: refs\/heads\/(.+)$/.exec(head.lines[0]?.text ?? "")?.[1] ?? "detached") : undefined;
  const at = branchCalls(scene)
    .flatMap((call) => grepHits(scene, call).hits)[0]
    ?.text.slice(0, 8);
  return writeAnswer([
    branch === undefined
      ? undefined
      : `On branch \`${branch}\` (${cite(".git/HEAD", 1)})${at === undefined ? "" : `, at \`${at}\``}.${entries.length === 0 ? " It has no recorded history here yet." : ""}`,
    heading(
      "Last movements of this branch, newest first",
      entries.slice(0, MAX_ENTRIES).map((entry) => entry.row),
    ),
    changelog === undefined ? [] : heading(`\`${changelog}\` begins with`, newest(changelog, log)),
    `What I cannot see: changes not yet committed, and which files a commit touched. To see them, run \`git status --short\` and \`git log --stat -5\`${scene.tools.has("bash") ? "" : ", or offer me a `bash` tool"}.`,
    notes,
  ]);
}

function reflogEntry(line: SourceLine): { row: string }[] {
  const match = /^[0-9a-f]{7,64} ([0-9a-f]{7,64}) (.+?) <[^>]*> (\d+) [+-]\d{4}\t(.*)$/.exec(line.text);
  if (match === null) return [];
  const time = new Date(Number(match[3]) * 1000).toISOString().slice(0, 16).replace("T", " ");
  return [
    {
      row: `- ${time} UTC  \`${(match[1] ?? "").slice(0, 8)}\`  ${inlineText(match[2] ?? "", 40)}: ${inlineText(match[4] ?? "", 110)} ${cite(REFLOG, line.number)}`,
    },
  ];
}

/** Returns the headings and list items at the top, where changelogs have the newest entries. */
function newest(path: string, lines: readonly SourceLine[]): string[] {
  const rows = lines.filter((line) => /^(#{2,3} |\s*[-*+] |\d)/.test(line.text)).slice(0, 14);
  if (rows.length === 0)
    return [
      list(
        lines.filter((line) => line.text.trim() !== "").map((line) => inlineText(line.text, 120)),
        3,
      ),
    ];
  return rows.map((line) => `- ${inlineText(line.text.replace(/^[\s#*+-]+/, ""), 140)} ${cite(path, line.number)}`);
}
