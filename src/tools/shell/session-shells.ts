import { join } from "node:path";
import { type Disk, nodeDisk } from "../../lib/node/disk.ts";
import { type Stamp, systemStamp } from "../../lib/stamp.ts";
import { ToolError } from "../tool-error.ts";
import { checkRequest, requireSameView, withoutState } from "./check-request.ts";
import { finishedCommand, isNews, summary, takeText, takeWithEnd, unreadText } from "./command-report.ts";
import type { DetachedShell } from "./detached.ts";
import { DetachedShells } from "./detached-shells.ts";
import { PastShells } from "./past-shells.ts";
import { endFamily, killHolders, searchLeftovers, signalFamily } from "./process/family.ts";
import { strokes } from "./process/keys.ts";
import { Output } from "./process/output.ts";
import { limitRun } from "./process/run-limit.ts";
import { PROCESS_MARK } from "./process/watchdog.ts";
import type { PreparedSandbox } from "./sandbox/sandbox.ts";
import { type Command, hasMore, type Shell } from "./shell.ts";
import type {
  FinishedCommand,
  ShellInput,
  ShellReply,
  ShellRequest,
  ShellSummary,
  Shells,
  ShellsOptions,
  StoredFiles,
} from "./shells.ts";
import { openShellBase, type ShellBase, startShell } from "./start-shell.ts";

/** Creates the shells of one session. */
export function createShells(options: ShellsOptions): Shells {
  return new SessionShells(options);
}

const MAX_SHELLS = 256;
/** Each holds up to half a mebibyte of output. */
const MAX_ENDED = 64;
const END_GRACE_MS = 4000;

class SessionShells implements Shells {
  readonly #options: ShellsOptions;
  readonly #stamp: Stamp;
  readonly #disk: Disk;
  /** Not from the stamp: it must be unique among all sessions on this machine. */
  readonly #mark = crypto.randomUUID();
  readonly #shells = new Map<string, Shell>();
  /** Shells that are starting: a second command for one may arrive meanwhile. */
  readonly #starting = new Map<string, Promise<Started>>();
  readonly #past = new PastShells();
  readonly #detached: DetachedShells;
  readonly #tidying = new Set<Promise<unknown>>();
  readonly #warned = new Set<string>();
  /** Calls whose request to leave the sandbox was put to the user before they run. */
  readonly #leaving = new Set<string>();
  readonly #folders = new WeakMap<Shell, ShellFolders>();
  readonly #listeners = new Set<(finished: FinishedCommand) => void>();
  #count = 0;
  #base: Promise<ShellBase> | undefined;
  #closed = false;
  /** True when a command ran without a sandbox, so that processes may have left its group. */
  #ranOutside = false;

  constructor(options: ShellsOptions) {
    this.#options = options;
    this.#stamp = options.stamp ?? systemStamp;
    this.#disk = options.disk ?? nodeDisk;
    this.#detached = new DetachedShells(options, (finished) => this.#tell(finished));
  }

  async run(given: ShellRequest): Promise<ShellReply> {
    const request = withoutState(given, this.#options);
    request.signal.throwIfAborted();
    this.#check(request);
    const kept = await this.#storeFiles(request);
    if (request.mode === "detached") return this.#runDetached(request, kept);
    const { shell, command, warning } = await this.#begin(request);
    let changedBy: "command" | "anyone" = request.mode === "sync" ? "command" : "anyone";
    const settled = command.ended.then(() => kept?.settle(changedBy));
    this.#track(settled);
    const { maxRunMs } = this.#options;
    if (maxRunMs !== undefined) limitRun(shell, command, { maxRunMs, stamp: this.#stamp });
    void command.ended.then(() => setImmediate(() => this.#announce(shell, command)));
    const said = { ...this.#warningOfFiles(kept), ...warning };
    if (request.mode === "async") {
      command.background = true;
      return { shellId: shell.id, state: "running", output: "", ...said };
    }
    if (this.#shells.size > 1) this.expectCommand(); // this thread is idle while the command runs
    try {
      await this.#settled(command.ended, request);
    } catch (error) {
      await this.#end(shell);
      throw error;
    }
    changedBy = "anyone";
    if (command.exitCode !== undefined) await settled;
    return { ...this.#report(shell, command), ...said };
  }

  expectCommand(): void {
    // Before the first command it is not known whether there will be one.
    if (!this.#closed) void this.#base?.then(({ launcher }) => launcher.expect());
  }

  async read(request: ShellInput): Promise<ShellReply> {
    const shell = this.#shells.get(request.shellId);
    if (shell === undefined) return this.#detached.read(request, this.#findDetached(request.shellId));
    await this.#settled(shell.commands.at(-1)?.ended, request);
    return this.#reportAll(shell);
  }

  async write({ input, ...request }: ShellInput & { readonly input: string }): Promise<ShellReply> {
    const shell = this.#shells.get(request.shellId) ?? this.#missing(request.shellId);
    const { process, family } = shell;
    if (process?.type === undefined || family === undefined) {
      throw new ToolError(`Shell ${shell.id} takes no input. Start the command with mode "async" to write to it.`);
    }
    if (shell.unsandboxed && !this.#leaving.delete(request.toolCallId ?? "")) {
      throw new ToolError(`Shell ${shell.id} runs outside the sandbox. Try again, so that the user can be asked.`);
    }
    await this.#settled(shell.commands.at(-1)?.begun, request);
    const kept = await this.#storeFiles({ ...this.#foldersOf(shell), command: input, ...request });
    if (kept) this.#track(shell.commands.at(-1)?.ended.then(() => kept.settle("anyone")));
    for (const stroke of strokes(input, process)) {
      if (stroke.kind === "text") process.type(stroke.text);
      else if (stroke.kind === "end") process.endInput();
      else await signalFamily(family, "SIGINT");
    }
    await this.#settled(shell.commands.at(-1)?.ended, request);
    return { ...this.#reportAll(shell), ...this.#warningOfFiles(kept) };
  }

  async stop(shellId: string): Promise<ShellReply> {
    const shell = this.#shells.get(shellId);
    if (shell !== undefined) {
      await this.#end(shell);
      return { shellId, state: "stopped", output: unreadText(shell) };
    }
    return this.#detached.stop(this.#findDetached(shellId));
  }

  list(): ShellSummary[] {
    return [...[...this.#shells.values()].map(summary), ...this.#detached.list()];
  }

  leavesSandbox({ shellId, toolCallId }: { shellId: string; toolCallId: string }): boolean {
    const leaves = this.#shells.get(shellId)?.unsandboxed ?? false;
    if (leaves) this.#leaving.add(toolCallId);
    return leaves;
  }

  takeFinished(): FinishedCommand[] {
    const attached = [...this.#shells.values()].flatMap((shell) =>
      shell.commands.filter(isNews).map((command) => {
        command.background = false;
        return finishedCommand(shell, command);
      }),
    );
    return [...attached, ...this.#detached.takeFinished()];
  }

  onFinished(listener: (finished: FinishedCommand) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async closeAll(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled(this.#starting.values());
    await Promise.all([...this.#shells.values()].map((shell) => this.#end(shell)));
    void searchLeftovers();
    await Promise.allSettled(this.#tidying);
    const base = await this.#base?.catch(() => undefined);
    if (base === undefined) return;
    if (this.#ranOutside) await killHolders(base.folder);
    await base.close();
  }

  #check(request: ShellRequest): void {
    if (this.#closed) throw new ToolError("The session is ending; nothing more can be run.");
    checkRequest(request);
    const { shellId, mode } = request;
    const live = [...this.#shells.values()].filter((shell) => !shell.ended).length;
    const isNew = shellId === undefined || !this.#shells.has(shellId);
    if (mode !== "detached" && isNew && live >= MAX_SHELLS) {
      throw new ToolError(`${MAX_SHELLS} shells are open already. Stop some with stop_bash; list_bash shows them.`);
    }
  }

  /** A named shell runs the command in the folder of its last one. */
  async #storeFiles(request: UpcomingRequest): Promise<StoredFiles | undefined> {
    const { command: text, roots, toolCallId = "", shellId } = request;
    const cwd = (shellId !== undefined && this.#shells.get(shellId)?.cwd) || request.cwd;
    return this.#options.beforeRun?.({ text, cwd, roots, toolCallId });
  }

  #foldersOf(shell: Shell): ShellFolders {
    return this.#folders.get(shell) ?? { cwd: shell.cwd, roots: [] };
  }

  #warningOfFiles(kept: StoredFiles | undefined): Warning {
    return this.#warn(kept?.notice) ? { warning: kept?.notice ?? "" } : {};
  }

  /** Starts the command in an existing shell or a new one. */
  async #begin(request: ShellRequest): Promise<Started> {
    const { shellId } = request;
    const kind = shellId === undefined ? "fresh" : "named";
    const id = shellId ?? this.#nextId();
    const known = this.#shells.get(id);
    if (known !== undefined && !known.ended) return this.#queue(known, request);
    const starting = this.#starting.get(id);
    if (starting !== undefined) return this.#queue((await starting).shell, request);
    const start = this.#start(id, kind, request);
    this.#starting.set(id, start);
    return start.finally(() => this.#starting.delete(id));
  }

  #queue(shell: Shell, request: ShellRequest): Started {
    if (shell.kind === "fresh") {
      throw new ToolError(`Shell ${shell.id} belongs to the command that runs in it. Choose another shellId.`);
    }
    // An agreement for one command does not cover the next one in the same shell.
    if (shell.unsandboxed !== (request.unsandboxed ?? false)) {
      const where = shell.unsandboxed ? "outside" : "inside";
      throw new ToolError(`Shell ${shell.id} was started ${where} the sandbox. Choose another shellId.`);
    }
    requireSameView(shell.id, this.#foldersOf(shell), request);
    return { shell, command: this.#addTo(shell, request), warning: {} };
  }

  #addTo(shell: Shell, { command, description = "", mode, onOutput }: ShellRequest): Command {
    this.#count++;
    const { folder, newCleaner } = this.#options;
    const path = join(folder, `shell-${shell.id}-${this.#mark.slice(0, 8)}-${this.#count}.log`);
    return shell.run({
      text: command,
      description,
      input: mode === "async",
      output: new Output({ path, disk: this.#disk, ...(newCleaner && { clean: newCleaner() }) }),
      ...(onOutput && { onOutput }),
    });
  }

  async #start(id: string, kind: Shell["kind"], request: ShellRequest): Promise<Started> {
    const { shell, command, prepared } = await startShell({
      base: await this.#prepareBase(),
      id,
      kind,
      mark: `${PROCESS_MARK}.${this.#mark}.${++this.#count}`,
      request,
      started: this.#stamp.now(),
      firstCommand: (created) => this.#addTo(created, request),
      onTidying: (work) => this.#track(work),
      onWarning: (message) => this.#warn(message),
    });
    if (prepared.kind === "plain") this.#ranOutside = true;
    this.#shells.set(id, shell);
    this.#folders.set(shell, { cwd: request.cwd, roots: request.roots, readOnly: request.readOnly ?? false });
    this.#past.forget(id);
    void shell.gone.then(() => this.#forgetOldest());
    return { shell, command, warning: this.#warningOf(prepared) };
  }

  #prepareBase(): Promise<ShellBase> {
    this.#base ??= openShellBase(this.#options, this.#mark, this.#disk);
    return this.#base;
  }

  async #runDetached(request: ShellRequest, kept: StoredFiles | undefined): Promise<ShellReply> {
    const shellId = request.shellId ?? this.#nextId();
    if (this.#shells.has(shellId)) throw new ToolError(`Shell ${shellId} is in use. Choose another shellId.`);
    const { reply, prepared } = await this.#detached.run(request, { shellId, onEnd: () => kept?.settle("anyone") });
    return { ...reply, ...this.#warningOfFiles(kept), ...this.#warningOf(prepared) };
  }

  #track(work: Promise<void> | undefined): void {
    if (work === undefined) return;
    const tracked = work.finally(() => this.#tidying.delete(tracked));
    this.#tidying.add(tracked);
  }

  /** Waits for the event, at most up to the limit. */
  async #settled(event: Promise<unknown> | undefined, limit: { waitMs: number; signal: AbortSignal }): Promise<void> {
    limit.signal.throwIfAborted();
    const stop = new AbortController();
    const onAbort = (): void => stop.abort(limit.signal.reason);
    limit.signal.addEventListener("abort", onAbort, { once: true });
    try {
      const waited = this.#stamp.sleep(limit.waitMs, stop.signal);
      waited.catch(() => undefined);
      await Promise.race([event, waited]);
    } finally {
      limit.signal.removeEventListener("abort", onAbort);
      stop.abort();
    }
  }

  #report(shell: Shell, command: Command): ShellReply {
    const output = takeText(command);
    const { exitCode } = command;
    if (exitCode === undefined) {
      command.background = true;
      return { shellId: shell.id, state: "running", output };
    }
    command.reported = true;
    this.#forgetIfRead(shell);
    return { shellId: shell.id, state: "exited", output, exitCode };
  }

  /** For a shell with several commands, returns the output and end of each, in order. */
  #reportAll(shell: Shell): ShellReply {
    const last = shell.commands.at(-1);
    if (last === undefined) return { shellId: shell.id, state: "running", output: "" };
    const earlier = shell.commands.slice(0, -1).filter(hasMore).map(takeWithEnd).join("");
    const reply = this.#report(shell, last);
    return { ...reply, output: earlier + reply.output };
  }

  #forgetIfRead(shell: Shell): void {
    const { exitCode } = shell.commands.at(-1) ?? {};
    if (shell.kind === "named" && !shell.ended) return;
    if (exitCode === undefined || shell.commands.some(hasMore)) return;
    this.#shells.delete(shell.id);
    this.#past.remember(shell.id, { how: "exited", exitCode });
  }

  /** Drops the oldest ended shells, whose output is no longer read. */
  #forgetOldest(): void {
    const ended = [...this.#shells.values()].filter((shell) => shell.ended);
    for (const shell of ended.slice(0, Math.max(0, ended.length - MAX_ENDED))) {
      this.#shells.delete(shell.id);
      this.#past.remember(shell.id, { how: "exited", exitCode: shell.commands.at(-1)?.exitCode ?? 0 });
    }
  }

  async #end(shell: Shell): Promise<void> {
    const { family } = shell;
    if (family !== undefined && !shell.ended) await endFamily(family);
    const given = new AbortController();
    await Promise.race([shell.gone, this.#stamp.sleep(END_GRACE_MS, given.signal).catch(() => undefined)]);
    given.abort();
    this.#shells.delete(shell.id);
    this.#past.remember(shell.id, { how: "stopped" });
  }

  #findDetached(shellId: string): DetachedShell {
    return this.#detached.find(shellId) ?? this.#missing(shellId);
  }

  #missing(shellId: string): never {
    const known = this.#past.explain(shellId);
    if (known !== undefined) throw new ToolError(known);
    if (this.#detached.find(shellId) !== undefined) {
      throw new ToolError(`${shellId} is a detached command and takes no input. read_bash shows its log.`);
    }
    throw new ToolError(`There is no shell with the shellId ${shellId}. list_bash shows those there are.`);
  }

  #announce(shell: Shell, command: Command): void {
    if (isNews(command)) this.#tell(finishedCommand(shell, command));
  }

  #tell(finished: FinishedCommand): void {
    if (this.#closed) return;
    for (const listener of this.#listeners) listener(finished);
  }

  #warningOf(prepared: PreparedSandbox): Warning {
    if (prepared.kind === "sandboxed" || prepared.warning === undefined) return {};
    return this.#warn(prepared.warning) ? { warning: prepared.warning } : {};
  }

  #warn(message: string | undefined): boolean {
    if (message === undefined || this.#warned.has(message)) return false;
    this.#warned.add(message);
    this.#options.onWarning?.(message);
    return true;
  }

  #nextId(): string {
    const taken = new Set(this.#detached.list().map(({ shellId }) => shellId));
    let number = this.#past.size + this.#shells.size + this.#starting.size;
    let id = "";
    do id = String(++number);
    while (this.#shells.has(id) || this.#past.has(id) || this.#starting.has(id) || taken.has(id));
    return id;
  }
}

type Warning = { readonly warning?: string };

type ShellFolders = Pick<ShellRequest, "cwd" | "roots" | "readOnly">;
type UpcomingRequest = Pick<ShellRequest, "command" | "cwd" | "roots" | "toolCallId" | "shellId">;

interface Started {
  readonly shell: Shell;
  readonly command: Command;
  readonly warning: Warning;
}
