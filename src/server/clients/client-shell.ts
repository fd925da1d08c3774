/**
 * Commands that a user or a program runs through a session's server. They need no permission, since the caller would be
 * the one to grant it. A command that a user typed runs without a sandbox. A command that a program starts is sandboxed
 * like the agent's own commands. Both end with the session.
 */
import { TroupeError } from "../../protocol/errors.ts";
import type { Session } from "../../session/session.ts";

type Shells = NonNullable<Session["workspace"]["shells"]>;

interface UserCommand {
  readonly command: string;
  readonly hiddenFromModel?: boolean | undefined;
}

export interface UserCommandResult {
  readonly toolCallId: string;
  readonly success: boolean;
  readonly output: string;
  readonly exitCode?: number | null;
  readonly error?: string;
}

/** Timeout for a command that a user typed. */
const MAX_MS = 60 * 60_000;
const MAX_OUTPUT_CHARACTERS = 100_000;

const withCode = (output: string, exitCode: number | null): string =>
  `${output.trimEnd()}\n<${exitCode === null ? "stopped" : `exited with exit code ${exitCode}`}>`;

export class ClientShell {
  readonly #session: () => Session;
  readonly #requested = new Map<string, AbortController>();

  constructor(session: () => Session) {
    this.#session = session;
  }

  /** Starts the command and returns immediately. `onExit` receives its exit code. */
  async exec(
    request: { readonly command: string; readonly cwd?: string; readonly timeoutMs?: number },
    onExit: (processId: string, exitCode: number | null) => void,
  ): Promise<string> {
    const { record, queue } = this.#session();
    const shells = this.#shells();
    const { shellId } = await shells.run({
      ...this.#place(request.cwd),
      command: request.command,
      mode: "async",
      waitMs: 0,
      signal: queue.closed,
    });
    const until = record.stamp.now() + Math.min(request.timeoutMs ?? MAX_MS, MAX_MS);
    void this.#follow(shellId, until).then((exitCode) => onExit(shellId, exitCode));
    return shellId;
  }

  async kill(processId: string): Promise<boolean> {
    const known = this.#shells()
      .list()
      .find(({ shellId }) => shellId === processId);
    if (known?.state !== "running") return false;
    await this.#shells().stop(processId);
    return true;
  }

  /**
   * Runs the command until it ends. `cancel` with the same id stops it. No model reads the result; `hiddenFromModel`
   * notes for watchers that the client does not pass it on either.
   */
  async run(requestId: string, { command, hiddenFromModel }: UserCommand): Promise<UserCommandResult> {
    const { record, queue } = this.#session();
    const toolCallId = record.stamp.id("call");
    if (this.#requested.has(requestId))
      throw new TroupeError("usage", `A command with the id ${requestId} is running.`);
    const stop = new AbortController();
    this.#requested.set(requestId, stop);
    const about = { toolCallId, toolName: "bash", arguments: { command, ...(hiddenFromModel && { hiddenFromModel }) } };
    void this.#session().record.emit("tool.user_requested", about);
    void this.#session().record.emit("tool.execution_start", about);
    try {
      const reply = await this.#shells().run({
        ...this.#place(undefined),
        command,
        toolCallId,
        mode: "sync",
        waitMs: MAX_MS,
        unsandboxed: true,
        signal: AbortSignal.any([stop.signal, queue.closed]),
      });
      const output = (record.redactor?.text(reply.output) ?? reply.output).slice(-MAX_OUTPUT_CHARACTERS);
      const exitCode = reply.state === "exited" ? reply.exitCode : null;
      await this.#ended(toolCallId, { success: exitCode === 0, content: withCode(output, exitCode) });
      return { toolCallId, success: exitCode === 0, output, exitCode };
    } catch (error) {
      const why = stop.signal.aborted ? "The command was cancelled." : String(error);
      await this.#ended(toolCallId, { success: false, content: why });
      if (!stop.signal.aborted) throw error;
      return { toolCallId, success: false, output: "", error: why };
    } finally {
      this.#requested.delete(requestId);
    }
  }

  async #ended(toolCallId: string, { success, content }: { success: boolean; content: string }): Promise<void> {
    const outcome = success ? { result: { content } } : { error: { message: content, code: "failure" } };
    await this.#session().record.emit("tool.execution_complete", {
      toolCallId,
      success,
      isUserRequested: true,
      ...outcome,
    });
  }

  cancel(requestId: string): boolean {
    const stop = this.#requested.get(requestId);
    stop?.abort();
    return stop !== undefined;
  }

  #place(cwd: string | undefined) {
    const { workspace } = this.#session();
    return { cwd: cwd ?? workspace.cwd, roots: workspace.roots, description: "run by the user", readOnly: false };
  }

  #shells(): Shells {
    const { shells } = this.#session().workspace;
    if (!shells) throw new TroupeError("usage", "This session cannot run commands.");
    return shells;
  }

  async #follow(shellId: string, until: number): Promise<number | null> {
    const { stamp } = this.#session().record;
    for (;;) {
      const { closed } = this.#session().queue;
      const reply = await this.#shells()
        .read({ shellId, waitMs: 1_000, signal: closed })
        .catch(() => undefined);
      if (reply?.state === "exited") return reply.exitCode;
      if (reply?.state !== "running" || closed.aborted) return null;
      if (stamp.now() > until) await this.#shells().stop(shellId);
    }
  }
}
