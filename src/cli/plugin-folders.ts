import { statSync } from "node:fs";
import { type Arguments, usage } from "./args.ts";

/** Returns the folders of `--plugin-dir`. Throws if one does not exist. */
export function pluginFolders(given: Arguments): readonly string[] {
  const folders = given.list("plugin-dir");
  for (const folder of folders) {
    if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) {
      throw usage(`--plugin-dir ${folder}: there is no such folder.`);
    }
  }
  return folders;
}
