/** A summary as a file for people and later agents: `checkpoints/001.md` in the session's folder. The log has it too. */
import { join } from "node:path";
import { type Disk, nodeDisk, replaceFile } from "../lib/node/disk.ts";
import { sanitiseLine } from "../lib/text.ts";

interface Checkpoint {
  readonly number: number;
  readonly title: string;
  readonly content: string;
}

export type WriteCheckpoint = (checkpoint: Checkpoint) => Promise<string>;

/** Writes whole files only. One that a killed process left under the same number is replaced. */
export function checkpointWriter(directory: string, disk: Disk = nodeDisk): WriteCheckpoint {
  return async ({ number, title, content }) => {
    const folder = join(directory, "checkpoints");
    const path = join(folder, `${String(number).padStart(3, "0")}.md`);
    await disk.mkdir(folder);
    await replaceFile(disk, path, `# ${sanitiseLine(title)}\n\n${content}\n`);
    return path;
  };
}
