import { TroupeError } from "../protocol/errors.ts";
import { defineCommand } from "./command.ts";
import { shown } from "./lines.ts";

export const addDir = defineCommand({
  name: "add-dir",
  summary: "Let agents reach one more folder in this session",
  argumentHint: "<folder>",
  needs: ["addDirectory"],
  async run(path, { addDirectory }) {
    if (path === "")
      throw new TroupeError("usage", "The folder is missing.", { hint: "Write /add-dir ../other-project." });
    return { kind: "completed", text: `Agents may reach ${shown(await addDirectory(path), 400)} now.` };
  },
});
