/** Starts the files that take longest first, so that no worker is left alone with one of them at the end. */

import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Folders whose files start programs or servers, by the time that their files take. */
const SLOW = ["reliability", "web", "terminal", "e2e", "server", "shell", "session", "docs"];

/** Folders whose files mostly wait, for leases to expire. */
const WAITING = new Set(["cluster", "engine"]);

/** Other files that start between two that wait: enough work for the processors meanwhile. */
const BETWEEN = 5;

/** Vitest knows the times of earlier runs, but nothing in a fresh clone: there it sorts by the size of the files. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const waiting = sorted.filter(({ moduleId }) => WAITING.has(folderOf(moduleId)));
    const others = sorted
      .filter(({ moduleId }) => !WAITING.has(folderOf(moduleId)))
      .sort((one, other) => rank(one.moduleId) - rank(other.moduleId));
    const ordered = waiting.flatMap((file, index) => [file, ...others.slice(index * BETWEEN, (index + 1) * BETWEEN)]);
    return [...ordered, ...others.slice(waiting.length * BETWEEN)];
  }
}

const folderOf = (path: string): string => /\/test\/([^/]+)\//.exec(path)?.[1] ?? "";

function rank(path: string): number {
  const found = SLOW.indexOf(folderOf(path));
  return found === -1 ? SLOW.length : found;
}
