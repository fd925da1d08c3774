/** The agents that are always there. A new one is a Markdown file and a line here. */
import type { AgentDefinition } from "../agent.ts";
import { type AgentPlace, parseAgent } from "../parse-agent.ts";
import codeReview from "./code-review.md";
import explore from "./explore.md";
import generalPurpose from "./general-purpose.md";
import githubContext from "./github-context.md";
import remAgent from "./rem-agent.md";
import research from "./research.md";
import rubberDuck from "./rubber-duck.md";
import subconsciousAgent from "./subconscious-agent.md";
import task from "./task.md";

export const builtinTexts: ReadonlyMap<string, string> = new Map([
  ["explore", explore],
  ["task", task],
  ["general-purpose", generalPurpose],
  ["rubber-duck", rubberDuck],
  ["code-review", codeReview],
  ["research", research],
  ["rem-agent", remAgent],
  ["subconscious-agent", subconsciousAgent],
  ["github-context", githubContext],
]);

/** In their usual order, without those that are excluded; a text of ours that cannot be read is a defect. */
export async function builtinAgents(
  isActive: (name: string) => boolean,
  read?: AgentPlace["read"],
): Promise<AgentDefinition[]> {
  const active = [...builtinTexts].filter(([name]) => isActive(name));
  return Promise.all(
    active.map(async ([id, text]) => {
      const parsed = await parseAgent(text, { id, source: "builtin", ...(read && { read }) });
      if (!parsed.ok) throw new Error(`builtin/${id}.md:${parsed.line}: ${parsed.message}`);
      return parsed.agent;
    }),
  );
}
