import * as z from "zod";
import type { ExtensionProfile } from "../../session/session-options.ts";
import type { ClientConnection } from "../connection.ts";

/** Timeout for the client's answer. */
const ANSWER_MS = 15_000;

interface Extension {
  readonly id: string;
  readonly name: string;
  readonly path: string;
  readonly source: string;
}

/** The client that decides how extensions are started, if there is one: it knows runtimes that the server does not. */
export class ExtensionLauncher {
  #provider: ClientConnection | undefined;

  register(connection: ClientConnection): void {
    this.#provider = connection;
  }

  forget(connection: ClientConnection): void {
    if (this.#provider === connection) this.#provider = undefined;
  }

  /** Returns undefined for the default start. Rejects if the client fails to answer. */
  async profile({ id, name, path: modulePath, source }: Extension): Promise<ExtensionProfile | undefined> {
    const params = { id, name, modulePath, source };
    const answer = await this.#provider?.ask("extensionLaunchProvider.resolve", params, { timeoutMs: ANSWER_MS });
    return answer === undefined ? undefined : Answer.parse(answer)?.launch;
  }
}

const Answer = z
  .object({
    launch: z
      .object({
        executable: z.string().min(1),
        args: z.array(z.string()),
        env: z.record(z.string(), z.string().optional()),
      })
      .optional(),
  })
  .nullish();
