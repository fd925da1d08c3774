/** Folds what a person should know into blocks: notices, errors, compaction, changes of mode and model. */
import { plural } from "../lib/text.ts";
import type { EventData } from "../protocol/event.ts";
import type { FoldStep } from "./draft.ts";
import { setResting } from "./fold-messages.ts";
import { clip } from "./own-text.ts";
import { pushBlock } from "./push-block.ts";

const MAX_TEXT = 8_000;
const MAX_SUMMARY = 16_000;

export function foldNotice(step: FoldStep) {
  const { event, agent, at } = step;
  switch (event.type) {
    case "session.info":
      return notice(step, "info", event.data.infoType, event.data.message, event.data.tip);
    case "session.warning":
      return notice(step, "warning", event.data.warningType, event.data.message);
    case "session.error":
      return error(step, event.data);
    case "troupe.limit_reached":
      return limitReached(step, event.data);
    case "abort":
      return notice(step, "info", "abort", abortText(event.data.reason));
    case "troupe.log_damage":
      return notice(step, "warning", "log_damage", damageText(event.data));
    case "system.notification":
      return notification(step, event.data);
    case "troupe.inbox_entry":
      return inboxEntry(step, event.data);
    case "session.compaction_start":
      if (agent) agent.compactingSince = at;
      return;
    case "session.compaction_complete":
      return compaction(step, event.data);
    case "session.context_cleared":
      return notice(step, "info", "context_cleared", clearedText(event.data));
    case "session.truncation":
      return notice(step, "warning", "truncation", truncationText(event.data));
    case "session.mode_changed":
      return pushBlock(step, { kind: "mode", from: event.data.previousMode, to: event.data.newMode });
    case "session.permissions_changed":
      return notice(step, "info", "permissions", `Permissions: ${event.data.previousMode} → ${event.data.mode}`);
    case "session.model_change":
      return modelChange(step, event.data);
    case "session.task_complete":
      return pushBlock(step, { kind: "completion", summary: clip(event.data.summary ?? "", MAX_SUMMARY) });
    case "skill.invoked":
      return notice(step, "info", "skill", `Skill ${event.data.name}`);
    case "troupe.rewound": {
      const { eventsRemoved, restores } = event.data;
      return pushBlock(step, { kind: "rewind", eventsRemoved, isRestored: restores !== undefined });
    }
    default:
  }
}

function notice(step: FoldStep, level: "info" | "warning", topic: string, text: string, tip?: string) {
  pushBlock(step, { kind: "notice", level, topic, text: clip(text, MAX_TEXT), tip });
}

function error(step: FoldStep, data: EventData<"session.error">) {
  const { errorType, message } = data;
  pushBlock(step, { kind: "error", topic: errorType, text: clip(message, MAX_TEXT), advice: adviceFor(data) });
  if (step.agent === step.view.main) setResting(step);
}

/** Errors of the runtime end with what to do, where the runtime knows; this adds what a person can do here. */
function adviceFor({ errorType, remediation, statusCode, eligibleForAutoSwitch }: EventData<"session.error">) {
  if (remediation === "sign_in") return "Sign in again.";
  if (remediation === "switch_account") return "Use another account.";
  if (statusCode === 401 || statusCode === 403 || /auth/.test(errorType)) {
    return "Check the key of the provider, or choose another model with /model.";
  }
  if (statusCode === 429 || /rate_limit|quota/.test(errorType)) {
    return "Wait a little, run fewer agents at once, or choose another model with /model.";
  }
  if (/context/.test(errorType)) return "Run /compact, or choose a model with a larger context window with /model.";
  if (eligibleForAutoSwitch) return "Choose another model with /model, then send the message again.";
  return "Send the message again to retry.";
}

function limitReached(step: FoldStep, { limit, message }: EventData<"troupe.limit_reached">) {
  const advice = "Raise the limit, or send a message to continue.";
  pushBlock(step, { kind: "error", topic: `limit_${limit}`, text: message, advice });
}

function damageText({ damage }: EventData<"troupe.log_damage">): string {
  const lost = damage.map(({ line, message }) => `line ${line}: ${message}`).join("; ");
  return `The session's log was damaged (${plural(damage.length, "place")}): ${lost}`;
}

function inboxEntry(step: FoldStep, { senderName, summary }: EventData<"troupe.inbox_entry">) {
  const text = clip(`${senderName}: ${summary}`, MAX_TEXT);
  const block = { kind: "notice", level: "info", topic: "inbox", text, tip: undefined } as const;
  pushBlock(step, block, { agent: step.view.main });
}

const clearedText = ({ messagesCleared }: EventData<"session.context_cleared">): string =>
  `The context was cleared (${plural(messagesCleared, "message")}).`;

const truncationText = ({ messagesRemovedDuringTruncation: count }: EventData<"session.truncation">): string =>
  `A request left out ${plural(count, "message")} to fit the context window.`;

function modelChange(step: FoldStep, data: EventData<"session.model_change">) {
  const { previousModel: from, newModel: to, reasoningEffort, cause, source } = data;
  if (source === "startup" && from === undefined) return;
  pushBlock(step, { kind: "model", from, to, reasoningEffort, cause });
}

const abortText = (reason: EventData<"abort">["reason"]): string =>
  reason === "autopilot_credit_limit" ? "Stopped: autopilot used up its credits." : "Interrupted.";

/** Ends of agents have a block of their own. */
function notification(step: FoldStep, { kind, content }: EventData<"system.notification">) {
  if (kind.type === "agent_completed" || kind.type === "agent_idle" || kind.type === "new_inbox_message") return;
  const text =
    kind.type === "shell_completed"
      ? `Shell ${kind.shellId} ended${kind.exitCode === undefined ? "" : ` with exit code ${kind.exitCode}`}`
      : kind.type === "shell_detached_completed"
        ? `Shell ${kind.shellId} ended`
        : kind.type === "instruction_discovered"
          ? `Instructions found: ${kind.sourcePath}`
          : content;
  notice(step, "info", kind.type, text);
}

function compaction(step: FoldStep, data: EventData<"session.compaction_complete">) {
  const { agent } = step;
  if (!agent) return;
  agent.compactingSince = undefined;
  const { success, trigger, preCompactionTokens, postCompactionTokens, messagesRemoved, summaryContent = "" } = data;
  pushBlock(step, {
    kind: "compaction",
    success,
    trigger,
    tokensBefore: preCompactionTokens,
    tokensAfter: postCompactionTokens,
    messagesRemoved,
    summary: clip(summaryContent, MAX_SUMMARY),
    error: data.error,
  });
}
