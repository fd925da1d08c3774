import { plural } from "../lib/text.ts";
import { TroupeError } from "../protocol/errors.ts";
import { defineCommand } from "./command.ts";
import { clipLine, joinLines } from "./lines.ts";

export const permissions = defineCommand({
  name: "permissions",
  summary: "Show the rules and approvals, or remove the approvals of this session",
  harmless: "alone",
  argumentHint: "[reset]",
  needs: ["permissions"],
  async run(action, { permissions: port }) {
    if (action === "") {
      const lines = port.describe().map((line) => clipLine(line));
      const none = "There are no rules and no approvals: everything except plain reading needs permission.";
      return { kind: "completed", text: lines.length === 0 ? none : joinLines(lines) };
    }
    if (action.toLowerCase() !== "reset") {
      const hint = "Write /permissions or /permissions reset.";
      throw new TroupeError("usage", "/permissions does not understand this.", { hint });
    }
    return { kind: "completed", text: `Removed ${plural(await port.reset(), "approval")} of this session.` };
  },
});
