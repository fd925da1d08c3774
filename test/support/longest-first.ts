/** Starts the files that take longest first, so that no worker is left alone with one of them at the end. */

import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Folders whose files start programs or servers, by the time that their files take. */
const SLOW = ["cluster", "engine", "reliability", "web", "terminal", "e2e", "server", "shell", "session", "docs"];

/** Vitest knows the times of earlier runs, but nothing in a fresh clone: there it sorts by the size of the files. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.sort((one, other) => rank(one.moduleId) - rank(other.moduleId));
  }
}

function rank(path: string): number {
  const folder = /\/test\/([^/]+)\//.exec(path)?.[1] ?? "";
  const found = SLOW.indexOf(folder);
  return found === -1 ? SLOW.length : found;
}
