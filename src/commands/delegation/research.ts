import { firstCharacters } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { defineCommand } from "../command.ts";
import { filledIn } from "../lines.ts";
import template from "./research.md";
import { researchLimits } from "./research-limits.ts";

export const research = defineCommand({
  name: "research",
  summary: "Research a topic with several agents in parallel and get a report with sources",
  harmless: "always",
  argumentHint: "<topic>",
  run(topic, { filesFolder, now }) {
    if (topic === "") {
      throw new TroupeError("usage", "The topic is missing.", { hint: "Write /research and what you want to know." });
    }
    const reportPath = `${filesFolder}/${reportName(topic, now())}`;
    return {
      kind: "prompt",
      prompt: filledIn(template, { topic, report: reportPath }),
      displayPrompt: `Research: ${topic}`,
      toolLimits: researchLimits(reportPath),
      gate: { kind: "research", reportPath },
    };
  },
});

const MAX_SLUG_CHARACTERS = 48;

/** Returns a readable, unique name such as `research-how-leases-expire-20260101T000000.md`. */
function reportName(topic: string, now: number): string {
  const words = topic
    .normalize("NFKD")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-");
  const slug = firstCharacters(words, MAX_SLUG_CHARACTERS).replace(/^-+|-+$/g, "");
  const time = new Date(now).toISOString().replace(/[-:]|\.\d+Z$/g, "");
  return ["research", ...(slug === "" ? [] : [slug]), time].join("-").concat(".md");
}
