import { TroupeError } from "../../protocol/errors.ts";
import { defineCommand } from "../command.ts";
import prompt from "./subconscious.md";

export const subconscious = defineCommand({
  name: "subconscious",
  summary: "Store the lessons of this session in memory, in the background",
  harmless: "always",
  argumentHint: "run",
  needs: ["agents"],
  run(action, { agents }) {
    if (action !== "run") {
      throw new TroupeError("usage", "/subconscious has only one action.", { hint: "Write /subconscious run." });
    }
    if (!agents.list().some(({ name }) => name === "rem-agent")) {
      const hint = "Memory is off, or not part of this session.";
      throw new TroupeError("usage", "The agent that consolidates memory is not available.", { hint });
    }
    return {
      kind: "prompt",
      prompt: prompt.trim(),
      displayPrompt: "Consolidate what was learned",
      toolLimits: { available: ["task"] },
      agents: ["rem-agent"],
    };
  },
});
