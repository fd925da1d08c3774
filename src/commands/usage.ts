import { plural } from "../lib/text.ts";
import { defineCommand } from "./command.ts";
import { duration } from "./lines.ts";

export const usage = defineCommand({
  name: "usage",
  summary: "Show what this session has used so far",
  harmless: "always",
  needs: ["usage"],
  run(_, { usage: facts }) {
    const { turns, inputTokens, outputTokens, costUsd, durationMs } = facts();
    const cost = costUsd === null ? "price unknown" : `$${costUsd.toFixed(4)}`;
    const counts = `${inputTokens.toLocaleString("en-US")} tokens in, ${outputTokens.toLocaleString("en-US")} out`;
    return {
      kind: "completed",
      text: `${plural(turns, "turn")}, ${counts}, ${cost}, ${duration(durationMs)} of model time`,
    };
  },
});
