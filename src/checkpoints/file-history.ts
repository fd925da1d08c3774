import type { Disk } from "../lib/node/disk.ts";
import type { Checkpoints } from "./checkpoints.ts";

/** The checkpoints of a session's files, and the disk they are written with. */
export interface FileHistory {
  readonly checkpoints: Checkpoints;
  readonly disk: Disk;
}
