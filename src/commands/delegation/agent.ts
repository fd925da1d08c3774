import { nearest } from "../../lib/text.ts";
import { TroupeError } from "../../protocol/errors.ts";
import { defineCommand } from "../command.ts";
import { clipLine, joinLines } from "../lines.ts";
import type { AgentEntry } from "../ports.ts";

export const agent = defineCommand({
  name: "agent",
  summary: "Show the agents, or choose the main agent of the session",
  harmless: "alone",
  argumentHint: "[name|none]",
  needs: ["agents"],
  async run(name, { agents }) {
    const choices = agents.list().filter(({ userInvocable }) => userInvocable !== false);
    if (name === "") return { kind: "completed", text: overview(choices, agents.selected()) };
    if (plain(name) === "none") {
      await agents.select(undefined);
      return { kind: "completed", text: "The default agent is the main agent." };
    }
    const chosen = choices.find((one) => one.name === name) ?? choices.find((one) => plain(one.name) === plain(name));
    if (!chosen) throw unknownAgent(name, choices);
    await agents.select(chosen.name);
    return { kind: "completed", text: `${clipLine(chosen.name)} is the main agent from the next message on.` };
  },
});

function overview(choices: readonly AgentEntry[], selected: string | undefined): string {
  if (choices.length === 0) return "There are no agents to choose from.";
  const lines = choices.map(
    ({ name, description }) => `${name === selected ? "*" : " "} ${clipLine(name, 80)}: ${clipLine(description)}`,
  );
  const leads = selected === undefined ? "The default agent is the main agent." : "* is the main agent.";
  return `${joinLines(lines)}\n${leads}`;
}

/** Normalizes a name for comparison: case, spaces and underscores do not matter. */
function plain(name: string): string {
  return name
    .trim()
    .toLowerCase()
    .replace(/[\s_]+/g, "-");
}

function unknownAgent(name: string, choices: readonly AgentEntry[]): TroupeError {
  const meant = nearest(
    name,
    choices.map((choice) => choice.name),
  );
  const hint = meant === undefined ? "/agent lists the agents." : `Did you mean ${clipLine(meant)}?`;
  return new TroupeError("usage", `There is no agent ${JSON.stringify(clipLine(name, 80))}.`, { hint });
}
