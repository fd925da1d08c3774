import { tmpdir } from "node:os";
import { join } from "node:path";
import { Checkpoints } from "../../checkpoints/checkpoints.ts";
import { workingDirectory } from "../../context/working-directory.ts";
import { nodeDisk } from "../../lib/node/disk.ts";
import { removeTree } from "../../lib/node/remove-tree.ts";
import { systemStamp } from "../../lib/stamp.ts";
import { sanitise } from "../../lib/text.ts";
import type { RemoteSessions } from "../../runtime/cluster/remote-sessions.ts";
import { stateRoot } from "../../runtime/home.ts";
import type { Runtime } from "../../runtime/runtime.ts";
import { findSession, sessionHere } from "../../runtime/sessions/select-session.ts";
import { undoSeal } from "../../runtime/undo-seal.ts";
import { sessionDiff } from "../../server/sessions/session-diff.ts";
import { type StoredDiff, storedDiff } from "../../server/sessions/stored-diff.ts";
import type { Change } from "../../server/sessions/workspace-diff.ts";
import { type Arguments, usage, wantsJson } from "../args.ts";
import { useSessions } from "../cluster/stored-sessions.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { jsonList, write } from "../output/output.ts";
import { printMessage } from "../output/print-message.ts";

/** `troupe diff`: compares the files that a session changed, before its first change and now. */
export async function diffCommand(given: Arguments): Promise<ExitCode> {
  const [, word, ...more] = given.words;
  const wanted = word ?? given.text("session");
  if (more.length > 0) throw usage("troupe diff takes one session at most.");
  return useSessions(given, async ({ runtime, remote }) => {
    if (!remote) return print(given, await localChanges(runtime, wanted));
    if (wanted === undefined) throw usage("Name the session of the database: troupe diff 3f2a91c");
    const sessionId = await findSession(runtime.store, wanted);
    const { changes, isPartial } = await remoteChanges(runtime, remote, sessionId);
    if (isPartial)
      printMessage("changes of commands are left out: only the worker that made their copies can read them");
    return print(given, changes);
  });
}

async function print(given: Arguments, changes: readonly Change[]): Promise<ExitCode> {
  if (wantsJson(given)) await write(jsonList(changes));
  else if (changes.length === 0) await write("No file that this session changed is different now.\n");
  else await write(sanitise(changes.map(({ diff }) => diff).join("")));
  return exitCodes.done;
}

async function remoteChanges({ store }: Runtime, remote: RemoteSessions, sessionId: string): Promise<StoredDiff> {
  const directory = join(tmpdir(), `troupe-diff-${crypto.randomUUID()}`);
  await nodeDisk.mkdir(directory);
  try {
    await remote.copyCheckpoints(sessionId, directory);
    const seal = undoSeal({ stateRoot: stateRoot(process.env), disk: nodeDisk });
    const checkpoints = new Checkpoints({ directory, disk: nodeDisk, stamp: systemStamp, seal });
    return await storedDiff({ sessionId, directory, checkpoints, events: store.events(sessionId) });
  } finally {
    await removeTree(directory);
  }
}

async function localChanges({ store, home }: Runtime, wanted: string | undefined): Promise<readonly Change[]> {
  const context = workingDirectory(process.cwd());
  const sessionId = wanted === undefined ? await sessionHere(store, context) : await findSession(store, wanted);
  const log = await store.open(sessionId);
  try {
    const { directory } = log;
    const seal = undoSeal({ stateRoot: home, disk: nodeDisk });
    const checkpoints = new Checkpoints({ directory, disk: nodeDisk, stamp: systemStamp, seal });
    const found = await sessionDiff(
      { record: { files: { checkpoints } }, workspace: { directory: context } },
      { ignoreWhitespace: false },
    );
    return found?.changes ?? [];
  } finally {
    await log.close();
  }
}
