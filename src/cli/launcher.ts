import type { FirstFrame } from "../terminal/first-frame.ts";

/** The functions that `bin/troupe.js` passes in. */
export interface Launcher {
  /** The first frame of the interactive terminal, where it was painted before anything was loaded. */
  readonly first?: FirstFrame | undefined;
  /** Loads a module that is not part of the bundle. */
  importModule(specifier: string): Promise<unknown>;
}

/** Returns the command that started this process, without its arguments. */
export function ownProgram(): readonly [string, string] | undefined {
  const [program, script] = process.argv;
  return program === undefined || script === undefined ? undefined : [program, script];
}
