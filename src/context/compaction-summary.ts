/**
 * Writes summaries to files of the session's folder, for users and later agents. The log has them too:
 *
 *   checkpoints/001-reading-big-files.md   a summary, under its title
 *               index.md                   all of them, as a table
 */
import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Disk, nodeDisk, replaceFile } from "../lib/node/disk.ts";
import { sanitiseLine } from "../lib/text.ts";

interface StoredSummary {
  readonly number: number;
  readonly title: string;
  readonly content: string;
}

export type WriteSummary = (checkpoint: StoredSummary) => Promise<string>;

/** The files of a session, on disk or at a client, by paths relative to its folder. */
interface SessionFiles {
  /** Returns the full name of the file. */
  nameOf(path: string): string;
  read(path: string): Promise<string | undefined>;
  /** Writes the file atomically. */
  write(path: string, content: string): Promise<void>;
  remove(path: string): Promise<void>;
  list(folder: string): Promise<readonly string[]>;
}

const FOLDER = "checkpoints";
const FILE = /^(\d{3,})(?:-[a-z0-9-]*)?\.md$/;

export function summaryWriter(directory: string, disk: Disk = nodeDisk): WriteSummary {
  return summaryWriterTo(filesOf(directory, disk));
}

/** Returns a function that writes a checkpoint. It replaces an earlier file with the same number. */
export function summaryWriterTo(files: SessionFiles): WriteSummary {
  return async ({ number, title, content }) => {
    const name = summaryName(number, title);
    await files.write(`${FOLDER}/${name}`, `# ${sanitiseLine(title)}\n\n${content}\n`);
    for (const other of await summaryFiles(files)) {
      if (other.number === number && other.name !== name) await files.remove(`${FOLDER}/${other.name}`);
    }
    await files.write(`${FOLDER}/index.md`, await indexOf(files));
    return files.nameOf(`${FOLDER}/${name}`);
  };
}

function filesOf(directory: string, disk: Disk): SessionFiles {
  const nameOf = (path: string): string => join(directory, path);
  return {
    nameOf,
    read: (path) => readFile(nameOf(path), "utf8"),
    async write(path, content) {
      await disk.mkdir(dirname(nameOf(path)));
      await replaceFile(disk, nameOf(path), content);
    },
    remove: (path) => disk.unlink(nameOf(path)),
    list: (folder) => readdir(nameOf(folder)),
  };
}

function summaryName(number: number, title: string): string {
  const slug = title
    .toLowerCase()
    .normalize("NFKD")
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, MAX_SLUG)
    .replace(/^-+|-+$/g, "");
  return `${[String(number).padStart(3, "0"), slug].filter(Boolean).join("-")}.md`;
}

const MAX_SLUG = 40;

async function summaryFiles(files: SessionFiles): Promise<{ name: string; number: number }[]> {
  const names = (await files.list(FOLDER)).flatMap((name) => {
    const number = FILE.exec(name)?.[1];
    return number === undefined ? [] : [{ name, number: Number(number) }];
  });
  return names.sort((one, other) => one.number - other.number);
}

async function indexOf(files: SessionFiles): Promise<string> {
  const rows: string[] = [];
  for (const { name, number } of await summaryFiles(files)) {
    const [head = ""] = ((await files.read(`${FOLDER}/${name}`)) ?? "").split("\n", 1);
    rows.push(`| ${number} | ${head.replace(/^#\s*/, "").replaceAll("|", "\\|")} | [${name}](${name}) |`);
  }
  return ["# Checkpoints", "", "| number | title | file |", "| --- | --- | --- |", ...rows, ""].join("\n");
}
