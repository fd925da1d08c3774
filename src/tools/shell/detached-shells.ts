import { defined } from "../../lib/defined.ts";
import { type Disk, nodeDisk } from "../../lib/node/disk.ts";
import { type Stamp, systemStamp } from "../../lib/stamp.ts";
import { ToolError } from "../tool-error.ts";
import {
  type DetachedShell,
  detachedLogSize,
  listDetached,
  readDetachedLog,
  startDetached,
  stopDetached,
} from "./detached.ts";
import { freshArguments } from "./process/driver.ts";
import { MARK_NAME } from "./process/family.ts";
import type { PreparedSandbox } from "./sandbox/sandbox.ts";
import type { FinishedCommand, ShellInput, ShellReply, ShellRequest, ShellSummary, ShellsOptions } from "./shells.ts";
import { bashLimits, environmentOf, launcherOf, sandboxRequest } from "./start-shell.ts";

/** The detached commands of a session, including those of its earlier processes. */
export class DetachedShells {
  readonly #options: ShellsOptions;
  readonly #stamp: Stamp;
  readonly #disk: Disk;
  readonly #readUntil = new Map<string, number>();
  /** Commands that ended during this process and were not reported yet. */
  readonly #finished = new Map<string, FinishedCommand>();
  readonly #onFinished: (finished: FinishedCommand) => void;

  constructor(options: ShellsOptions, onFinished: (finished: FinishedCommand) => void) {
    this.#options = options;
    this.#onFinished = onFinished;
    this.#stamp = options.stamp ?? systemStamp;
    this.#disk = options.disk ?? nodeDisk;
  }

  async run(
    request: ShellRequest,
    { shellId, onEnd }: { shellId: string; onEnd(): void },
  ): Promise<{ reply: ShellReply; prepared: PreparedSandbox }> {
    const { folder, sandbox } = this.#options;
    if (this.find(shellId)?.running) throw new ToolError(`Shell ${shellId} is in use. Choose another shellId.`);
    await this.#disk.mkdir(folder);
    const gitMounts = await this.#options.gitMounts?.();
    const wanted = { ...sandboxRequest(request), ...defined({ gitMounts }) };
    const prepared = await sandbox.prepare({
      ...wanted,
      readable: [folder],
      ownTerminal: false,
      detached: true,
      onWarning: (message) => this.#options.onWarning?.(message),
    });
    const isSandboxed = prepared.kind === "sandboxed";
    const mark = `detached-${crypto.randomUUID()}.0`;
    const { pid, log } = await startDetached({
      shellId,
      command: this.#cleaned(request.command),
      argv: [
        ...launcherOf(prepared),
        ...freshArguments(request.command, {
          guardFolder: "",
          first: bashLimits(this.#options, prepared),
          bash: "bash",
        }),
      ],
      cwd: request.cwd,
      environment: { ...environmentOf(this.#options, prepared, request), [MARK_NAME]: mark },
      mark,
      folder,
      mountRecords: isSandboxed ? sandbox.records : undefined,
      now: this.#stamp.now(),
      disk: this.#disk,
      assertMayStart: () => this.#options.assertMayStart?.(),
      onEnd: () => {
        onEnd();
        this.#ended(request, shellId);
        if (isSandboxed) void this.#sweep();
      },
    }).catch(async (error: unknown) => {
      if (isSandboxed) await prepared.release();
      throw error;
    });
    if (isSandboxed) await prepared.handOver(pid);
    return { reply: { shellId, state: "detached", output: "", pid, log }, prepared };
  }

  /** Removes secrets from the command for the record file. */
  #cleaned(command: string): string {
    const cleaner = this.#options.newCleaner?.();
    return cleaner ? cleaner.push(command) + cleaner.end() : command;
  }

  async read({ shellId, waitMs, signal }: ShellInput, before: DetachedShell): Promise<ShellReply> {
    if (before.running) await this.#stamp.sleep(waitMs, signal);
    const { log, pid, exitCode, running } = this.find(shellId) ?? before;
    const { text, next } = readDetachedLog(log, this.#readUntil.get(log) ?? 0);
    this.#readUntil.set(log, next);
    if (!running) this.#finished.delete(shellId);
    if (exitCode !== undefined) return { shellId, state: "exited", output: text, exitCode };
    if (!running) return { shellId, state: "stopped", output: text };
    return { shellId, state: "detached", output: text, pid, log };
  }

  async stop(shell: DetachedShell): Promise<ShellReply> {
    const { shellId } = shell;
    if (!shell.running) throw new ToolError(`The detached command ${shellId} has already ended.`);
    if (!(await stopDetached(shell))) {
      throw new ToolError(
        `Process ${shell.pid} cannot be identified as the detached command ${shellId}, so nothing was stopped. ` +
          "list_bash shows what still runs.",
      );
    }
    this.#finished.delete(shellId);
    await this.#sweep();
    return { shellId, state: "stopped", output: "" };
  }

  /** Cleans up in place of the keeper of a stopped command, and shows what any keeper had to undo. */
  async #sweep(): Promise<void> {
    const notes = await this.#options.sandbox.sweep().catch(() => []);
    for (const note of notes) this.#options.onWarning?.(note);
  }

  /** Returns each only once. */
  takeFinished(): FinishedCommand[] {
    const finished = [...this.#finished.values()];
    this.#finished.clear();
    return finished;
  }

  #ended({ command, description = "" }: ShellRequest, shellId: string): void {
    const exitCode = this.find(shellId)?.exitCode;
    const about = { shellId, command, description, ...defined({ exitCode }) };
    const finished: FinishedCommand = { mode: "detached", ...about };
    this.#finished.set(shellId, finished);
    setImmediate(() => {
      if (this.#finished.has(shellId)) this.#onFinished(finished);
    });
  }

  /** Returns the newest of that name: the others have ended. */
  find(shellId: string): DetachedShell | undefined {
    return listDetached(this.#options.folder)
      .filter((shell) => shell.shellId === shellId)
      .sort((a, b) => a.log.localeCompare(b.log, "en", { numeric: true }))
      .at(-1);
  }

  list(): ShellSummary[] {
    return listDetached(this.#options.folder).map(({ shellId, command, pid, exitCode, running, log }) => ({
      shellId,
      command,
      mode: "detached",
      pid,
      state: running ? "running" : "exited",
      unread: detachedLogSize(log) > (this.#readUntil.get(log) ?? 0),
      ...defined({ exitCode }),
    }));
  }
}
