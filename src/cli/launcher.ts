/** What `bin/troupe.js` hands over. */
export interface Launcher {
  /** Loads a module that is not part of the bundle. */
  importModule(specifier: string): Promise<unknown>;
}
