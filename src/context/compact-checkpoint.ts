/**
 * Summaries as files for people and later agents, in the session's folder; the log has them too:
 *
 *   checkpoints/001-reading-big-files.md   a summary, under its title
 *               index.md                   all of them, as a table
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Disk, nodeDisk, replaceFile } from "../lib/node/disk.ts";
import { sanitiseLine } from "../lib/text.ts";

interface Checkpoint {
  readonly number: number;
  readonly title: string;
  readonly content: string;
}

export type WriteCheckpoint = (checkpoint: Checkpoint) => Promise<string>;

const FILE = /^(\d{3,})(?:-[a-z0-9-]*)?\.md$/;

/** Writes whole files only. One that a killed process left under the same number is replaced. */
export function checkpointWriter(directory: string, disk: Disk = nodeDisk): WriteCheckpoint {
  return async ({ number, title, content }) => {
    const folder = join(directory, "checkpoints");
    const name = checkpointName(number, title);
    await disk.mkdir(folder);
    await replaceFile(disk, join(folder, name), `# ${sanitiseLine(title)}\n\n${content}\n`);
    for (const other of checkpointFiles(folder)) {
      if (other.number === number && other.name !== name) await disk.unlink(join(folder, other.name));
    }
    await replaceFile(disk, join(folder, "index.md"), indexOf(folder));
    return join(folder, name);
  };
}

function checkpointName(number: number, title: string): string {
  const slug = title
    .toLowerCase()
    .normalize("NFKD")
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, MAX_SLUG)
    .replace(/^-+|-+$/g, "");
  return `${[String(number).padStart(3, "0"), slug].filter(Boolean).join("-")}.md`;
}

const MAX_SLUG = 40;

function checkpointFiles(folder: string): { name: string; number: number }[] {
  const names = readdirSync(folder).flatMap((name) => {
    const number = FILE.exec(name)?.[1];
    return number === undefined ? [] : [{ name, number: Number(number) }];
  });
  return names.sort((one, other) => one.number - other.number);
}

function indexOf(folder: string): string {
  const rows = checkpointFiles(folder).map(({ name, number }) => {
    const [head = ""] = readFileSync(join(folder, name), "utf8").split("\n", 1);
    return `| ${number} | ${head.replace(/^#\s*/, "").replaceAll("|", "\\|")} | [${name}](${name}) |`;
  });
  return ["# Checkpoints", "", "| number | title | file |", "| --- | --- | --- |", ...rows, ""].join("\n");
}
