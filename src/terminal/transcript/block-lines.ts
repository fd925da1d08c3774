/** Blocks of a transcript as logical lines, written once. One function per kind of block. */
import { clip, plural } from "../../lib/text.ts";
import type { BinaryReference } from "../../protocol/event.ts";
import type { Block, OutputText, ToolBlock, ToolCard } from "../../view/blocks.ts";
import type { AgentView } from "../../view/view.ts";
import { safe, safeLine } from "../screen/safe.ts";
import type { Style } from "../screen/style.ts";
import { markdownLines } from "./markdown.ts";
import { fileLine } from "./result-files.ts";
import { markdownText, planLines, titleOf, withoutLabel, workerLines } from "./tool-cards.ts";

export interface LineOptions {
  readonly style: Style;
  /** Show whole texts, as in an overlay. */
  readonly isFull?: boolean;
  /** The session's folder, where files that tools returned are. */
  readonly folder?: string | undefined;
  /** Files that are shown as images, and need no line. */
  isShown?(file: BinaryReference): boolean;
  /** The agents of the session, for calls that started some. */
  agent?(id: string): AgentView | undefined;
}

const TITLE_CHARACTERS = 120;
const APPROVAL_CHARACTERS = 80;
/** Tools whose output is for the model; a person reads it with Ctrl+O. */
const QUIET: ReadonlySet<string> = new Set([
  "view",
  "grep",
  "glob",
  "task",
  "read_agent",
  "list_agents",
  "write_agent",
]);
/** Tools whose result is data, not text. */
const DATA: ReadonlySet<string> = new Set(["subagents_run", "subagents_read", "environment_detect"]);
const QUIET_LINES = 3;
const CARD_HEAD = 6;
const CARD_TAIL = 4;
const DIFF_LINES = 40;
const REASONING_CHARACTERS = 100;

export function blockLines(block: Block, options: LineOptions): string[] {
  const { style } = options;
  switch (block.kind) {
    case "user":
      return userLines(block, style);
    case "assistant":
      return [...(block.part === 0 || block.markdown.gap ? [""] : []), ...markdownLines(block.markdown, style)];
    case "reasoning":
      return reasoningLines(block.text, options);
    case "tool":
      // The block after it has its summary.
      return block.card.name === "task_complete" && block.card.state === "done" ? [] : toolLines(block, options);
    case "notice":
      return [
        block.level === "warning" ? style.yellow(`! ${safeLine(block.text)}`) : style.dim(safeLine(block.text)),
        ...(block.tip === undefined ? [] : [style.dim(`  ${safeLine(block.tip)}`)]),
      ];
    case "error":
      return [
        style.red(`✗ ${safeLine(block.text)}`),
        ...(block.advice === undefined ? [] : [`  ${safeLine(block.advice)}`]),
      ];
    case "approval":
      return [approvalLine(block, style)];
    case "answer":
      return [`? ${style.bold(safeLine(block.question))}`, `  ${safeLine(block.answer ?? "not answered")}`];
    case "plan":
      return [
        style.bold("Plan"),
        ...block.items.map(({ title, status }) => `  ${PLAN_MARKS[status]} ${safeLine(title)}`),
      ];
    case "compaction":
      return [style.dim(compactionText(block))];
    case "mode":
      return [style.dim(`mode: ${safeLine(block.to)}`)];
    case "model":
      return [style.dim(`model: ${safeLine(block.to)}${block.reasoningEffort ? ` (${block.reasoningEffort})` : ""}`)];
    case "agent":
      return agentLines(block, style);
    case "completion":
      return ["", style.green("✓ task complete"), ...markdownText(block.summary, style)];
    case "rewind":
      return [
        style.yellow(
          block.isRestored ? "the rewind was taken back" : `rewound ${plural(block.eventsRemoved, "event")}`,
        ),
      ];
  }
}

const PLAN_MARKS = { open: "☐", in_progress: "▶", done: "☑", blocked: "✗" } as const;

function userLines(block: Extract<Block, { kind: "user" }>, style: Style): string[] {
  const from = block.source === undefined ? "" : style.dim(` (${safeLine(block.source)})`);
  const [first = "", ...rest] = safe(block.text).split("\n");
  const files = block.attachments.map((name) => style.dim(`  + ${safeLine(name)}`));
  return [
    "",
    `${style.cyan("›")} ${style.bold(first)}${from}`,
    ...rest.map((line) => `  ${style.bold(line)}`),
    ...files,
  ];
}

function reasoningLines(text: string, { style, isFull }: LineOptions): string[] {
  if (isFull)
    return [
      style.dim("thinking:"),
      ...safe(text)
        .split("\n")
        .map((line) => style.dim(`  ${line}`)),
    ];
  const first = safeLine(text).trim();
  const isCut = first.length > REASONING_CHARACTERS;
  return ["", style.dim(`thought: ${isCut ? `${first.slice(0, REASONING_CHARACTERS)}… (Ctrl+O)` : first}`)];
}

function toolLines({ card }: ToolBlock, options: LineOptions): string[] {
  const { style } = options;
  const mark = card.state === "done" ? style.green("●") : style.red("●");
  const seconds = card.endedAt === undefined ? 0 : (card.endedAt - card.startedAt) / 1000;
  const time = seconds >= 2 ? style.dim(` ${seconds.toFixed(0)} s`) : "";
  const state = card.state === "done" ? "" : style.red(` ${card.state}`);
  const code = card.exitCode !== undefined && card.exitCode !== 0 ? style.red(` exit ${card.exitCode}`) : "";
  const hidden = card.isHidden ? style.dim(" (hidden from the model)") : "";
  const head = `${mark} ${clip(titleOf(card), TITLE_CHARACTERS)}${hidden}${state}${code}${time}`;
  const body = bodyLines(card, options);
  // The state says that it was interrupted; the error only repeats it.
  const hasError = card.error !== undefined && card.state !== "interrupted";
  const error = hasError ? [style.red(`  ${safeLine(card.error ?? "")}`)] : [];
  const files = card.images
    .filter((file) => !options.isShown?.(file))
    .map((file) => style.dim(`  ${fileLine(file, options.folder)}`));
  return ["", head, ...(card.state === "done" || card.exitCode !== undefined ? body : []), ...files, ...error];
}

function bodyLines(card: ToolCard, options: LineOptions): string[] {
  if (card.diff) return diffLines(card.diff, options);
  if (card.name === "exit_plan_mode") return planLines(card, options.style);
  const workers = card.name === "subagents_run" && !options.isFull ? workerLines(card, options) : [];
  return workers.length > 0 ? workers : outputLines(card, options);
}

function diffLines(diff: OutputText, { style, isFull }: LineOptions): string[] {
  const lines = whole(diff).filter((line) => !/^(---|\+\+\+|Index:|=====|diff )/.test(line));
  const shown = isFull ? lines : lines.slice(0, DIFF_LINES);
  const hidden = lines.length - shown.length + diff.hiddenLines;
  const coloured = shown.map((line) => {
    if (line.startsWith("+")) return `  ${style.green(line)}`;
    if (line.startsWith("-")) return `  ${style.red(line)}`;
    return style.dim(`  ${line}`);
  });
  return [...coloured, ...(hidden > 0 ? [style.dim(`  … ${plural(hidden, "more line")} (Ctrl+O)`)] : [])];
}

function outputLines(card: ToolCard, { style, isFull }: LineOptions): string[] {
  const { name, output, state } = card;
  const lines = whole({ ...output, head: withoutLabel(card, output.head) });
  if (lines.length === 0) return [];
  if (!isFull && state === "done" && DATA.has(name)) return [style.dim("  data for the model (Ctrl+O)")];
  if (!isFull && state === "done" && QUIET.has(name)) {
    if (name === "task") return [];
    // `view` numbers the empty line behind the last line feed, too.
    const isPastEnd = name === "view" && /^\d+\.\s*$/.test(lines.at(-1) ?? "");
    const all = lines.length + output.hiddenLines - (isPastEnd ? 1 : 0);
    if (all > QUIET_LINES) return [style.dim(`  ${plural(all, "line")} (Ctrl+O)`)];
  }
  if (isFull || (output.hiddenLines === 0 && lines.length <= CARD_HEAD + CARD_TAIL + 1)) {
    return lines.map((line) => style.dim(`  ${line}`));
  }
  const head = lines.slice(0, CARD_HEAD);
  const tail = lines.slice(-CARD_TAIL);
  const hidden = lines.length - head.length - tail.length + output.hiddenLines;
  return [...head, `… ${plural(hidden, "line")} (Ctrl+O)`, ...tail].map((line) => style.dim(`  ${line}`));
}

/** The exit code is told by the head of the card. */
const EXIT_LINE = /\n*<exited with exit code \d+>$/;

function whole({ head, tail }: OutputText): string[] {
  const text = safe(tail === "" ? head : `${head}\n${tail}`)
    .replace(/\n+$/, "")
    .replace(EXIT_LINE, "");
  return text === "" ? [] : text.split("\n");
}

function approvalLine(block: Extract<Block, { kind: "approval" }>, style: Style): string {
  const mark = block.decision === "approved" ? style.green("✓") : style.red("✗");
  const words = block.feedback === undefined ? "" : `: ${safeLine(block.feedback)}`;
  const who = block.askedBy === undefined ? "" : ` for ${safeLine(block.askedBy)}:`;
  const how = block.how === block.decision ? "" : ` (${safeLine(block.how)})`;
  return `${mark} ${style.dim(`${block.decision}${how}${who} ${clip(safeLine(block.title), APPROVAL_CHARACTERS)}${words}`)}`;
}

function compactionText(block: Extract<Block, { kind: "compaction" }>): string {
  if (!block.success) return `compaction failed: ${safeLine(block.error ?? "")}`;
  const { tokensBefore, tokensAfter } = block;
  if (tokensBefore === undefined || tokensAfter === undefined) return "conversation compacted";
  return `conversation compacted: ${tokensText(tokensBefore)} → ${tokensText(tokensAfter)} tokens`;
}

function agentLines(block: Extract<Block, { kind: "agent" }>, style: Style): string[] {
  const mark = block.status === "failed" || block.status === "cancelled" ? style.red("◆") : style.green("◆");
  const why = block.error ?? block.reason;
  const first = safeLine(block.error === undefined ? block.result : "").slice(0, 200);
  return [
    "",
    `${mark} ${safeLine(`${block.childId} (${block.name.replace(/ Agent$/, "")})`)} ${style.dim(`${block.status} · ${(block.durationMs / 1000).toFixed(0)} s${why === undefined ? "" : ` · ${safeLine(why)}`}`)}`,
    ...(first === "" ? [] : [style.dim(`  ${first}`)]),
  ];
}

export function tokensText(tokens: number): string {
  if (tokens < 1_000) return String(tokens);
  return tokens < 1_000_000
    ? `${(tokens / 1_000).toFixed(tokens < 10_000 ? 1 : 0)}k`
    : `${(tokens / 1_000_000).toFixed(1)}M`;
}

/** A failure of the terminal itself, or of a request to the session. */
export function errorLines(error: unknown, style: Style): string[] {
  const text = error instanceof Error ? error.message : String(error);
  return safe(text.replace(/^Request [\w.]+ failed with message: /, ""))
    .split("\n")
    .map((line, index) => (index === 0 ? style.red(`✗ ${line}`) : `  ${line}`));
}
