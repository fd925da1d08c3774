/** Commands that clients bring: whoever has one runs it and says when it is done. */
import { type Deferred, deferred } from "../lib/deferred.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { Session } from "../session/session.ts";
import type { Clients } from "./clients.ts";

/** A command is a person's wish; nobody waits for it longer than this. */
const TIMEOUT_MS = 60 * 60 * 1000;

export class ClientCommands {
  readonly #session: Session;
  readonly #clients: Clients;
  readonly #pending = new Map<string, Deferred<string | undefined>>();

  constructor(session: Session, clients: Clients) {
    this.#session = session;
    this.#clients = clients;
  }

  /** Resolves with what went wrong, if something did. */
  async run(commandName: string, args: string): Promise<string | undefined> {
    if (!this.#clients.withCommand(commandName)) {
      throw new TroupeError("usage", `Unknown command: ${commandName}`, { hint: "No client of the session has it." });
    }
    const requestId = crypto.randomUUID();
    const end = deferred<string | undefined>();
    this.#pending.set(requestId, end);
    const timer = setTimeout(() => end.resolve("It was not answered in time."), TIMEOUT_MS);
    try {
      const command = args === "" ? `/${commandName}` : `/${commandName} ${args}`;
      void this.#session.say("command.execute", { requestId, commandName, command, args });
      return await end.promise;
    } finally {
      clearTimeout(timer);
      this.#pending.delete(requestId);
      void this.#session.say("command.completed", { requestId });
    }
  }

  /** The first answer counts. */
  answer(requestId: string, error: string | undefined): void {
    this.#pending.get(requestId)?.resolve(error);
  }

  close(): void {
    for (const end of this.#pending.values()) end.resolve("The session is closed.");
  }
}
