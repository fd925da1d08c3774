import { loadSettings } from "../../catalog/settings/settings.ts";
import { readTrust } from "../../catalog/trust.ts";
import type { Board, BoardKey } from "../../context/board/board.ts";
import { boardKey } from "../../context/board/board-key.ts";
import { listBoards, openBoard } from "../../context/board/open.ts";
import { workingDirectory } from "../../context/working-directory.ts";
import { defined } from "../../lib/defined.ts";
import { nodeDisk } from "../../lib/node/disk.ts";
import { createRedactor } from "../../lib/redact/redact.ts";
import { secretValuesOf } from "../../lib/redact/redact-values.ts";
import { systemStamp } from "../../lib/stamp.ts";
import { stateRoot } from "../home.ts";

/** The data of `troupe board`: the board that a session in this folder would have, or another one by name. */
export interface BoardAdministration {
  readonly board: Board;
  boards(): ReturnType<typeof listBoards>;
  /** Returns the board that this folder had before it was trusted, if it still has entries. */
  former(): Promise<BoardKey | undefined>;
  close(): Promise<void>;
}

export function openBoardAdministration(options: {
  cwd: string;
  environment: Readonly<Record<string, string | undefined>>;
  trustFolder?: boolean;
  key?: Partial<BoardKey>;
  onNotice(message: string): void;
}): BoardAdministration {
  const { cwd, environment, trustFolder = false, onNotice } = options;
  const stateFolder = stateRoot(environment);
  const database = { stateRoot: stateFolder, disk: nodeDisk, stamp: systemStamp, onNotice };
  const board = openBoard({
    ...database,
    redactor: createRedactor({ values: secretValuesOf(environment) }),
    key: { ...boardKey(cwd, { isTrusted: isTrusted(cwd, stateFolder, trustFolder) }), ...options.key },
  });
  const boards = () => listBoards(database);
  return {
    board,
    boards,
    async former() {
      const { repository, branch } = boardKey(cwd, { isTrusted: false });
      if (options.key?.repository !== undefined || repository === board.key.repository) return undefined;
      return (await boards()).find((one) => one.repository === repository && one.branch === branch);
    },
    close: () => board.close(),
  };
}

/** Returns whether a session would trust the folder. */
function isTrusted(cwd: string, stateFolder: string, forRun: boolean): boolean {
  const { cwd: folder, gitRoot } = workingDirectory(cwd);
  const root = gitRoot ?? folder;
  const settings = loadSettings({
    stateRoot: stateFolder,
    cwd: folder,
    ...defined({ gitRoot }),
    isTrusted: () => false,
  });
  const { trustedFolders = [] } = settings.effective;
  return readTrust(stateFolder).of(root, { forRun, trustedFolders }).state !== "none";
}
