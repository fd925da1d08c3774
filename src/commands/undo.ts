import { TroupeError } from "../protocol/errors.ts";
import { defineCommand } from "./command.ts";

export const undo = defineCommand({
  name: "undo",
  summary: "Undo the file changes of the last message",
  needs: ["undo"],
  async run(argumentText, { undo: takeBack }) {
    if (argumentText !== "") {
      const hint = "To undo more, run troupe undo outside the session.";
      throw new TroupeError("usage", "/undo takes no arguments: it undoes the last message.", { hint });
    }
    return { kind: "completed", text: await takeBack() };
  },
});
