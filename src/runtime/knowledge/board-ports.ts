/** The board of a session in the hands of one agent: read, written at once, or kept as a draft. */
import type { Board, BoardRow, ChangeBy } from "../../context/board/board.ts";
import { boardItem, boardTable } from "../../context/board/table.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { BoardPort } from "../../tools/memory/board-port.ts";

/** For agents that look things up for others. */
export function readingBoard(board: Pick<Board, "list" | "read">): BoardPort {
  const refuse = (): never => {
    throw new TroupeError("usage", "You can read the board, not change it.");
  };
  return { ...reading(board), writes: "never", add: async () => refuse(), prune: async () => refuse() };
}

/** Each write is a change of its own, which a person can take back. */
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
