/** From a request to its method: what is unknown, what is wrong and what is a defect are three different answers. */
import type * as z from "zod";
import { ModelError } from "../model/model-error.ts";
import { TroupeError, withHint } from "../protocol/errors.ts";
import { RpcError, rpcCodes } from "../protocol/rpc/errors.ts";
import type { Method, MethodTable } from "./methods/method.ts";

export interface Dispatched {
  readonly method: Method;
  readonly params: unknown;
}

export class Dispatcher {
  readonly #methods: MethodTable;
  readonly #schemas = new Map<string, z.ZodType>();

  constructor(methods: MethodTable) {
    this.#methods = methods;
  }

  /** The method and what it was given, checked. */
  find(name: string, params: unknown): Dispatched {
    const method = Object.hasOwn(this.#methods, name) ? this.#methods[name] : undefined;
    if (!method) throw new RpcError(rpcCodes.methodNotFound, `Unhandled method ${name}`);
    const schema = this.#schemas.get(name) ?? method.params();
    this.#schemas.set(name, schema);
    // Some clients put the one object into a list, also where there is none.
    const given = Array.isArray(params) && params.length <= 1 ? params[0] : params;
    const checked = schema.safeParse(given ?? {});
    if (checked.success) return { method, params: checked.data };
    throw new RpcError(rpcCodes.invalidParams, `Invalid params for ${name}: ${wrongParts(checked.error)}`);
  }
}

const MAX_PARTS = 5;

function wrongParts(error: z.ZodError): string {
  const parts = error.issues.map(({ path, message }) =>
    [...(path.length > 0 ? [path.join(".")] : []), message].join(": "),
  );
  const rest = parts.length - MAX_PARTS;
  return [...parts.slice(0, MAX_PARTS), ...(rest > 0 ? [`and ${rest} more`] : [])].join("; ");
}

/** What a client is told of a failure, in the words of the contract. */
export function answerTo(name: string, error: unknown, onDefect: (error: unknown) => void): RpcError {
  if (error instanceof RpcError) return error;
  const told = (text: string, kind: string): RpcError =>
    new RpcError(rpcCodes.internalError, `Request ${name} failed with message: ${text}`, { kind });
  if (error instanceof TroupeError) {
    return told(withHint(error.message, error.hint), error.kind);
  }
  if (error instanceof ModelError) return told(error.message, "provider");
  onDefect(error);
  return told(error instanceof Error ? error.message : String(error), "defect");
}
