import { nearest } from "../lib/text.ts";
import { TroupeError } from "../protocol/errors.ts";
import { defineCommand } from "./command.ts";
import { clipLine, joinLines } from "./lines.ts";

export const model = defineCommand({
  name: "model",
  summary: "Show the models, or choose one for the next messages",
  harmless: "alone",
  argumentHint: "[name]",
  needs: ["models"],
  async run(name, { models }) {
    const names = await models.list();
    if (name === "") {
      const current = models.current();
      const others = names.filter((one) => one !== current);
      return {
        kind: "completed",
        text: joinLines([`* ${clipLine(current)}`, ...others.map((one) => `  ${clipLine(one)}`)]),
      };
    }
    // The list may be incomplete, so only likely typos are refused.
    const meant = names.includes(name) ? undefined : nearest(name, names);
    if (meant !== undefined) {
      const hint = `Did you mean ${clipLine(meant)}?`;
      throw new TroupeError("usage", `There is no model ${JSON.stringify(clipLine(name, 80))}.`, { hint });
    }
    return { kind: "completed", text: `The next message will be answered by ${clipLine(await models.select(name))}.` };
  },
});
