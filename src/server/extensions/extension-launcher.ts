import * as z from "zod";
import type { ExtensionProfile } from "../../session/session-options.ts";
import type { Connection } from "../connection.ts";

/** A client that takes longer than this has failed. */
const ANSWER_MS = 15_000;

interface Extension {
  readonly id: string;
  readonly name: string;
  readonly path: string;
  readonly source: string;
}

/** The client that says how extensions are started, where one wants to: it knows runtimes that we do not. */
export class ExtensionLauncher {
  #provider: Connection | undefined;

  register(connection: Connection): void {
    this.#provider = connection;
  }

  forget(connection: Connection): void {
    if (this.#provider === connection) this.#provider = undefined;
  }

  /** Undefined where it is started as usual. Rejects when the client fails to say. */
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
