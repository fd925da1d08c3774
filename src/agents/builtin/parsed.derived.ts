/** The built-in agents. The build replaces this file with the parsed result, so startup parses no Markdown. */
import type { AgentDefinition } from "../agent.ts";
import { parseAgent } from "../parse-agent.ts";
import { builtinTexts } from "./texts.ts";

export const builtinAgents: readonly AgentDefinition[] = await Promise.all(
  [...builtinTexts].map(async ([id, text]) => {
    const parsed = await parseAgent(text, { id, source: "builtin" });
    // An invalid built-in definition is a bug.
    if (!parsed.ok) throw new Error(`builtin/${id}.md:${parsed.line}: ${parsed.message}`);
    return parsed.agent;
  }),
);
