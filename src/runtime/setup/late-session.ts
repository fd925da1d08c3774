import type { Emit } from "../../protocol/event.ts";
import type { Session } from "../../session/session.ts";
import { finishedNotice } from "../../tools/shell/finished-notice.ts";
import type { Shells } from "../../tools/shell/shells.ts";
import type { Workspace } from "../workspace/workspace.ts";
import type { LivePromptAndTools } from "./prompt-and-tools.ts";

/**
 * What parts of a session have to say to it. They are made before it is, so what they say until then is kept and told
 * when it is there.
 */
export class LateSession {
  readonly #early: ((session: Session) => void)[] = [];
  #session: Session | undefined;
  offer: LivePromptAndTools | undefined;

  /** Once it is there. */
  get session(): Session | undefined {
    return this.#session;
  }

  /** Resolves with the session once it is there. */
  get opened(): Promise<Session> {
    return this.#session ? Promise.resolve(this.#session) : new Promise((resolve) => this.#early.push(resolve));
  }

  listen(session: Session): void {
    this.#session = session;
    for (const tell of this.#early.splice(0)) tell(session);
  }

  /** Something a person should read. */
  readonly notice = (message: string): void => this.warn("configuration", message);

  warn(warningType: string, message: string): void {
    this.#tell((session) => session.warn(warningType, message));
  }

  /** Resolves when it is kept; what is said too early is kept with the session. */
  readonly say: Emit = async (type, data) => {
    if (this.#session) return this.#session.say(type, data);
    this.#early.push((session) => void session.say(type, data));
  };

  /** The servers have other tools: from the next model call on the agent has them too. */
  readonly toolsChanged = (): void => {
    this.offer?.refresh();
  };

  /** What there is to know where a tool goes; the agent reads it before its next model call. */
  async fileAccess(workspace: Workspace, path: string, toolName: string): Promise<void> {
    for (const found of await workspace.instructions.nested.onFileAccess(path)) {
      this.#session?.notify(
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
    for (const finished of shells.takeFinished()) this.#session?.notify(finishedNotice(finished));
  }

  #tell(tell: (session: Session) => void): void {
    if (this.#session) tell(this.#session);
    else this.#early.push(tell);
  }
}
