/** The context board of a session: whose it is, who has which hold on it, and that the session had it before its eyes. */
import type { Board } from "../context/board/board.ts";
import { openBoard } from "../context/board/open.ts";
import { boardKey } from "../context/board/place.ts";
import type { Redactor } from "../lib/redact.ts";
import { boardTools } from "../tools/builtin.ts";
import type { BoardPort } from "../tools/context-board.ts";
import type { Tool } from "../tools/tool.ts";
import { directBoard } from "./board-ports.ts";
import type { Draft } from "./draft.ts";
import type { ToolChoice } from "./tool-choice.ts";
import type { Workspace } from "./workspace.ts";

export interface SessionBoard {
  readonly board: Board;
  readonly tools: readonly Tool[];
  /** The main agent looks after the work at hand; the board is for agents that list its tool. */
  hidden(choice: ToolChoice): ToolChoice;
  /** As an agent of this name has it. */
  portFor(agentName: string): BoardPort;
  close(): Promise<void>;
}

export function sessionBoard(draft: Draft, how: { workspace: Workspace; redactor: Redactor }): SessionBoard {
  const { home, context, disk, stamp, log, listener } = draft;
  const { workspace, redactor } = how;
  const board = openBoard({
    ...{ disk, stamp, redactor, stateRoot: home },
    key: boardKey(context.cwd, { isTrusted: workspace.trust.state !== "none" }),
    onNotice: (message) => listener.warn("board", message),
  });
  // A session that is taken up again had it before its eyes already. Nobody waits for this.
  const exposing = log.events.length > 0 ? undefined : board.expose().catch(told);
  function told(error: unknown): void {
    listener.warn("board", error instanceof Error ? error.message : String(error));
  }
  return {
    board,
    tools: boardTools,
    hidden: (choice) => ({
      ...choice,
      hiddenFromMain: [...(choice.hiddenFromMain ?? []), ...boardTools.map(({ name }) => name)],
    }),
    portFor: (actor) => directBoard(board, { actor, sessionId: log.sessionId }),
    async close() {
      await exposing;
      await board.close();
    },
  };
}
