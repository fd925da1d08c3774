/** `troupe -p` in a session of a database: submits the message, shows what happens, and prints the answer. */

import { TroupeError } from "../../protocol/errors.ts";
import type { SessionEvent } from "../../protocol/event.ts";
import type { RemoteSessions } from "../../runtime/cluster/remote-sessions.ts";
import { findSession } from "../../runtime/sessions/select-session.ts";
import { type Arguments, usage, wantsJson } from "../args.ts";
import type { ExitCode } from "../exit-codes.ts";
import { jsonLine, write } from "../output/output.ts";
import { printMessage } from "../output/print-message.ts";
import { progressOf } from "../output/watching.ts";
import { useSessions } from "./stored-sessions.ts";
import { submitPrompt } from "./submit.ts";

export function remotePromptCommand(given: Arguments): Promise<ExitCode> {
  return useSessions(given, async ({ remote }) => {
    if (!remote) throw usage("No database is given.");
    const sessionId = await sessionOf(given, remote);
    const stop = new AbortController();
    const { lastSeq } = await remote.state(sessionId);
    const showing = show(given, remote.follow(sessionId, lastSeq, stop.signal));
    try {
      return await submitPrompt(given, {
        sessionId,
        async ended() {
          const { lastSeq: last } = await remote.state(sessionId);
          await showing.reached(last);
        },
      });
    } finally {
      stop.abort();
      await showing.done;
    }
  });
}

async function sessionOf(given: Arguments, { store }: RemoteSessions): Promise<string> {
  const [resume, sessionId] = [given.text("resume"), given.text("session-id")];
  const chosen = [resume !== undefined, given.has("continue"), sessionId !== undefined].filter(Boolean).length;
  if (chosen > 1) throw usage("Use only one of --resume, --continue and --session-id.");
  if (resume !== undefined) return findSession(store, resume);
  if (!given.has("continue")) return sessionId ?? crypto.randomUUID();
  const last = (await store.list()).find(({ detachedFrom }) => detachedFrom === undefined);
  if (last) return last.sessionId;
  throw new TroupeError("usage", "The database has no session to continue.", { hint: "See troupe sessions list." });
}

/** An event may arrive this long after the work has ended. */
const LATE_MS = 10_000;

/** Shows events as they are stored: on stderr, or with `--json` as lines on stdout. */
function show(given: Arguments, events: AsyncIterable<{ readonly seq: number; readonly event: SessionEvent }>) {
  const isJson = wantsJson(given);
  const bar = progressOf(given, { waitMs: 0, stdoutIsBusy: isJson });
  let position = 0;
  let onMove: () => void = () => undefined;
  const run = async (): Promise<void> => {
    for await (const { seq, event } of events) {
      bar.show(event);
      if (isJson) await write(`${jsonLine(event, process.stdout)}\n`);
      if (event.type === "permission.requested")
        printMessage('the session waits for a response: use "troupe cluster requests", or join it with --attach');
      position = seq;
      onMove();
    }
  };
  const done = run()
    .catch((error: unknown) =>
      printMessage(`events are no longer shown: ${error instanceof Error ? error.message : error}`),
    )
    .finally(() => {
      position = Number.POSITIVE_INFINITY;
      onMove();
      bar.stop();
    });
  return {
    done,
    /** Resolves when everything up to this event was shown. */
    async reached(last: number): Promise<void> {
      const until = performance.now() + LATE_MS;
      while (position < last && performance.now() < until) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, LATE_MS);
          onMove = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      bar.stop();
    },
  };
}
