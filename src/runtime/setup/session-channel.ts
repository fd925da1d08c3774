import type { Emit } from "../../protocol/event.ts";
import type { Session } from "../../session/session.ts";
import { finishedNotice } from "../../tools/shell/finished-notice.ts";
import type { Shells } from "../../tools/shell/shells.ts";
import type { Workspace } from "../workspace/workspace.ts";
import type { CurrentPromptAndTools } from "./prompt-and-tools.ts";

/**
 * A channel from the parts of a session to the session. Parts are created first, so messages before that are queued and
 * delivered when the session opens.
 */
export class SessionChannel {
  readonly #early: ((session: Session) => void)[] = [];
  #session: Session | undefined;
  promptAndTools: CurrentPromptAndTools | undefined;

  /** Undefined until the session is open. */
  get session(): Session | undefined {
    return this.#session;
  }

  /** Resolves with the session once it is open. */
  get opened(): Promise<Session> {
    return this.#session ? Promise.resolve(this.#session) : new Promise((resolve) => this.#early.push(resolve));
  }

  connect(session: Session): void {
    this.#session = session;
    for (const tell of this.#early.splice(0)) tell(session);
  }

  /** Shows a message to the user. */
  readonly notice = (message: string): void => this.warn("configuration", message);

  warn(warningType: string, message: string): void {
    this.#tell((session) => session.record.warn(warningType, message));
  }

  /** Resolves when the event is stored. An event before the session is open is only queued. */
  readonly emit: Emit = async (type, data) => {
    if (this.#session) return this.#session.record.emit(type, data);
    this.#early.push((session) => void session.record.emit(type, data));
  };

  /** Updates the agent's tools from the next model call on. */
  readonly toolsChanged = (): void => {
    this.promptAndTools?.refresh();
  };

  /** Notifies the agent of nested instructions for the accessed path, before its next model call. */
  async fileAccess(workspace: Workspace, path: string, toolName: string): Promise<void> {
    for (const found of await workspace.instructions.nested.onFileAccess(path)) {
      this.#session?.queue.notify(
        {
          content: found.text,
          kind: {
            type: "instruction_discovered",
            sourcePath: found.path,
            triggerFile: path,
            triggerTool: toolName,
          },
        },
        { wakes: false },
      );
    }
  }

  commandsEnded(shells: Shells): void {
    for (const finished of shells.takeFinished()) this.#session?.queue.notify(finishedNotice(finished));
  }

  #tell(tell: (session: Session) => void): void {
    if (this.#session) tell(this.#session);
    else this.#early.push(tell);
  }
}
