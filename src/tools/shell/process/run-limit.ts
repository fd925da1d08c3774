import type { Stamp } from "../../../lib/stamp.ts";
import type { Command, Shell } from "../shell.ts";
import { endFamily } from "./family.ts";

/** Ends the command when it exceeds the limit, and notes that in its output. */
export function limitRun(
  shell: Shell,
  command: Command,
  { maxRunMs, stamp }: { maxRunMs: number; stamp: Stamp },
): void {
  const over = new AbortController();
  void command.ended.then(() => over.abort());
  const end = async (): Promise<void> => {
    shell.note(`Ended: it ran longer than ${maxRunMs / 1000} seconds.`);
    if (shell.family !== undefined) await endFamily(shell.family);
  };
  stamp.sleep(maxRunMs, over.signal).then(end, () => undefined);
}
