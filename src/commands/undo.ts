import { TroupeError } from "../protocol/errors.ts";
import { defineCommand } from "./command.ts";

export const undo = defineCommand({
  name: "undo",
  summary: "Take back what the last message changed in files",
  needs: ["undo"],
  async run(argumentText, { undo: takeBack }) {
    if (argumentText !== "") {
      const hint = "troupe undo, outside of a session, can take back more.";
      throw new TroupeError("usage", "/undo takes back the last message and nothing else.", { hint });
    }
    return { kind: "completed", text: await takeBack() };
  },
});
