/** The factories that the extensions of a session bring: they come and go with them. */
import * as z from "zod";
import type { Factory, FactoryMeta, FactorySource } from "../factories/ports.ts";
import type { Json } from "../lib/json.ts";
import { TroupeError } from "../protocol/errors.ts";
import type { Connection } from "./connection.ts";

/** A body may take its time; limits of the run end it sooner. */
const EXECUTE_MS = 24 * 60 * 60 * 1000;
const ABORT_MS = 5_000;

const JsonValue: z.ZodType<Json> = z.json();
const text = (characters: number) => z.string().min(1).max(characters);
const limit = z.number().optional();

export const factoryMeta = () =>
  z.object({
    name: text(200),
    description: z.string().max(8_000),
    phases: z.array(z.object({ title: text(200), detail: z.string().max(2_000).optional() })).max(200),
    argsSchema: JsonValue.optional(),
    limits: factoryLimits().optional(),
  });

export const factoryLimits = () =>
  z.object({ maxConcurrentSubagents: limit, maxTotalSubagents: limit, timeoutSeconds: limit, maxAiCredits: limit });

const Answer = z.object({ result: JsonValue.optional() }).nullish();

export class ClientFactories implements FactorySource {
  readonly #sessionId: string;
  readonly #brought = new Map<string, { readonly meta: FactoryMeta; readonly connection: Connection }>();

  constructor(sessionId: string) {
    this.#sessionId = sessionId;
  }

  /** Throws when one of this name is another's, and then changes nothing. */
  declare(connection: Connection, metas: readonly FactoryMeta[]): void {
    for (const { name } of metas) {
      const known = this.#brought.get(name);
      if (!known || known.connection === connection) continue;
      throw new TroupeError(
        "usage",
        `The extension ${known.connection.extension?.name} has a factory "${name}" already.`,
      );
    }
    this.withdraw(connection);
    for (const meta of metas) this.#brought.set(meta.name, { meta, connection });
  }

  withdraw(connection: Connection): void {
    for (const [name, brought] of this.#brought) if (brought.connection === connection) this.#brought.delete(name);
  }

  list(): readonly FactoryMeta[] {
    return [...this.#brought.values()].map(({ meta }) => meta);
  }

  find(name: string): Factory | undefined {
    const brought = this.#brought.get(name);
    if (!brought) return undefined;
    const { meta, connection } = brought;
    const sessionId = this.#sessionId;
    return {
      meta,
      owner: connection,
      isThere: () => !connection.isClosed,
      async execute(execution, signal) {
        const params = { sessionId, name, ...execution };
        const answer = Answer.parse(await connection.ask("factory.execute", params, { signal, timeoutMs: EXECUTE_MS }));
        return answer?.result === undefined ? {} : { result: answer.result };
      },
      abort(runId) {
        const asked = connection.ask("factory.abort", { sessionId, runId }, { timeoutMs: ABORT_MS });
        // A body that does not listen is no longer listened to either.
        asked.catch(() => undefined);
      },
    };
  }
}
