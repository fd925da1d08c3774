import { Checkpoints } from "../../checkpoints/checkpoints.ts";
import { workingDirectory } from "../../context/working-directory.ts";
import { nodeDisk } from "../../lib/node/disk.ts";
import { systemStamp } from "../../lib/stamp.ts";
import { sanitise } from "../../lib/text.ts";
import { createRuntime } from "../../runtime/runtime.ts";
import { findSession, sessionHere } from "../../runtime/sessions/select-session.ts";
import { undoSeal } from "../../runtime/undo-seal.ts";
import { sessionDiff } from "../../server/sessions/session-diff.ts";
import { type Arguments, usage, wantsJson } from "../args.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { jsonList, write } from "../output/output.ts";

/** `troupe diff`: compares the files that a session changed, before its first change and now. */
export async function diffCommand(given: Arguments): Promise<ExitCode> {
  const [, word, ...more] = given.words;
  const wanted = word ?? given.text("session");
  if (more.length > 0) throw usage("troupe diff takes one session at most.");
  const { store, home } = createRuntime({ environment: process.env });
  const context = workingDirectory(process.cwd());
  const sessionId = wanted === undefined ? await sessionHere(store, context) : await findSession(store, wanted);
  const log = await store.open(sessionId);
  try {
    const { directory } = log;
    const seal = undoSeal({ home, disk: nodeDisk });
    const checkpoints = new Checkpoints({ directory, disk: nodeDisk, stamp: systemStamp, seal });
    const found = await sessionDiff(
      { history: { files: { checkpoints } }, workspace: { directory: context } },
      { ignoreWhitespace: false },
    );
    const changes = found?.changes ?? [];
    if (wantsJson(given)) await write(jsonList(changes));
    else if (changes.length === 0) await write("No file that this session changed is different now.\n");
    else await write(sanitise(changes.map(({ diff }) => diff).join("")));
    return exitCodes.done;
  } finally {
    await log.close();
  }
}
