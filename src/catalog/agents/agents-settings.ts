/** The user's settings for single agents: `subagents.agents` in the settings file. */

import * as z from "zod";
import type { AgentDefinition } from "../../agents/agent.ts";
import { keysOf, normaliseName } from "../../agents/names.ts";
import { defined } from "../../lib/defined.ts";
import { clip } from "../../lib/text.ts";
import type { NoteAgent } from "./agents-notice.ts";

export interface AgentSettings {
  readonly model?: string;
  readonly reasoningEffort?: string;
  readonly disabled?: boolean;
  /** Whether the main agent is told to use it without being asked. */
  readonly autoInvoke?: boolean;
}

export type AgentOverrides = Readonly<Record<string, unknown>>;

const overrideSchema = () =>
  z.object({
    model: z.string().min(1).exactOptional(),
    reasoningEffort: z.string().min(1).exactOptional(),
    effortLevel: z.string().min(1).exactOptional(),
    disabled: z.boolean().exactOptional(),
    autoInvoke: z.boolean().exactOptional(),
  });

/** Returns an empty object if there are no settings for the agent, or invalid ones, which it reports to `note`. */
export function agentSettings(
  agent: Pick<AgentDefinition, "id" | "name">,
  overrides: AgentOverrides = {},
  note?: NoteAgent,
): AgentSettings {
  const keys = keysOf(agent);
  const entry = Object.entries(overrides).find(([name]) => keys.includes(normaliseName(name)));
  if (entry === undefined) return {};
  const parsed = overrideSchema().safeParse(entry[1]);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const at = ["subagents.agents", clip(entry[0], 64), ...(issue?.path ?? []).map(String)].join(".");
    note?.({ kind: "field", path: "settings", message: `${at} in the settings is not used: ${issue?.message}.` });
    return {};
  }
  const { effortLevel, ...rest } = parsed.data;
  return { ...defined({ reasoningEffort: effortLevel }), ...rest };
}
