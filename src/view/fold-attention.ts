/** Folds requests to people: permissions, questions, plans, forms, sign-ins. Answered anywhere, they close everywhere. */
import { isObject } from "../lib/json.ts";
import { fenceText } from "../lib/text.ts";
import { visible, visibleLine } from "../lib/visible.ts";
import type { EventData } from "../protocol/event.ts";
import { permissionText } from "../protocol/permission-text.ts";
import type { ApprovalBlock } from "./blocks.ts";
import { type AgentDraft, agentOf, type FoldStep, type ViewDraft } from "./draft.ts";
import { clip } from "./own-text.ts";
import { pushBlock } from "./push-block.ts";
import type { AttentionItem, AttentionRequest } from "./view.ts";

const MAX_TITLE = 120;
/** Requests that are known at once. Those of an agent that floods the list are dropped, oldest first. */
const MAX_ITEMS = 1_000;

export function foldAttention(step: FoldStep) {
  const { event, view } = step;
  switch (event.type) {
    case "permission.requested":
      return permission(step, event.data);
    case "permission.completed":
      return permissionEnd(step, event.data);
    case "troupe.question":
      return question(step, event.data);
    case "user_input.requested":
      return open(step, userInputItem(event.data));
    case "exit_plan_mode.requested":
      return open(step, planItem(event.data));
    case "elicitation.requested":
      return open(step, elicitationItem(event.data));
    case "mcp.oauth_required":
      return open(step, signInItem(event.data));
    case "session_limits_exhausted.requested":
      return open(step, limitItem(event.data));
    case "auto_mode_switch.requested":
      return open(step, modelSwitchItem(event.data));
    case "user_input.completed":
    case "exit_plan_mode.completed":
    case "elicitation.completed":
    case "mcp.oauth_completed":
    case "session_limits_exhausted.completed":
    case "auto_mode_switch.completed":
      return foldAnswered(view, event.data.requestId);
    default:
  }
}

function userInputItem(data: EventData<"user_input.requested">): Opened {
  const { requestId, question: asked, choices = [], allowFreeform = true, toolCallId } = data;
  const request: AttentionRequest = { type: "user_input.requested", data };
  return { ...asking(asked), id: requestId, kind: "question", choices, allowFreeform, toolCallId, request };
}

function planItem(data: EventData<"exit_plan_mode.requested">): Opened {
  const { requestId, summary, planContent, actions } = data;
  const text = planContent.trim() === "" ? summary : `${summary}\n\n${planContent}`;
  const request: AttentionRequest = { type: "exit_plan_mode.requested", data };
  return { id: requestId, kind: "plan", title: planTitle(summary), text, choices: actions, request };
}

/** The first line of the plan, without the marks of Markdown. */
function planTitle(summary: string): string {
  const first = summary.split("\n").find((line) => /[\p{L}\p{N}]/u.test(line)) ?? "";
  return titleOf(`Plan: ${first.replace(/^[\s#>*+-]+/, "")}`);
}

function elicitationItem(data: EventData<"elicitation.requested">): Opened {
  const { requestId, message, elicitationSource = "", toolCallId } = data;
  const title = titleOf(elicitationSource === "" ? message : `${elicitationSource}: ${message}`);
  const request: AttentionRequest = { type: "elicitation.requested", data };
  return { id: requestId, kind: "elicitation", title, text: fenceText(visible(message)), toolCallId, request };
}

function signInItem(data: EventData<"mcp.oauth_required">): Opened {
  const { requestId, serverName, serverUrl } = data;
  const title = titleOf(`Sign in to ${serverName}`);
  const text = `The MCP server wants you to sign in:\n\n${fenceText(visible(`${serverName}\n${serverUrl}`))}`;
  return { id: requestId, kind: "sign_in", title, text, request: { type: "mcp.oauth_required", data } };
}

function limitItem(data: EventData<"session_limits_exhausted.requested">): Opened {
  const { requestId, maxAiCredits, usedAiCredits } = data;
  const title = `The limit of ${maxAiCredits} credits is used up`;
  const text = `${title} (${usedAiCredits} used). Raise it to continue.`;
  const choices = ["unset", "cancel"];
  const request: AttentionRequest = { type: "session_limits_exhausted.requested", data };
  return { id: requestId, kind: "limit", title, text, choices, request };
}

function modelSwitchItem(data: EventData<"auto_mode_switch.requested">): Opened {
  const { requestId, errorCode = "the model is limited" } = data;
  const title = `Switch to another model? (${errorCode})`;
  const request: AttentionRequest = { type: "auto_mode_switch.requested", data };
  return { id: requestId, kind: "model_switch", title, text: title, request };
}

/** A call has ended, and with it everything that was asked for it. */
export function closeCall(view: ViewDraft, agent: AgentDraft, toolCallId: string) {
  if (view.attention.size === 0) return;
  for (const item of view.attention.values()) {
    if (item.toolCallId === toolCallId && (item.agentId ?? "") === agent.id) view.attention.delete(item.id);
  }
}

/** An agent has ended, and with it everything that it asked. */
export function closeAgent(view: ViewDraft, agentId: string) {
  for (const item of view.attention.values()) if (item.agentId === agentId) view.attention.delete(item.id);
}

type Opened = Pick<AttentionItem, "id" | "kind" | "title" | "text"> & Partial<AttentionItem>;

function open({ view, event, at }: FoldStep, about: Opened) {
  const known = view.attention.get(about.id);
  // A reminder for clients that came later is not stored and does not name its agent.
  const agentId = known ? known.agentId : event.agentId;
  view.attention.set(about.id, {
    agentId,
    path: known?.path ?? pathOf(view, agentId),
    toolCallId: known?.toolCallId,
    at: known?.at ?? at,
    canAllowForSession: false,
    choices: [],
    allowFreeform: false,
    request: undefined,
    isAnswered: false,
    isLive: known ? known.isLive : event.ephemeral === true,
    ...about,
    ...(about.toolCallId === undefined && { toolCallId: known?.toolCallId }),
  });
  if (view.attention.size > MAX_ITEMS) {
    const [oldest] = view.attention.keys();
    if (oldest !== undefined) view.attention.delete(oldest);
  }
}

function permission(step: FoldStep, data: EventData<"permission.requested">) {
  if (data.resolvedByHook) return;
  const { requestId, permissionRequest } = data;
  const { title, text, canAllowForSession } = permissionText(permissionRequest);
  open(step, {
    id: requestId,
    kind: permissionRequest.kind === "memory" ? "memory" : "permission",
    title,
    text,
    canAllowForSession,
    toolCallId: permissionRequest.toolCallId,
    request: { type: "permission.requested", data },
  });
}

function permissionEnd(step: FoldStep, { requestId, result }: EventData<"permission.completed">) {
  const item = step.view.attention.get(requestId);
  step.view.attention.delete(requestId);
  const agent = item ? agentOf(step.view, item.agentId) : step.agent;
  if (!item || !agent) return;
  const block = { kind: "approval", requestId, title: item.title, ...decisionOf(result) } as const;
  pushBlock(step, { ...block, askedBy: undefined }, { agent });
  const isByUser = block.decision === "approved" || block.how === "user";
  if (!isByUser || agent === step.view.main) return;
  pushBlock(step, { ...block, askedBy: agent.id }, { agent: step.view.main, id: `${step.event.id} main` });
}

function decisionOf(
  result: EventData<"permission.completed">["result"],
): Pick<ApprovalBlock, "decision" | "how" | "feedback"> {
  switch (result.kind) {
    case "approved":
      return { decision: "approved", how: "once", feedback: undefined };
    case "approved-for-session":
      return { decision: "approved", how: "session", feedback: undefined };
    case "approved-for-location":
      return { decision: "approved", how: "location", feedback: undefined };
    case "cancelled":
      return { decision: "cancelled", how: result.reason ?? "cancelled", feedback: undefined };
    case "denied-interactively-by-user":
      return { decision: "denied", how: "user", feedback: result.feedback };
    case "denied-by-permission-request-hook":
      return { decision: "denied", how: "hook", feedback: result.message };
    case "denied-by-rules":
      return { decision: "denied", how: "rules", feedback: undefined };
    case "denied-no-approval-rule-and-could-not-request-from-user":
      return { decision: "denied", how: "no user could be asked", feedback: undefined };
  }
}

/** Only its id is stored; its words are in the arguments of the call. */
function question(step: FoldStep, { requestId, kind, toolCallId }: EventData<"troupe.question">) {
  const given = step.agent?.tools.get(toolCallId)?.arguments ?? "";
  const parsed = parsedObject(given);
  const said = (key: string): string => (typeof parsed[key] === "string" ? parsed[key] : "");
  if (kind === "exit_plan_mode") {
    const summary = said("summary");
    return open(step, { id: requestId, kind: "plan", title: planTitle(summary), text: summary, toolCallId });
  }
  const choices = Array.isArray(parsed.choices) ? parsed.choices.filter((one) => typeof one === "string") : [];
  const allowFreeform = parsed.allow_freeform !== false || choices.length === 0;
  open(step, { ...asking(said("question")), id: requestId, kind: "question", choices, allowFreeform, toolCallId });
}

/** The words of a model: fenced, so that they cannot look like something else. */
const asking = (words: string): Pick<AttentionItem, "title" | "text"> => {
  return { title: titleOf(words), text: fenceText(visible(words)) };
};

function foldAnswered(view: ViewDraft, requestId: string) {
  const item = view.attention.get(requestId);
  if (!item) return;
  if (item.isLive) view.attention.delete(requestId);
  else view.attention.set(requestId, { ...item, isAnswered: true });
}

function pathOf(view: ViewDraft, agentId: string | undefined): readonly string[] {
  const path: string[] = [];
  for (let id = agentId; id !== undefined && id !== "" && !path.includes(id); id = view.agents.get(id)?.parentId) {
    path.unshift(id);
  }
  return path;
}

const titleOf = (text: string): string => clip(visibleLine(text), MAX_TITLE);

function parsedObject(text: string): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(text);
    return isObject(parsed) ? parsed : {};
  } catch {
    return {};
  }
}
