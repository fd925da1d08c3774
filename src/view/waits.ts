/**
 * Why an agent waits, as a chain that ends with what would set it going: agent → tool → approval, lock, rate limit until
 * 14:03, or another agent with a chain of its own.
 */
import { isObject, parseJson } from "../lib/json.ts";
import type { ToolCard } from "./blocks.ts";
import { agentOf, isBusy } from "./draft.ts";
import type { AgentView, AttentionItem, View } from "./view.ts";

export type WaitLink =
  | { readonly kind: "agent"; readonly agentId: string; readonly name: string }
  | { readonly kind: "tool"; readonly toolCallId: string; readonly title: string; readonly since: number }
  /** Answered through the attention list. */
  | { readonly kind: "attention"; readonly item: AttentionItem }
  | { readonly kind: "lock"; readonly what: string }
  | {
      readonly kind: "model";
      readonly reason: string;
      readonly until: number | undefined;
      readonly isRateLimit: boolean;
    }
  /** No more agents may run at the same time. */
  | { readonly kind: "slot" };

/**
 * Returns the chain for the agent (default: the main agent), without the agent itself; empty when it waits for nothing
 * but its own model or tool.
 */
export function waitChain(view: View, agentId?: string): readonly WaitLink[] {
  const chain: WaitLink[] = [];
  const seen = new Set<string>();
  for (let agent = agentOf(view, agentId); agent && !seen.has(agent.id); ) {
    seen.add(agent.id);
    const { links, next } = linksOf(view, agent);
    chain.push(...links);
    if (!next) break;
    chain.push({ kind: "agent", agentId: next.id, name: next.displayName });
    agent = next;
  }
  return chain;
}

/** Agents, the one that asks included, that cannot continue before this item is answered. */
export function blockedBy(view: View, item: AttentionItem): readonly string[] {
  const blocked: string[] = [];
  const seen = new Set<string>();
  for (let agent = agentOf(view, item.agentId); agent && !seen.has(agent.id); ) {
    seen.add(agent.id);
    blocked.push(agent.id);
    const parent = agent.kind === "main" ? undefined : agentOf(view, agent.parentId);
    agent = parent && waitedFor(view, parent).includes(agent) ? parent : undefined;
  }
  return blocked;
}

/** Open requests, oldest first. */
export function openAttention(view: View): readonly AttentionItem[] {
  return [...view.attention.values()].filter(({ isAnswered }) => !isAnswered);
}

/** The chain in one line: `bash npm test → approval: npm test`. */
export function waitText(chain: readonly WaitLink[], clock: (at: number) => string = clockText): string {
  return chain.map((link) => linkText(link, clock)).join(" → ");
}

function linkText(link: WaitLink, clock: (at: number) => string): string {
  switch (link.kind) {
    case "agent":
      return link.agentId;
    case "tool":
      return link.title;
    case "attention":
      return `${attentionNames[link.item.kind]}: ${link.item.title}`;
    case "lock":
      return `lock: ${link.what}`;
    case "model": {
      const until = link.until === undefined ? "" : ` until ${clock(link.until)}`;
      return link.isRateLimit ? `rate limit${until}` : `the model: ${link.reason}`;
    }
    case "slot":
      return "a free slot";
  }
}

const attentionNames: Readonly<Record<AttentionItem["kind"], string>> = {
  permission: "approval",
  memory: "memory proposal",
  question: "question",
  plan: "plan approval",
  elicitation: "form",
  sign_in: "sign-in",
  limit: "limit",
  model_switch: "model switch",
};

/** Hours and minutes of the local time. */
function clockText(at: number): string {
  const time = new Date(at);
  const two = (value: number): string => String(value).padStart(2, "0");
  return `${two(time.getHours())}:${two(time.getMinutes())}`;
}

function linksOf(view: View, agent: AgentView): { readonly links: readonly WaitLink[]; readonly next?: AgentView } {
  if (agent.status === "queued") return { links: [{ kind: "slot" }] };
  if (agent.status !== "running") return { links: [] };
  const asked = openAttention(view).find((item) => (item.agentId ?? "") === agent.id);
  if (asked) return { links: [...callLinks(agent, asked.toolCallId), { kind: "attention", item: asked }] };
  const { modelWait } = agent;
  if (modelWait) {
    const { kind, reason, until } = modelWait;
    return { links: [{ kind: "model", reason, until, isRateLimit: kind === "rate_limit" }] };
  }
  for (const { toolCallId, waitsFor } of agent.tools.values()) {
    if (waitsFor !== undefined) return { links: [...callLinks(agent, toolCallId), { kind: "lock", what: waitsFor }] };
  }
  const [next] = waitedFor(view, agent);
  if (!next) return { links: [] };
  const call = callFor(agent, next);
  return { links: callLinks(agent, call?.toolCallId), next };
}

function callLinks(agent: AgentView, toolCallId: string | undefined): readonly WaitLink[] {
  const card = toolCallId === undefined ? undefined : agent.tools.get(toolCallId);
  return card ? [{ kind: "tool", toolCallId: card.toolCallId, title: card.title, since: card.startedAt }] : [];
}

/** Agents whose answer a call of this agent waits for. */
export function waitedFor(view: View, agent: AgentView): readonly AgentView[] {
  if (agent.status !== "running") return [];
  const read = new Set([...agent.tools.values()].flatMap(readBy));
  return [...view.agents.values()].filter((other) => {
    if (!isBusy(other) || other === agent) return false;
    return read.has(other.id) || (other.isAwaited && (other.parentId ?? "") === agent.id);
  });
}

const callFor = (agent: AgentView, child: AgentView): ToolCard | undefined =>
  [...agent.tools.values()].find((card) => card.children.includes(child.id) || readBy(card).includes(child.id));

/** `read_agent` with `wait` waits for the agent that it names. */
function readBy({ name, arguments: given }: ToolCard): readonly string[] {
  if (name !== "read_agent") return [];
  const parsed = parseJson(given);
  if (!parsed.ok || !isObject(parsed.value)) return [];
  const { agent_id: id, wait } = parsed.value;
  return wait === true && typeof id === "string" ? [id] : [];
}

const choiceLabels: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  plan: {
    interactive: "approve and start",
    autopilot: "approve and work on autopilot until it is done",
    autopilot_fleet: "approve and work on autopilot with several agents",
    exit_only: "approve, but do not start",
  },
  limit: { unset: "remove the limit", cancel: "stop here" },
};

/** A choice of a request in words. Choices of questions are words already. */
export function choiceLabel({ kind, request }: AttentionItem, choice: string): string {
  const isRecommended = request?.type === "exit_plan_mode.requested" && request.data.recommendedAction === choice;
  return `${choiceLabels[kind]?.[choice] ?? choice}${isRecommended ? " (recommended)" : ""}`;
}
