import * as z from "zod";
import { quoted } from "../../lib/quoting.ts";
import { clip } from "../../lib/text.ts";
import { defineTool, fixed } from "../tool.ts";
import {
  age,
  agentId,
  changesText,
  cost,
  endSentence,
  idMeant,
  labelledAnswers,
  line,
  namingAgents,
  reasonOf,
  remains,
  seconds,
  tasksOf,
} from "./agent-text.ts";
import description from "./read-agent.md";
import type { McpTaskProgress, TaskReport, TaskView } from "./task-port.ts";

const DEFAULT_WAIT_SECONDS = 30;
const MAX_WAIT_SECONDS = 600;
const TIMEOUT_MS = (MAX_WAIT_SECONDS + 10) * 1000;
const MAX_ERROR_CHARACTERS = 4000;

export const readAgent = defineTool({
  name: "read_agent",
  companionOf: "task",
  managesAgents: true,
  description,
  input: fixed("read_agent", () =>
    z.object({
      agent_id: agentId().describe("Its id"),
      wait: z.boolean().optional().describe("For its next answer"),
      timeout: z.number().refine(isNatural).optional().describe(`Seconds, ${DEFAULT_WAIT_SECONDS} if omitted`),
      since_turn: z.number().refine(isNatural).optional().describe("First turn, from 0"),
    }),
  ),
  readOnly: true,
  timeoutMs: TIMEOUT_MS,
  async run({ agent_id, wait = false, timeout, since_turn }, context) {
    const tasks = tasksOf(context);
    const id = idMeant(agent_id, tasks);
    const waitSeconds = wait ? Math.min(timeout ?? DEFAULT_WAIT_SECONDS, MAX_WAIT_SECONDS) : 0;
    // "From turn n", counted from 0, equals "after turn n", counted from 1.
    const since = since_turn === undefined ? {} : { sinceAnswer: since_turn };
    const { signal, toolCallId } = context;
    const read = tasks.read({ id, wait, timeoutMs: waitSeconds * 1000, ...since, toolCallId }, signal);
    const report = await namingAgents(id, tasks, read);
    return { content: reportText(report, { waitedSeconds: waitSeconds, sinceAnswer: since_turn }) };
  },
});

function isNatural(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

interface Asked {
  readonly waitedSeconds: number;
  readonly sinceAnswer: number | undefined;
}

function reportText(report: TaskReport, asked: Asked): string {
  const { task } = report;
  switch (task.status) {
    case "queued":
    case "running":
      return workingText(report, asked);
    case "idle":
      return `Agent is idle (waiting for messages). ${header(task)}${remark(report)}\n\n${answersText(report, asked)}`;
    default:
      return endedText(report, asked);
  }
}

/** The wording and order of the header are part of the wire contract. */
export function header(task: TaskView): string {
  return [
    `agent_id: ${line(task.id)}`,
    `agent_type: ${line(task.agentType)}`,
    `status: ${task.status}`,
    `description: ${line(task.description)}`,
    `elapsed: ${seconds(task.elapsedMs)}`,
    `total_turns: ${task.turns}`,
  ].join(", ");
}

function endedText(report: TaskReport, asked: Asked): string {
  const { task } = report;
  const reason = reasonOf(task);
  const why = reason === "finished" ? "" : `, reason: ${reason}`;
  const head = `Agent ${endSentence(reason)} ${header(task)}, duration: ${seconds(task.activeMs)}${why}`;
  if (reason === "finished") return `${head}${remark(report)}\n\n${answersText(report, asked)}`;
  const earlier = report.answers.slice(0, -1);
  const before = earlier.length === 0 ? "" : `\n\n${labelledAnswers(earlier)}`;
  return `${head}${remark(report)}${before}${remains(report)}`;
}

/** Returns a single final answer without a label, as a waiting caller would receive it. Several turns are labelled. */
function answersText({ task, answers }: TaskReport, { sinceAnswer }: Asked): string {
  const [first] = answers;
  if (first === undefined)
    return sinceAnswer === undefined ? "No answer yet." : `No answer from turn ${sinceAnswer} on.`;
  const alone = task.status === "completed" && answers.length === 1 && task.turns <= 1;
  return alone ? quoted(first.response) : labelledAnswers(answers);
}

function workingText(report: TaskReport, asked: Asked): string {
  const { task, answers } = report;
  const waited = asked.waitedSeconds > 0 ? ` after waiting ${asked.waitedSeconds}s` : "";
  const state = task.status === "queued" ? "queued" : "still running";
  const facts = [
    `tool_calls: ${task.toolCalls}`,
    `tokens: ${task.tokens}`,
    `cost: ${cost(task.costUsd)}`,
    ...(task.model === undefined ? [] : [`model: ${line(task.model)}`]),
    ...(task.intent === undefined ? [] : [`intent: ${line(task.intent)}`]),
    ...(task.mcpTask === undefined ? [] : [mcpText(task.mcpTask)]),
    ...(task.lastActivity === undefined
      ? []
      : [`last activity: ${line(task.lastActivity)} (${age(task.quietMs)} ago)`]),
    ...(task.waitingFor === undefined ? [] : [`waiting for: ${line(task.waitingFor)}`]),
  ].join(", ");
  const soFar = answers.length === 0 ? "" : `\n\n${labelledAnswers(answers)}`;
  const advice = task.mode === "background" ? "\nYou will be notified when it ends; no need to ask again." : "";
  return `Agent is ${state}${waited}. ${header(task)}, ${facts}${remark(report)}${advice}${soFar}`;
}

function mcpText({ status, progress, total, warning }: McpTaskProgress): string {
  const count = progress === undefined ? "" : ` ${progress}${total === undefined ? "" : `/${total}`}`;
  return `server: ${line(status)}${count}${warning === undefined ? "" : ` (${line(warning)})`}`;
}

/** Returns further facts for the reader: the error, unread messages and the worktree. */
function remark({ task, error }: TaskReport): string {
  return [
    ...(error === undefined ? [] : [`Error: ${clip(quoted(error), MAX_ERROR_CHARACTERS)}`]),
    ...(task.unreadMessages > 0 ? [`${task.unreadMessages} sent to it not read yet`] : []),
    ...(task.changes === undefined ? [] : [changesText(task.changes)]),
    ...(task.worktree === undefined ? [] : [`Its worktree: ${line(task.worktree, 1000)}`]),
  ]
    .map((text) => `\n${text}`)
    .join("");
}
