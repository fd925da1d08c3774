import * as z from "zod";
import type { Access } from "../../protocol/permission.ts";
import { defineTool, fixed, type InputOf, type ToolContext } from "../tool.ts";
import { ToolError } from "../tool-error.ts";
import type { BoardPort } from "./board-port.ts";
import description from "./context-board.md";
import readerDescription from "./context-board-reader.md";
import { asToolError } from "./store-memory.ts";

const input = fixed("context_board", () =>
  z.object({
    command: z.enum(["get_board", "get", "add", "prune"]).describe("What to do"),
    src: z.enum(["agent", "user"]).describe("For get: who wrote the item").optional(),
    name: z.string().max(200).describe("For get, add and prune: lower-case words joined by hyphens").optional(),
    description: z.string().max(2000).describe("For add: what it is about, in one line").optional(),
    context: z.string().max(40_000).describe("For add: the whole text").optional(),
  }),
);
type Input = InputOf<typeof input>;

export const contextBoard = defineTool({
  name: "context_board",
  description: description.trim(),
  input,
  exclusive: true,
  access: (given, context) => accessOf(given, context),
  async run(given, context) {
    const board = boardOf(context);
    return { content: await commands[given.command](given, board).catch(asToolError) };
  },
});

/** The read-only variant. */
export const contextBoardReader = defineTool({
  name: "context_board",
  description: readerDescription.trim(),
  input: fixed("context_board for readers", () =>
    input
      .build()
      .pick({ src: true, name: true })
      .extend({ command: z.enum(["get_board", "get"]) }),
  ),
  readOnly: true,
  async run(given, context) {
    return { content: await commands[given.command](given, boardOf(context)).catch(asToolError) };
  },
});

const commands: Record<Input["command"], (given: Input, board: BoardPort) => Promise<string>> = {
  async get_board(_, board) {
    return (await board.table()) ?? "The context board is empty.";
  },
  async get(given, board) {
    const { src, name } = required(given, ["src", "name"]);
    const text = await board.read(src, name);
    if (text === undefined) throw new ToolError(`There is no item ${src}/${name} on the board. List them: get_board.`);
    return text;
  },
  async add(given, board) {
    requireWriter(board);
    const { name, description: about, context: content } = required(given, ["name", "description", "context"]);
    const outcome = await board.add({ name, description: about, content });
    return { added: `Added ${name}.`, replaced: `Replaced ${name}.`, unchanged: `${name} already has this text.` }[
      outcome
    ];
  },
  async prune(given, board) {
    requireWriter(board);
    const { name } = required(given, ["name"]);
    if (await board.prune(name)) return `Pruned ${name}.`;
    throw new ToolError(`There is no item ${name} that an agent wrote. Items of the user cannot be pruned.`);
  },
};

/** Asks the user before a direct write. A consolidation can be undone as a whole and does not ask. */
function accessOf(given: Input, context: ToolContext): Access[] {
  if (context.board?.writes !== "direct" || (given.command !== "add" && given.command !== "prune")) return [];
  const { name = "", description: about = "", context: content = "" } = given;
  if (given.command === "prune") {
    return [{ kind: "memory", action: "store", subject: name, fact: `Remove ${name} from the context board.` }];
  }
  const fact = `${about}\n${content}`.trim();
  return [{ kind: "memory", action: "store", subject: name, fact, reason: "On the context board of this repository." }];
}

function boardOf({ board }: ToolContext): BoardPort {
  if (board) return board;
  throw new ToolError("There is no context board in this session.");
}

function requireWriter(board: BoardPort): void {
  if (board.writes === "never") throw new ToolError("You can read the board, not change it.");
}

function required<K extends keyof Input>(given: Input, fields: readonly K[]): { [F in K]: NonNullable<Input[F]> } {
  const missing = fields.filter((field) => given[field] === undefined || given[field] === "");
  if (missing.length > 0) throw new ToolError(`${given.command} needs ${missing.join(" and ")}.`);
  return given as { [F in K]: NonNullable<Input[F]> };
}
