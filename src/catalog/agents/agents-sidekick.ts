/** Agents that start by themselves. The user's own may; those of a project start only as approved. */
import type { AgentDefinition } from "../../agents/agent.ts";
import type { Json } from "../../lib/json.ts";
import type { ItemTrust, PinnedItem } from "../../lib/pinned-item.ts";
import { digestOf } from "../pins.ts";
import type { NoteAgent } from "./agents-notice.ts";

const OWN: ReadonlySet<AgentDefinition["source"]> = new Set(["program", "user", "plugin", "builtin"]);

/** Returns false for an unapproved sidekick. It is left out, because it has no other use. */
export function mayStart(
  agent: AgentDefinition,
  { check, note }: { check: ((item: PinnedItem) => ItemTrust) | undefined; note: NoteAgent },
): boolean {
  if (!agent.sidekick || OWN.has(agent.source)) return true;
  const verdict = check?.(itemOf(agent)) ?? "untrusted";
  if (verdict === "approved") return true;
  const path = agent.path ?? `${agent.source}/${agent.name}`;
  const message = `The sidekick ${agent.name} of ${path} does not start: ${reasons[verdict]} Review it, then run: troupe trust`;
  note({ kind: verdict === "changed" ? "changed" : "untrusted", path, message });
  return false;
}

const reasons = {
  untrusted: "this folder is not trusted.",
  new: "it is not approved yet.",
  changed: "it has changed since it was approved.",
};

function itemOf(agent: AgentDefinition): PinnedItem<"sidekick"> {
  const { path: _, ...definition } = agent;
  const { tools, sidekick, prompt, name, description } = agent;
  const events = sidekick?.triggers.map(({ event }) => event).join(" and ");
  return {
    kind: "sidekick",
    id: name,
    digest: digestOf(JSON.parse(JSON.stringify(definition)) as Json),
    shown: `${name}: ${description}\nstarts automatically on ${events}, with ${tools === null ? "all reading tools" : tools.join(", ")}\n${prompt}`,
  };
}
