import { TroupeError } from "../protocol/errors.ts";
import { defineCommand } from "./command.ts";
import { clipLine } from "./lines.ts";

const MAX_NAME_CHARACTERS = 100;

export const rename = defineCommand({
  name: "rename",
  summary: "Give this session a name to resume it by",
  argumentHint: "<name>",
  needs: ["rename"],
  async run(wanted, { rename: give }) {
    const name = clipLine(wanted, Number.POSITIVE_INFINITY);
    if (name === "" || name.length > MAX_NAME_CHARACTERS) {
      const hint = `Give one of 1 to ${MAX_NAME_CHARACTERS} characters.`;
      throw new TroupeError("usage", "This is not a valid session name.", { hint });
    }
    await give(name);
    return { kind: "completed", text: `This session is now called ${name}.` };
  },
});
