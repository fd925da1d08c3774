import { TroupeError } from "../protocol/errors.ts";
import { defineCommand } from "./command.ts";

export const fork = defineCommand({
  name: "fork",
  summary: "Start a second session from this conversation, or from the part before a message",
  argumentHint: "[<number>]",
  needs: ["history"],
  async run(argumentText, { history }) {
    if (argumentText !== "" && !/^\d{1,6}$/.test(argumentText)) {
      throw new TroupeError("usage", "/fork takes the number of a message.", { hint: "/rewind lists them." });
    }
    return { kind: "completed", text: await history.fork(argumentText === "" ? undefined : Number(argumentText)) };
  },
});
