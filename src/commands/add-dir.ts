import { TroupeError } from "../protocol/errors.ts";
import { defineCommand } from "./command.ts";
import { clipLine } from "./lines.ts";

export const addDir = defineCommand({
  name: "add-dir",
  summary: "Allow agents to use another folder in this session",
  argumentHint: "<folder>",
  needs: ["addDirectory"],
  async run(path, { addDirectory }) {
    if (path === "")
      throw new TroupeError("usage", "The folder is missing.", { hint: "Write /add-dir ../other-project." });
    return { kind: "completed", text: `Agents can now use ${clipLine(await addDirectory(path), 400)}.` };
  },
});
