import { TroupeError, withHint } from "../protocol/errors.ts";
import { exitCodes } from "./exit-codes.ts";
import { printMessage, sayLines } from "./output/print-message.ts";

/**
 * Reports unhandled errors, instead of letting Node end the process with every session in it.
 *
 * - A rejection without a handler is reported, and the process continues.
 * - An exception outside of any promise is reported too. A server continues: its other sessions are not affected.
 * A command ends, because it may wait for something that never happens.
 * - More than `MOST_PER_MINUTE` errors end the process: something fails in a loop.
 */
export function containErrors({ isServer }: { readonly isServer: boolean }): void {
  const times: number[] = [];
  const contain = (error: unknown, what: "rejection" | "exception"): void => {
    const now = performance.now();
    times.push(now);
    while ((times[0] ?? now) < now - 60_000) times.shift();
    const defect = defectOf(error, what);
    sayLines(`${withHint(defect.message, defect.hint)}\n${stackOf(error)}`);
    if (times.length > MOST_PER_MINUTE) {
      printMessage(
        `ended: more than ${MOST_PER_MINUTE} internal errors within a minute. Start it again; sessions can be resumed.`,
      );
      process.exit(exitCodes.failed);
    }
    if (what === "exception" && !isServer) process.exit(exitCodes.failed);
  };
  process.on("unhandledRejection", (reason) => contain(reason, "rejection"));
  process.on("uncaughtException", (error) => contain(error, "exception"));
}

const MOST_PER_MINUTE = 100;

function defectOf(error: unknown, what: "rejection" | "exception"): TroupeError {
  const name = error instanceof Error ? error.name : typeof error;
  const hint = "This is a defect in troupe, please report it:";
  return new TroupeError("failed", `internal error (${what} without a handler, ${name})`, { hint, cause: error });
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
