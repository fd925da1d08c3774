import type { AgentDefinition } from "../../src/agents/agent.ts";

/** An agent as a program defines it, with nothing special about it but what is said. */
export const agent = (name: string, more: Partial<AgentDefinition> = {}): AgentDefinition => ({
  id: name,
  name,
  displayName: name,
  description: `does ${name}`,
  prompt: `You are the ${name}.`,
  tools: null,
  disallowedTools: [],
  readOnly: false,
  models: [],
  modelPolicy: "preferred",
  skills: [],
  userInvocable: true,
  infer: true,
  includeCustomInstructions: false,
  promptParts: [],
  source: "program",
  ...more,
});
