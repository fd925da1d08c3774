/** What `bin/troupe.js` hands over. */
export interface Launcher {
  /** Loads a module that is not part of the bundle. */
  importModule(specifier: string): Promise<unknown>;
}

/** The command that started this process, without its arguments. */
export function ownProgram(): readonly [string, string] | undefined {
  const [program, script] = process.argv;
  return program === undefined || script === undefined ? undefined : [program, script];
}
