/** Board access for one agent: read-only or direct writes. `consolidation.ts` adds drafts. */
import type { Board, BoardRow, ChangeBy } from "../../context/board/board.ts";
import { boardItem, boardTable } from "../../context/board/table.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { BoardPort } from "../../tools/memory/board-port.ts";

/** Returns read-only access, for agents that look things up. */
export function readingBoard(board: Pick<Board, "list" | "read">): BoardPort {
  const refuse = (): never => {
    throw new TroupeError("usage", "You can read the board, not change it.");
  };
  return { ...reading(board), writes: "never", add: async () => refuse(), prune: async () => refuse() };
}

/** Returns write access. Each write is a separate change that the user can undo. */
export function directBoard(board: Board, by: Omit<ChangeBy, "action">): BoardPort {
  return {
    ...reading(board),
    writes: "direct",
    add: (text) => board.add("agent", text, { ...by, action: "add" }),
    prune: async (name) => (await board.prune("agent", name, { ...by, action: "prune" })) !== undefined,
  };
}

function reading(board: Pick<Board, "list" | "read">): Pick<BoardPort, "table" | "read"> {
  return {
    async table() {
      const entries = await board.list();
      return entries.length === 0 ? undefined : boardTable(entries);
    },
    async read(src, name) {
      const row: BoardRow | undefined = await board.read(src, name);
      return row && boardItem(row);
    },
  };
}
