/** Recognises the prompts of slash commands. They tell a model how to lead other agents, which rules cannot do. */
import type { UnderstudyStep } from "./plan/plan.ts";
import { writeAnswer } from "./write-answer.ts";

export type CommandName = "review" | "fleet" | "research" | "plan" | "subconscious";

interface Known {
  /** The beginning of the command's prompt. */
  readonly beginning: string;
  readonly takes: string;
  readonly instead: string;
}

const COMMANDS: Readonly<Record<CommandName, Known>> = {
  review: {
    beginning: "Get a code review from another agent.",
    takes: "judging a change",
    instead: 'say what changed: `troupe -p "what changed?"`',
  },
  fleet: {
    beginning: "Work as a fleet: you divide the work",
    takes: "dividing work and doing it",
    instead: 'find the code the work is about: `troupe -p "where is parseConfig used?"`',
  },
  research: {
    beginning: "You lead a piece of research.",
    takes: "asking, weighing sources and writing a report",
    instead: 'search this folder: `troupe -p "where are errors handled?"`',
  },
  plan: {
    beginning: "[[PLAN]] ",
    takes: "making a plan",
    instead: 'map the code for a plan of your own: `troupe -p "how is this project organised?"`',
  },
  subconscious: {
    beginning: "Call the `task` tool exactly once, with these values and nothing else:",
    takes: "drawing lessons from a session",
    instead: 'say what a file holds: `troupe -p "explain README.md"`',
  },
};

export function commandOf(prompt: string): CommandName | undefined {
  const known = Object.entries(COMMANDS).find(([, { beginning }]) => prompt.startsWith(beginning));
  return known?.[0] as CommandName | undefined;
}

export function needsModel(name: CommandName): UnderstudyStep {
  const { takes, instead } = COMMANDS[name];
  return {
    kind: "answer",
    text: writeAnswer([
      [
        `\`/${name}\` needs a real model: ${takes} takes reasoning, and I follow fixed rules. Nothing was done.`,
        "To set one up, put a key into the environment (`ANTHROPIC_API_KEY`, `OPENAI_API_KEY` …) or start a local server (such as Ollama); `troupe models` lists what can be used.",
        `What I can do instead is ${instead}.`,
      ],
    ]),
  };
}
