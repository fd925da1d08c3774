/** The default and the meaning of each field of an agent file, for the reference page. */
import type { FieldName } from "./fields.ts";

interface FieldText {
  readonly default: string;
  readonly text: string;
}

export const fieldTexts: Readonly<Record<Exclude<FieldName, "prompt">, FieldText>> = {
  description: {
    default: "required",
    text: "When to use the agent, up to 1,024 characters. Models choose by it and see the first 300.",
  },
  name: { default: "the file name", text: "Name of the agent, up to 64 characters." },
  displayName: { default: "`name`", text: "Name that users see." },
  tools: {
    default: "all tools of the session",
    text: "Tools that the agent may use. `[]` is none, `*` is all.",
  },
  disallowedTools: { default: "none", text: "Tools that the agent never has. Wins over `tools`." },
  readOnly: { default: "`false`", text: "`true`: only tools that change nothing." },
  mcpServers: { default: "none", text: "MCP servers of this agent alone, as in `.mcp.json`." },
  model: { default: "the starter's model", text: "Model of the agent. `inherit` is the default." },
  models: { default: "the starter's model", text: "Models in order of preference. The first usable one is taken." },
  modelPolicy: { default: "`preferred`", text: "`required`: fail if none of the models can be used." },
  reasoningEffort: { default: "the starter's, on the same model", text: "Reasoning effort of the model." },
  skills: { default: "none", text: "Skills that the agent has in full from the start." },
  userInvocable: { default: "`true`", text: "`false`: users cannot choose it." },
  infer: { default: "`true`", text: "`false`: models cannot choose it." },
  disableModelInvocation: { default: "`false`", text: "`true`: the same as `infer: false`." },
  includeCustomInstructions: { default: "`false`", text: "`true`: the agent gets `AGENTS.md` and similar files." },
  promptParts: { default: "all", text: "Parts of the standard prompt that the agent gets besides its own." },
  limits: {
    default: "the starter's limits",
    text: "Limits over the agent's whole life, agents that it starts included.",
  },
  isolation: { default: "`none`", text: "`worktree`: the agent works in its own git worktree." },
  placement: {
    default: "`elsewhere` with `isolation: worktree`, else `here`",
    text: "With a database: `elsewhere` runs the agent as a session of its own, on any worker. No effect otherwise.",
  },
  outputSchema: { default: "none", text: "JSON Schema that the answer must satisfy." },
  github: { default: "none", text: "Stored and passed to clients. No effect here." },
  sidekick: { default: "none", text: "Makes the agent a sidekick, which starts by itself on these events." },
};
