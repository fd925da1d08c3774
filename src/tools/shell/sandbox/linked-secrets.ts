/**
 * Remembers the files that `.env` links led to. A command can remove such a link, and the next command could then read
 * the file. So it stays hidden, also after a restart.
 */
import { lstatSync, readFileSync, type Stats } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { type Disk, replaceFile } from "../../../lib/node/disk.ts";

const Secrets = z.array(z.object({ root: z.string(), path: z.string() }));
type Secret = z.infer<typeof Secrets>[number];

export class LinkedSecrets {
  /** The list on disk. */
  readonly path: string;
  readonly #disk: Disk;
  #known: readonly Secret[] = [];
  #state = "";

  constructor(folder: string, disk: Disk) {
    this.path = join(folder, "linked-secrets.json");
    this.#disk = disk;
  }

  /**
   * Adds the current targets of `.env` links in a workspace, and returns earlier ones that still exist. Throws when the
   * list cannot be read or written.
   */
  async remember(root: string, targets: readonly string[]): Promise<string[]> {
    this.#load();
    const before = this.#known.filter((one) => one.root === root).map(({ path }) => path);
    const added = targets.filter((path) => !before.includes(path)).map((path) => ({ root, path }));
    if (added.length > 0) await this.#save([...this.#known, ...added].filter(({ path }) => isFile(path)));
    return before.filter((path) => !targets.includes(path) && isFile(path));
  }

  /** Returns the files of all workspaces. Throws when the list cannot be read. */
  all(): readonly string[] {
    this.#load();
    return this.#known.map(({ path }) => path);
  }

  /** Other processes write it too. */
  #load(): void {
    const stat = lstatSync(this.path, { throwIfNoEntry: false });
    const state = stat ? stateOf(stat) : "";
    if (state === this.#state) return;
    this.#known = stat ? Secrets.parse(JSON.parse(readFileSync(this.path, "utf8"))) : [];
    this.#state = state;
  }

  async #save(secrets: readonly Secret[]): Promise<void> {
    const lines = secrets.map((secret) => JSON.stringify(secret));
    await replaceFile(this.#disk, this.path, `[\n${lines.join(",\n")}\n]\n`);
    this.#known = secrets;
    this.#state = stateOf(lstatSync(this.path));
  }
}

const stateOf = ({ ino, ctimeMs, size }: Stats): string => `${ino} ${ctimeMs} ${size}`;

function isFile(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
  } catch {
    return true;
  }
}
