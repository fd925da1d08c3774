/**
 * Starts bubblewrap for the next command before that command is known, while another one runs or the model works. The
 * start of a process copies the tables of this one's memory, which takes milliseconds in a long session.
 */
import { setTimeout as delay } from "node:timers/promises";
import { laterArguments } from "./driver.ts";
import { MARK_NAME } from "./family.ts";
import type { OutputPipes } from "./output-pipe.ts";
import { type WaitingProcess, waitingProcess } from "./shell-process.ts";
import type { Watchdog } from "./watchdog.ts";

/** Everything about a start that cannot be changed later. */
export interface Launch {
  readonly program: string;
  readonly bash: string;
  /** The seccomp filter. */
  readonly filter: string;
  /** Without the mark. */
  readonly environment: Readonly<Record<string, string>>;
}

interface SpareProcess {
  readonly launch: string;
  readonly mark: string;
  readonly process: WaitingProcess;
  readonly tooLate: NodeJS.Timeout;
}

/** Lets the request go out before the start blocks this thread. */
const DELAY_MS = 1;
/** Longer than nearly every reply of a model. A session without work keeps no process. */
const MAX_WAIT_MS = 120_000;

export class WaitingLauncher {
  readonly #parts: { readonly pipes: OutputPipes; readonly watchdog: Watchdog; readonly mark: string };
  #last: Launch | undefined;
  #waiting: SpareProcess | undefined;
  #starting: Promise<void> | undefined;
  #closed = false;
  #count = 0;

  /** `mark`: the prefix of the marks of its processes. */
  constructor(parts: { pipes: OutputPipes; watchdog: Watchdog; mark: string }) {
    this.#parts = parts;
  }

  /** Call it while nothing else is to be done. Starts a process like the last one that was asked for, if none waits. */
  expect(): void {
    if (this.#last === undefined || this.#starting || this.#waiting?.process.isAlive()) return;
    this.#starting = delay(DELAY_MS)
      .then(() => this.#start())
      // Without it commands start as before.
      .catch(() => undefined)
      .finally(() => {
        this.#starting = undefined;
      });
  }

  /** Returns a process that waits and was started in exactly this way. The watchdog watches it already. */
  take(launch: Launch): { readonly mark: string; readonly process: WaitingProcess } | undefined {
    this.#last = launch;
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting === undefined) return undefined;
    clearTimeout(waiting.tooLate);
    if (waiting.launch === JSON.stringify(launch) && waiting.process.isAlive()) return waiting;
    this.#end(waiting);
    return undefined;
  }

  /** Resolves when no process waits and none can be started. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#starting;
    this.#drop();
  }

  async #start(): Promise<void> {
    const { pipes, watchdog, mark: prefix } = this.#parts;
    const launch = this.#last;
    if (launch === undefined || this.#closed) return;
    this.#drop();
    const mark = `${prefix}.waiting-${++this.#count}`;
    const process = await waitingProcess({
      ...launch,
      command: laterArguments(launch.bash),
      environment: { ...launch.environment, [MARK_NAME]: mark },
      pipes,
    });
    watchdog.watch(process.pid);
    const tooLate = setTimeout(() => this.#drop(), MAX_WAIT_MS).unref();
    this.#waiting = { launch: JSON.stringify(launch), mark, process, tooLate };
  }

  #drop(): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting === undefined) return;
    clearTimeout(waiting.tooLate);
    this.#end(waiting);
  }

  #end({ process }: SpareProcess): void {
    process.end();
    this.#parts.watchdog.unwatch(process.pid);
  }
}
