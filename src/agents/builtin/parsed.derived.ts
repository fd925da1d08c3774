/** The built-in agents. The build puts the result in the place of this file: a start reads none of their texts. */
import type { AgentDefinition } from "../agent.ts";
import { parseAgent } from "../parse-agent.ts";
import { builtinTexts } from "./texts.ts";

export const builtinAgents: readonly AgentDefinition[] = await Promise.all(
  [...builtinTexts].map(async ([id, text]) => {
    const parsed = await parseAgent(text, { id, source: "builtin" });
    // A text of ours that cannot be read is a defect.
    if (!parsed.ok) throw new Error(`builtin/${id}.md:${parsed.line}: ${parsed.message}`);
    return parsed.agent;
  }),
);
