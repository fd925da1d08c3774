import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Board, BoardKey } from "../../src/context/board/board.ts";
import { type OpenBoardOptions, openBoard } from "../../src/context/board/open.ts";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { createRedactor } from "../../src/lib/redact/redact.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";

export const KEY: BoardKey = { repository: "example.com/house/garden", branch: "main" };
export const PERSON = { action: "add", actor: "person" } as const;
export const AGENT = { action: "add", actor: "rem-agent" } as const;

export const text = (name: string, more: { description?: string; content?: string } = {}) => ({
  name,
  description: `About ${name}`,
  content: `All about ${name}.`,
  ...more,
});

export const optionsFor = (stateRoot: string, more: Partial<OpenBoardOptions> = {}): OpenBoardOptions => ({
  stateRoot,
  key: KEY,
  disk: nodeDisk,
  stamp: systemStamp,
  redactor: createRedactor({ values: [] }),
  ...more,
});

/** A board in a folder of its own, for as long as the work takes. */
export async function onBoard(work: (board: Board, home: string) => Promise<void>): Promise<void> {
  await using folder = await tempFolder();
  const home = join(folder.path, "home");
  mkdirSync(home);
  const board = openBoard(optionsFor(home));
  try {
    await work(board, home);
  } finally {
    await board.close();
  }
}

/** So many rows of an agent. */
export async function fill(board: Board, count: number): Promise<void> {
  for (let index = 1; index <= count; index++) await board.add("agent", text(`item-${index}`), AGENT);
}
