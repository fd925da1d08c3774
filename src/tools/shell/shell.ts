/** One shell: a process and the commands it runs, one after the other. */
import { type Deferred, deferred } from "../../lib/deferred.ts";
import { beginMark, commandMessage, MarkScanner, READY_MARK } from "./process/driver.ts";
import type { ProcessFamily } from "./process/family.ts";
import type { Output } from "./process/output.ts";
import { PartialOutput } from "./process/partial-output.ts";
import type { ShellProcess } from "./process/shell-process.ts";

export interface Command {
  readonly text: string;
  readonly description: string;
  readonly output: Output;
  /** Settles when typed input reaches it. */
  readonly begun: Promise<void>;
  /** Settles with the exit code; never rejects. */
  readonly ended: Promise<number>;
  exitCode: number | undefined;
  /** Offset up to which the output was returned to a caller. */
  readUntil: number;
  /** True when its end was reported. */
  reported: boolean;
  /** True when no call waits for it any more. */
  background: boolean;
}

interface ShellOptions {
  readonly id: string;
  readonly kind: "fresh" | "named";
  readonly started: number;
  readonly unsandboxed: boolean;
  /** Called after the process has ended: ends what it left running and removes the mount points of its sandbox. */
  release(): Promise<void>;
  newMark(): string;
}

interface CommandStart {
  readonly text: string;
  readonly description: string;
  /** True when it accepts input. */
  readonly input: boolean;
  readonly output: Output;
  onOutput?(text: string): void;
}

interface RunningCommand extends Command {
  readonly begin: Deferred<void>;
  readonly end: Deferred<number>;
  readonly partial: PartialOutput | undefined;
  scanner: MarkScanner | undefined;
}

export class Shell {
  readonly id: string;
  readonly kind: "fresh" | "named";
  readonly started: number;
  /** True when the user agreed to start it outside the sandbox. */
  readonly unsandboxed: boolean;
  /** The working directory after the last command. */
  cwd = "";
  /** Every command with unread output, and the last one. */
  commands: Command[] = [];
  ended = false;
  stopped = false;
  readonly #options: ShellOptions;
  readonly #gone = deferred<number>();
  #process: ShellProcess | undefined;
  #family: ProcessFamily | undefined;
  #current: RunningCommand | undefined;
  #queue: Promise<unknown> = Promise.resolve();
  readonly #ready = deferred<void>();
  #awaited: { readonly text: string; seen(): void } | undefined;
  #before: Buffer = Buffer.alloc(0);

  constructor(options: ShellOptions) {
    this.#options = options;
    this.id = options.id;
    this.kind = options.kind;
    this.started = options.started;
    this.unsandboxed = options.unsandboxed;
  }

  get family(): ProcessFamily | undefined {
    return this.#family;
  }

  get process(): ShellProcess | undefined {
    return this.#process;
  }

  /** Resolves when the process has ended and its preparation is undone. */
  get gone(): Promise<number> {
    return this.#gone.promise;
  }

  attach(process: ShellProcess, family: ProcessFamily): void {
    this.#process = process;
    this.#family = family;
    if (this.kind === "named" && process.terminal) {
      this.#awaited = { text: READY_MARK, seen: () => this.#ready.resolve() };
    } else this.#ready.resolve();
    void process.exited.then((exitCode) => this.#onExit(exitCode));
  }

  /** Receives output of the process. Returns false when the disk cannot keep up. */
  onBytes(bytes: Buffer): boolean {
    const current = this.#current ?? this.commands.at(-1);
    const rest = this.#awaited ? this.#awaitMark(bytes) : bytes;
    if (current === undefined || rest.length === 0) return true;
    let onTime = true;
    const add = (part: Buffer): void => {
      onTime = current.output.push(part) && onTime;
      this.#current?.partial?.push(part);
    };
    const end = this.#current?.scanner?.push(rest, add);
    if (this.#current?.scanner === undefined) add(rest);
    if (end !== undefined) {
      this.cwd = end.cwd;
      this.#finish(end.exitCode);
    }
    if (!onTime) void current.output.drained().then(() => this.#process?.resume());
    return onTime;
  }

  /** Queues a command after the existing ones. A fresh shell already has its only command in its process. */
  run(what: CommandStart): Command {
    const begin = deferred<void>();
    const end = deferred<number>();
    const command: RunningCommand = {
      text: what.text,
      description: what.description,
      output: what.output,
      begin,
      begun: begin.promise,
      end,
      ended: end.promise,
      exitCode: undefined,
      readUntil: 0,
      reported: false,
      background: false,
      partial: what.onOutput && new PartialOutput((text) => what.onOutput?.(text)),
      scanner: undefined,
    };
    this.commands = [...this.commands.filter((earlier) => hasMore(earlier)), command];
    if (this.kind === "fresh") {
      this.#current = command;
      begin.resolve();
    } else this.#queue = this.#queue.then(() => this.#begin(command, what.input));
    return command;
  }

  /** Adds a line of ours to the output. */
  note(text: string): void {
    (this.#current ?? this.commands.at(-1))?.output.push(Buffer.from(`\n[${text}]\n`));
  }

  async #begin(command: RunningCommand, input: boolean): Promise<void> {
    await this.#ready.promise;
    if (this.ended) return command.end.resolve(await this.gone);
    const mark = this.#options.newMark();
    command.scanner = new MarkScanner(mark);
    this.#current = command;
    if (this.#process?.terminal) this.#awaited = { text: beginMark(mark), seen: () => command.begin.resolve() };
    else command.begin.resolve();
    this.#process?.send(commandMessage({ mark, command: command.text, input }));
    await command.ended;
  }

  #finish(exitCode: number): void {
    const command = this.#current;
    if (command === undefined) return;
    this.#current = undefined;
    command.begin.resolve();
    command.partial?.end();
    command.exitCode = exitCode;
    void command.output.close().then(() => command.end.resolve(exitCode));
  }

  async #onExit(exitCode: number): Promise<void> {
    this.ended = true;
    const held = this.#current?.scanner?.rest();
    if (held?.length) this.#current?.output.push(held);
    // First, because the reader of the result may look at the workspace next and must find nothing of ours there.
    await this.#options.release().catch(() => undefined);
    this.#finish(exitCode);
    this.#ready.resolve();
    this.#gone.resolve(exitCode);
    for (const waiting of this.commands) if (waiting.exitCode === undefined) waiting.exitCode = exitCode;
  }

  /** Drops terminal output before the awaited mark; the rest belongs to the command. */
  #awaitMark(bytes: Buffer): Buffer {
    const { text, seen } = this.#awaited ?? { text: "", seen: () => undefined };
    const whole = Buffer.concat([this.#before, bytes]);
    const at = whole.indexOf(text);
    if (at < 0) {
      this.#before = Buffer.from(whole.subarray(Math.max(0, whole.length - text.length)));
      return Buffer.alloc(0);
    }
    this.#before = Buffer.alloc(0);
    this.#awaited = undefined;
    seen();
    return Buffer.from(whole.subarray(at + Buffer.byteLength(text)));
  }
}

export function hasMore(command: Command): boolean {
  return command.exitCode === undefined || !command.reported || command.readUntil < command.output.size;
}
