import * as z from "zod";
import { defined } from "../../lib/defined.ts";
import type { Json } from "../../lib/json.ts";
import { clip, nearest } from "../../lib/text.ts";
import { defineTool, fixed, type Tool, toolMaker } from "../tool.ts";
import { ToolError } from "../tool-error.ts";
import {
  AGENT_TIMEOUT_MS,
  answerOf,
  changesText,
  line,
  namesOffered,
  normaliseName,
  tasksOf,
  textUpTo,
} from "./agent-text.ts";
import introduction from "./task.md";
import type { TaskReport, TaskRequest, TaskStart } from "./task-port.ts";

/** The agents the model can currently choose. `id` is an alternative name (the name of its file). */
export interface AgentChoices {
  agents(): readonly AgentChoice[];
  /** Finds an agent by the source's own rules. Without it, names are compared by `normalised`. */
  find?(wanted: string): Pick<AgentChoice, "name"> | undefined;
}

interface AgentChoice {
  readonly name: string;
  readonly description: string;
  readonly id?: string;
}

const MAX_PROMPT_CHARACTERS = 200_000;
const MAX_SCHEMA_CHARACTERS = 20_000;
const MAX_AGENTS_LISTED = 40;
/** Space for the first few agents, and additional space for each further one. */
const FEW_AGENTS = 7;
const FEW_CHARACTERS = 490;
const CHARACTERS_PER_AGENT = 120;
const MAX_LIST_CHARACTERS = 3800;

/** Any object, described in fewer words than the derived schema. */
const SCHEMA = { description: "JSON schema of its answer", properties: undefined, additionalProperties: undefined };

const input = fixed("task", () =>
  z.object({
    description: textUpTo(2000).describe("Aim, in 3-5 words"),
    prompt: textUpTo(MAX_PROMPT_CHARACTERS).describe("Complete instructions"),
    agent_type: textUpTo(200).describe("Type of agent"),
    name: textUpTo(200).describe("Base of its id"),
    mode: z.enum(["sync", "background"]).optional().describe("Wait or not"),
    model: textUpTo(200).optional().describe("If not default"),
    reasoning_effort: textUpTo(50).optional().describe("If not default"),
    output_schema: z.looseObject({}).meta(SCHEMA).optional(),
    isolation: z.enum(["worktree"]).optional().describe("Own worktree"),
  }),
);

const traits = { name: "task", managesAgents: true, forReadOnlyAgents: true } as const;

/** Returns the tool. Its schema lists the current agents, so it is rebuilt when they change. */
export const taskTool = toolMaker(traits, make);

function make(source: AgentChoices): Tool {
  const shown = source.agents().slice(0, MAX_AGENTS_LISTED);
  return defineTool({
    ...traits,
    description: describe(shown, source.agents().length - shown.length),
    input,
    ...(shown.length > 0 && { shown: { agent_type: { enum: shown.map(({ name }) => name) } } }),
    timeoutMs: AGENT_TIMEOUT_MS,
    access: ({ agent_type, description }) => ({
      kind: "agent",
      agentName: agentMeant(agent_type, source),
      intention: line(description),
    }),
    async run(input, context) {
      const { mode = "sync", output_schema } = input;
      const request: TaskRequest = {
        description: line(input.description),
        prompt: input.prompt,
        agentType: agentMeant(input.agent_type, source),
        name: input.name.trim(),
        mode,
        toolCallId: context.toolCallId,
        ...defined({ model: input.model, reasoningEffort: input.reasoning_effort }),
        ...(output_schema !== undefined && { outputSchema: checkedSchema(output_schema) }),
        ...defined({ isolation: input.isolation }),
      };
      return { content: textOf(await tasksOf(context).start(request, context.signal), mode) };
    },
  });
}

/** Returns the tool that continues a call of `task` which an earlier process began: it waits for the agent. */
export function rejoiningTool(id: string): Tool {
  return {
    ...traits,
    ...{ description: "", parameters: {}, readOnly: false, exclusive: false, endsAnswer: false },
    timeoutMs: AGENT_TIMEOUT_MS,
    bind: () => ({
      access: async () => [],
      run: async (context) => {
        const { toolCallId, signal } = context;
        return { content: textOf(await tasksOf(context).rejoin(id, toolCallId, signal), "sync") };
      },
    }),
  };
}

const textOf = (start: TaskStart, mode: TaskRequest["mode"]): string =>
  start.kind === "ended" ? endedText(start.report) : backgroundText(start, mode);

function describe(agents: readonly AgentChoice[], hidden: number): string {
  if (agents.length === 0) return introduction.trim();
  const beyond = Math.max(0, agents.length - FEW_AGENTS);
  const room = Math.min(MAX_LIST_CHARACTERS, FEW_CHARACTERS + beyond * CHARACTERS_PER_AGENT);
  const lines = agents.map(({ name, description }) => `- ${line(name)}: ${line(description, 1000)}`);
  const share = fairShare(lines, room - lines.length);
  const listed = lines.map((entry) => clippedAtWord(entry, share));
  if (hidden > 0) listed.push(`- and ${hidden} more that the user may name`);
  return `${introduction.trim()}\n\n${listed.join("\n")}`;
}

/** Returns the maximum line length at which all lines fit. Space that short lines do not need goes to long ones. */
function fairShare(lines: readonly string[], room: number): number {
  let left = room;
  const lengths = lines.map(({ length }) => length).sort((a, b) => a - b);
  for (const [index, length] of lengths.entries()) {
    const share = Math.floor(left / (lengths.length - index));
    if (length > share) return share;
    left -= length;
  }
  return room;
}

function clippedAtWord(text: string, maxCharacters: number): string {
  if (text.length <= maxCharacters) return text;
  return clip(text, maxCharacters, "").replace(/[\s,;:.-]+\S*$/, "…");
}

function agentMeant(wanted: string, source: AgentChoices): string {
  const agents = source.agents();
  const found = source.find === undefined ? alike(wanted, agents) : source.find(wanted);
  if (found !== undefined) return found.name;
  const names = agents.map(({ name }) => name);
  const close = nearest(wanted, names);
  const advice = close === undefined ? "" : ` Did you mean ${JSON.stringify(close)}?`;
  throw new ToolError(
    `There is no agent "${line(wanted)}".${advice} Valid values of agent_type: ${namesOffered(names) || "none"}.`,
  );
}

function alike(wanted: string, agents: readonly AgentChoice[]): AgentChoice | undefined {
  const exact = agents.find(({ name }) => name === wanted) ?? agents.find(({ id }) => id === wanted);
  const key = normaliseName(wanted);
  return exact ?? agents.find(({ name, id = name }) => normaliseName(name) === key || normaliseName(id) === key);
}

function checkedSchema(schema: Record<string, unknown>): Record<string, Json> {
  const text = JSON.stringify(schema);
  if (text.length > MAX_SCHEMA_CHARACTERS) {
    throw new ToolError(`output_schema has ${text.length} characters; ${MAX_SCHEMA_CHARACTERS} is the limit.`);
  }
  if (/"(?:__proto__|constructor|prototype)":/.test(text)) {
    throw new ToolError("output_schema must not name __proto__, constructor or prototype.");
  }
  return JSON.parse(text);
}

/** Adds that the agent accepts more work when it is idle after its answer. */
function endedText(report: TaskReport): string {
  const { status, id, changes } = report.task;
  const where = changes === undefined ? "" : `\n\n${changesText(changes)}`;
  const more =
    status === "idle" ? `\n\nAgent ${JSON.stringify(line(id))} is idle: write_agent sends it more work.` : "";
  return `${answerOf(report)}${where}${more}`;
}

/** The first three sentences are part of the wire contract. */
function backgroundText(start: Extract<TaskStart, { kind: "background" }>, asked: TaskRequest["mode"]): string {
  const text =
    `Agent started in background with agent_id: ${line(start.id)}. You'll be notified when it completes. ` +
    "Tell the user you're waiting and end your response, or continue unrelated work until notified.";
  const queued = start.queued ? " All slots are in use: it is queued and starts when one is free." : "";
  const moved = asked === "sync" ? " It was moved to the background while you waited; its answer is not here yet." : "";
  return `${text}${queued}${moved}`;
}
