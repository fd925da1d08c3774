/** The factories that a session's extensions provide. They are removed when their extension leaves. */
import * as z from "zod";
import type { Factory, FactoryMeta, FactorySource } from "../../factories/ports.ts";
import type { Json } from "../../lib/json.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { ClientConnection } from "../connection.ts";

/** Timeout for the body of a factory. The limits of a run end it sooner. */
const EXECUTE_MS = 24 * 60 * 60 * 1000;
const ABORT_MS = 5_000;

const JsonValue: z.ZodType<Json> = z.json();
const text = (characters: number) => z.string().min(1).max(characters);
const limit = z.number().nullish();
/** SDK 1.0.15 calls factories workflows, in its callbacks too. */
type Family = "factory" | "workflow";

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

const callbacks = {
  factory: { execute: "factory.execute", abort: "factory.abort" },
  workflow: { execute: "workflow.execute", abort: "workflow.abort" },
} as const;

const Answer = z.object({ result: JsonValue.optional() }).nullish();

export class ClientFactories implements FactorySource {
  readonly #sessionId: string;
  readonly #brought = new Map<
    string,
    { readonly meta: FactoryMeta; readonly connection: ClientConnection; readonly family: Family }
  >();

  constructor(sessionId: string) {
    this.#sessionId = sessionId;
  }

  /** Throws, and changes nothing, if another client has a factory of this name. */
  declare(connection: ClientConnection, given: { readonly [F in Family]?: readonly FactoryMeta[] | undefined }): void {
    const metas = [...(given.factory ?? []), ...(given.workflow ?? [])];
    for (const { name } of metas) {
      const known = this.#brought.get(name);
      if (!known || known.connection === connection) continue;
      throw new TroupeError(
        "usage",
        `The extension ${known.connection.extension?.name} already has a factory "${name}".`,
      );
    }
    this.withdraw(connection);
    for (const meta of given.factory ?? []) this.#brought.set(meta.name, { meta, connection, family: "factory" });
    for (const meta of given.workflow ?? []) this.#brought.set(meta.name, { meta, connection, family: "workflow" });
  }

  withdraw(connection: ClientConnection): void {
    for (const [name, brought] of this.#brought) if (brought.connection === connection) this.#brought.delete(name);
  }

  list(): readonly FactoryMeta[] {
    return [...this.#brought.values()].map(({ meta }) => meta);
  }

  find(name: string): Factory | undefined {
    const brought = this.#brought.get(name);
    if (!brought) return undefined;
    const { meta, connection, family } = brought;
    const sessionId = this.#sessionId;
    return {
      meta,
      owner: connection,
      isThere: () => !connection.isClosed,
      async execute(execution, signal) {
        const params = { sessionId, name, ...execution };
        const asked = connection.ask(callbacks[family].execute, params, { signal, timeoutMs: EXECUTE_MS });
        const answer = Answer.parse(await asked);
        return answer?.result === undefined ? {} : { result: answer.result };
      },
      abort(execution) {
        const asked = connection.ask(callbacks[family].abort, { sessionId, ...execution }, { timeoutMs: ABORT_MS });
        // A failed abort request is ignored: the result of the body is no longer used.
        asked.catch(() => undefined);
      },
    };
  }
}
