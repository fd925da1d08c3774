import * as z from "zod";
import { quoted } from "../lib/quoting.ts";
import { clip, nearest } from "../lib/text.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { EventData } from "../protocol/event.ts";
import introduction from "./skill.md";
import { defineTool, fixed, type Tool, toolMaker } from "./tool.ts";
import { ToolError } from "./tool-error.ts";

/** The source of the skills. */
export interface SkillSource {
  /** Returns the skills that a model may load. */
  list(): readonly { readonly name: string; readonly description: string }[];
  /** Throws a `TroupeError` when the skill is not available. */
  load(name: string, signal: AbortSignal): Promise<LoadedSkill>;
}

interface LoadedSkill {
  /** The skill's text for the model. */
  readonly context: string;
  readonly invoked: EventData<"skill.invoked">;
}

const MAX_LIST_CHARACTERS = 4000;
const MAX_LINE_CHARACTERS = 400;
const MAX_NAME_CHARACTERS = 200;
const MAX_NAMES_OFFERED = 10;

const traits = { name: "skill", forReadOnlyAgents: true } as const;

/** Returns the tool. Its description lists the current skills, so it is rebuilt when they change. */
export const skillTool = toolMaker(traits, make);

function make(skills: SkillSource): Tool {
  return defineTool({
    ...traits,
    description: describe(skills.list()),
    input: fixed("skill", () =>
      z.object({ skill: z.string().min(1).max(MAX_NAME_CHARACTERS).describe("Name of the skill") }),
    ),
    readOnly: true,
    async run({ skill }, { signal }) {
      const { context, invoked } = await skills.load(skill, signal).catch((error: unknown) => {
        throw error instanceof TroupeError
          ? new ToolError(withSuggestion(error.message, skill, skills), { cause: error })
          : error;
      });
      return {
        content: `Skill "${invoked.name}" loaded successfully. Follow the instructions in the skill context.`,
        messages: [{ content: context, source: `skill-${invoked.name}` }],
        skillInvoked: invoked,
      };
    },
  });
}

function describe(skills: ReturnType<SkillSource["list"]>): string {
  const lines: string[] = [];
  let room = MAX_LIST_CHARACTERS;
  for (const { name, description } of skills) {
    const line = clip(quoted(`- ${name}: ${description}`), MAX_LINE_CHARACTERS);
    room -= line.length + 1;
    if (room < 0) break;
    lines.push(line);
  }
  const hidden = skills.length - lines.length;
  if (hidden > 0) lines.push(`- and ${hidden} more, not listed here; the user may name one`);
  return lines.length === 0 ? introduction.trim() : `${introduction.trim()}\n\n${lines.join("\n")}`;
}

function withSuggestion(message: string, wanted: string, skills: SkillSource): string {
  const names = skills.list().map(({ name }) => name);
  if (names.includes(wanted)) return message;
  const close = nearest(wanted, names) ?? names.find((name) => name.toLowerCase().includes(wanted.toLowerCase()));
  if (close !== undefined) return `${message} Did you mean ${JSON.stringify(close)}?`;
  if (names.length === 0) return `${message} There are no skills to load.`;
  const rest = names.length > MAX_NAMES_OFFERED ? ` and ${names.length - MAX_NAMES_OFFERED} more` : "";
  return `${message} There are: ${names.slice(0, MAX_NAMES_OFFERED).join(", ")}${rest}.`;
}
