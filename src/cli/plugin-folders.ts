import { statSync } from "node:fs";
import { type Arguments, usage } from "./args.ts";

/** The folders of `--plugin-dir`. Throws for one that does not exist: it was typed for this run. */
export function pluginFolders(given: Arguments): readonly string[] {
  const folders = given.list("plugin-dir");
  for (const folder of folders) {
    if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
      throw usage(`--plugin-dir ${folder}: there is no such folder.`);
    }
  }
  return folders;
}
