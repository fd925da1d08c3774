/** One of several processes on the same board: reads a shared row ten times, and writes over a row of its own as often. */
import { openBoard } from "../../src/context/board/open.ts";
import { AGENT, optionsFor, text } from "./stage.ts";

const [, , home = "", name = ""] = process.argv;
const board = openBoard(optionsFor(home));
for (let round = 0; round < 10; round++) {
  await board.read("agent", "shared");
  await board.add("agent", text(name, { content: `Round ${round}.` }), AGENT);
}
await board.close();
