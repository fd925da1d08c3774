import { defineCommand } from "../command.ts";

const ON = "Autopilot is on: the agent works until the task is done. Its permissions stay the same.";
const OFF = "Autopilot is off.";

export const autopilot = defineCommand({
  name: "autopilot",
  summary: "Let the agent work until the task is done; without an argument, switch autopilot on or off",
  argumentHint: "[on|off|task]",
  run(argument, { mode }) {
    const word = argument.toLowerCase();
    const isWanted = word === "on" || (word === "" && mode !== "autopilot");
    if (isWanted) return { kind: "mode", mode: "autopilot", text: ON };
    // Switching autopilot off in plan mode does not leave plan mode.
    if (word === "off" && mode !== "autopilot") return { kind: "completed", text: OFF };
    if (word === "off" || word === "") return { kind: "mode", mode: "interactive", text: OFF };
    return {
      kind: "prompt",
      prompt: argument,
      displayPrompt: argument,
      mode: "autopilot",
      requiredTool: "task_complete",
    };
  },
});
