/** The context board of a session: which board it uses, which access each agent has, and counting its use. */
import { BOARD_AGENT } from "../../agents/agent.ts";
import type { Board } from "../../context/board/board.ts";
import { boardKey } from "../../context/board/board-key.ts";
import { EvidenceFold, type SessionEvidence } from "../../context/board/evidence.ts";
import { openBoard } from "../../context/board/open.ts";
import type { Redactor } from "../../lib/redact/redact.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import { eventsOf } from "../../session/event-log.ts";
import type { Outcome, SessionOptions } from "../../session/session.ts";
import type { AnswerEnd } from "../../tasks/ports.ts";
import { boardTools } from "../../tools/builtin.ts";
import type { BoardPort } from "../../tools/memory/board-port.ts";
import type { Tool } from "../../tools/tool.ts";
import { type AgentWorkspace, agentSystem } from "../agents/agent-pool-setup.ts";
import type { MainAgent } from "../setup/main-agent.ts";
import { promptOf } from "../setup/session-prompt.ts";
import type { SessionSetup } from "../setup/session-setup.ts";
import type { ToolChoice } from "../setup/tool-choice.ts";
import { directBoard, readingBoard } from "./board-ports.ts";
import { beginConsolidation, type Consolidation, type ConsolidationReport, reportText } from "./consolidation.ts";

export interface SessionBoard {
  readonly board: Board;
  readonly tools: readonly Tool[];
  /** Hides the board's tools from the main agent, so that only agents that list them have them. */
  hidden(choice: ToolChoice): ToolChoice;
  /** Board access of the main agent. */
  readonly mainPort: BoardPort;
  /** Set if the session consolidates another one. */
  readonly consolidating?: {
    readonly system: string;
    readonly replaceOutcome: NonNullable<SessionOptions["replaceOutcome"]>;
  };
  /** Adds board access to the workspace of a subagent. */
  equip(workspace: AgentWorkspace, agentName: string): Promise<AgentWorkspace>;
  /** Read-only access. */
  readonly readingPort: BoardPort;
  close(): Promise<void>;
}

interface BoardSession {
  readonly mainAgent: MainAgent;
  readonly redactor: Redactor;
}

export async function sessionBoard(draft: SessionSetup, how: BoardSession): Promise<SessionBoard> {
  const { stateRoot, context, disk, stamp, log, channel, request } = draft;
  const { workspace, selection } = how.mainAgent;
  const { redactor } = how;
  const board = openBoard({
    disk,
    stamp,
    redactor,
    stateRoot,
    key: boardKey(context.cwd, { isTrusted: workspace.trust.state !== "none" }),
    onNotice: (message) => channel.warn("board", message),
  });
  const begin = (evidence: SessionEvidence): Promise<Consolidation> =>
    beginConsolidation({ board, evidence, redactor, stamp, by: { actor: BOARD_AGENT }, emit: channel.emit });
  const { detachedFrom } = request.agents ?? {};
  // Consolidating does not count as use, and a resumed session was counted before.
  if (log.events.length === 0 && detachedFrom === undefined) {
    await board.expose().catch((error: Error) => channel.warn("board", error.message));
  }
  const leader =
    selection.definition?.name === BOARD_AGENT && detachedFrom !== undefined
      ? await begin(await evidenceIn(draft.store.events(detachedFrom), detachedFrom))
      : undefined;
  const direct = (actor: string): BoardPort => directBoard(board, { actor, sessionId: log.sessionId });
  return {
    board,
    tools: boardTools,
    hidden: (choice) => ({
      ...choice,
      onlyListed: [...(choice.onlyListed ?? []), ...boardTools.map(({ name }) => name)],
    }),
    readingPort: readingBoard(board),
    mainPort: leader?.port ?? direct(selection.definition?.name ?? "main"),
    ...(leader && {
      consolidating: {
        system: systemOf(draft, how.mainAgent, leader),
        replaceOutcome: (outcome) => closeConsolidation(leader, outcome),
      },
    }),
    async equip(workspace, agentName) {
      if (agentName !== BOARD_AGENT) return { ...workspace, ports: { ...workspace.ports, board: direct(agentName) } };
      const { port, prompt, conclude } = await begin(
        await evidenceIn(channel.session ? eventsOf(channel.session) : [], log.sessionId),
      );
      return {
        ...workspace,
        system: prompt,
        ports: { ...workspace.ports, board: port },
        replaceEnd: async (end) => endOf(await conclude(endWord(end)), end),
      };
    },
    close: () => board.close(),
  };
}

type EventSource = Iterable<SessionEvent> | AsyncIterable<SessionEvent>;

async function evidenceIn(events: EventSource, sessionId: string): Promise<SessionEvidence> {
  const fold = new EvidenceFold();
  for await (const event of events) fold.apply(event);
  return fold.evidence(sessionId);
}

/** Returns the agent's own prompt and the consolidation prompt, as when it runs as a subagent. */
function systemOf(draft: SessionSetup, { selection, workspace }: MainAgent, { prompt }: Consolidation): string {
  if (!selection.definition) return prompt;
  const { cwd } = draft.context;
  const own = agentSystem({
    definition: selection.definition,
    workspace,
    prompt: promptOf(draft),
    tools: boardTools,
    cwd,
  });
  return `${own}\n\n${prompt}`;
}

const isApplied = ({ outcome }: ConsolidationReport): boolean => outcome === "applied" || outcome === "unchanged";

/** Returns the change of the board as the outcome, in place of the agent's text. */
async function closeConsolidation({ conclude }: Consolidation, outcome: Outcome): Promise<Outcome> {
  const report = await conclude(outcome.kind === "done" ? "done" : { reason: reasonOf(outcome) });
  if (outcome.kind !== "done") return outcome;
  const answer = reportText(report);
  return isApplied(report) ? { kind: "done", answer } : { kind: "failed", error: new Error(answer) };
}

function endOf(report: ConsolidationReport, end: AnswerEnd): AnswerEnd {
  if (endWord(end) !== "done") return end;
  const response = reportText(report);
  return isApplied(report) ? { kind: "answered", response } : { kind: "failed", error: response, response };
}

/** An empty answer counts as done, because the calls are the agent's output. */
function endWord(end: AnswerEnd): "done" | { reason: string } {
  switch (end.kind) {
    case "answered":
    case "empty":
      return "done";
    case "limit":
      return { reason: end.message };
    case "failed":
    case "invalid_output":
      return { reason: end.error };
    case "aborted":
      return { reason: "it was stopped" };
  }
}

function reasonOf(outcome: Exclude<Outcome, { kind: "done" }>): string {
  switch (outcome.kind) {
    case "aborted":
      return "it was stopped";
    case "limit":
      return outcome.reached.message;
    default:
      return outcome.error.message;
  }
}
