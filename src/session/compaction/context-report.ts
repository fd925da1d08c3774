/** Breakdown of an agent's context for users: by kind, and the largest tool results. */
import { messageTokens } from "../../context/compact-tokens.ts";
import { clip, sanitiseLine } from "../../lib/text.ts";
import { estimateTokens } from "../../lib/tokens.ts";
import type { Message } from "../../protocol/message.ts";
import type { PromptAndTools, SessionModel } from "../session-model.ts";
import type { CompactionOptions } from "./compaction-options.ts";
import type { ContextMeter, ContextSize } from "./context-usage.ts";

export interface ContextReport {
  readonly modelName: string;
  readonly tokenLimit: number;
  readonly totalTokens: number;
  readonly freeTokens: number;
  /** The number of tokens from which the conversation is summarised. */
  readonly compactionThreshold: number;
  readonly bufferTokens: number;
  readonly parts: readonly ContextPart[];
  /** The ten largest results, largest first. */
  readonly largest: readonly { readonly label: string; readonly tokens: number }[];
}

interface ContextPart {
  readonly kind: "system" | "instructions" | "tools" | "mcp" | "summary" | "user" | "assistant" | "results";
  readonly label: string;
  readonly tokens: number;
}

const MAX_LARGEST = 10;

export function contextReport(context: {
  readonly model: SessionModel;
  readonly shown: Pick<PromptAndTools, "system" | "tools">;
  readonly messages: readonly Message[];
  readonly usage: ContextSize;
  readonly meter: ContextMeter;
  readonly options: CompactionOptions;
}): ContextReport {
  const { model, shown, messages, usage, meter, options } = context;
  const { tokenLimit } = usage;
  const counted = (part: ContextPart): ContextPart => ({ ...part, tokens: meter.corrected(model, part.tokens) });
  const parts = [...systemParts(shown.system), ...toolParts(shown.tools, meter), ...messageParts(messages)]
    .filter(({ tokens }) => tokens > 0)
    .map(counted);
  const totalTokens = parts.reduce((sum, { tokens }) => sum + tokens, 0);
  const compactionThreshold = Math.floor(tokenLimit * options.backgroundThreshold);
  const largest = largestResults(messages).map(({ label, tokens }) => ({
    label,
    tokens: meter.corrected(model, tokens),
  }));
  return {
    modelName: model.model,
    tokenLimit,
    totalTokens,
    compactionThreshold,
    parts,
    largest,
    freeTokens: Math.max(0, tokenLimit - totalTokens),
    bufferTokens: Math.max(0, Math.round(tokenLimit * (1 - options.bufferThreshold))),
  };
}

/** Formats the report for a terminal. */
export function contextText(report: ContextReport): string {
  const { modelName, tokenLimit, totalTokens, freeTokens, compactionThreshold } = report;
  const percent = (tokens: number): string => `${((100 * tokens) / tokenLimit).toFixed(1)} %`;
  const line = (label: string, tokens: number): string =>
    `  ${label.padEnd(28)} ${tokens.toLocaleString("en").padStart(9)}  ${percent(tokens).padStart(7)}`;
  return [
    `Context of ${sanitiseLine(modelName)}: about ${totalTokens.toLocaleString("en")} of ${tokenLimit.toLocaleString("en")} tokens (${percent(totalTokens)})`,
    ...report.parts.map(({ label, tokens }) => line(label, tokens)),
    line("free", freeTokens),
    `Compaction replaces ${countDropped(report).toLocaleString("en")} tokens of messages and results by a summary; all else stays.`,
    `Summarised by itself from ${compactionThreshold.toLocaleString("en")} tokens on; /compact does it now.`,
    ...(report.largest.length === 0 ? [] : ["Largest results:"]),
    ...report.largest.map(({ label, tokens }) => line(label, tokens)),
  ].join("\n");
}

/** The tokens that a compaction takes away. */
function countDropped({ parts }: ContextReport): number {
  const isMessage = ({ kind }: ContextPart): boolean =>
    kind === "user" || kind === "assistant" || kind === "results" || kind === "summary";
  return parts.filter(isMessage).reduce((sum, { tokens }) => sum + tokens, 0);
}

const INSTRUCTIONS = /<custom_instructions>[\s\S]*<\/custom_instructions>/;

function systemParts(system: string): ContextPart[] {
  const instructions = INSTRUCTIONS.exec(system)?.[0] ?? "";
  return [
    { kind: "system", label: "system prompt", tokens: estimateTokens(system) - estimateTokens(instructions) },
    { kind: "instructions", label: "instructions", tokens: estimateTokens(instructions) },
  ];
}

function toolParts(tools: PromptAndTools["tools"], meter: ContextMeter): ContextPart[] {
  const servers = new Map<string, number>();
  let others = 0;
  for (const tool of tools) {
    const tokens = meter.toolTokens(tool);
    if (tool.origin?.kind !== "mcp") others += tokens;
    else servers.set(tool.origin.serverName, (servers.get(tool.origin.serverName) ?? 0) + tokens);
  }
  const fromServers = [...servers].map(([name, tokens]): ContextPart => {
    return { kind: "mcp", label: `tools of ${clip(sanitiseLine(name), MAX_NAME)}`, tokens };
  });
  return [{ kind: "tools", label: "tools", tokens: others }, ...fromServers];
}

const MAX_NAME = 19;

function messageParts(messages: readonly Message[]): ContextPart[] {
  const sums = { summary: 0, user: 0, assistant: 0, results: 0 };
  for (const [index, message] of messages.entries()) {
    const isSummary = index === 0 && message.role === "user" && message.content.endsWith("</summary>");
    const kind = isSummary ? "summary" : message.role === "tool" ? "results" : message.role;
    sums[kind] += messageTokens(message);
  }
  return [
    { kind: "summary", label: "summary of earlier messages", tokens: sums.summary },
    { kind: "user", label: "your messages", tokens: sums.user },
    { kind: "assistant", label: "replies and calls", tokens: sums.assistant },
    { kind: "results", label: "results of tools", tokens: sums.results },
  ];
}

function largestResults(messages: readonly Message[]): { label: string; tokens: number }[] {
  const calls = new Map<string, string>();
  const found: { label: string; tokens: number }[] = [];
  for (const message of messages) {
    if (message.role === "assistant") {
      for (const { toolCallId, name, arguments: given } of message.calls) {
        calls.set(toolCallId, clip(sanitiseLine(`${name} ${firstText(given)}`).trim(), MAX_LABEL));
      }
    } else if (message.role === "tool") {
      found.push({ label: calls.get(message.toolCallId) ?? "a call", tokens: messageTokens(message) });
    }
  }
  return found.sort((a, b) => b.tokens - a.tokens).slice(0, MAX_LARGEST);
}

const MAX_LABEL = 28;

/** Returns the first text argument, which distinguishes calls of the same tool. */
function firstText(given: unknown): string {
  if (typeof given !== "object" || given === null) return "";
  const text = Object.values(given).find((value) => typeof value === "string");
  return typeof text === "string" ? clip(text, MAX_LABEL) : "";
}
