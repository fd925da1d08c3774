/** The history of a file within a session. */
import type { Disk } from "../lib/node/disk.ts";
import type { Checkpoints } from "./checkpoints.ts";

/** Where the files of a session are kept before they are changed. */
export interface FileHistory {
  readonly checkpoints: Checkpoints;
  readonly disk: Disk;
}
