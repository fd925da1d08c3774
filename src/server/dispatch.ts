/**
 * Maps a request to its method. Unknown methods, invalid parameters and internal errors give three different responses.
 */
import type * as z from "zod";
import { isObject } from "../lib/json.ts";
import { ModelError } from "../model/model-error.ts";
import { TroupeError, withHint } from "../protocol/errors.ts";
import { RpcError, rpcCodes } from "../protocol/rpc/errors.ts";
import type { Method } from "./methods/method.ts";

export interface Dispatched<M> {
  readonly method: M;
  readonly params: unknown;
  /**
   * Returns the given parameters that the method does not know, and members of parameters that are objects, as
   * `parameter.member`.
   */
  unknown(): Readonly<Record<string, unknown>>;
}

export class Dispatcher<M extends Pick<Method, "params">> {
  readonly #methods: Readonly<Record<string, M>>;
  readonly #schemas = new Map<string, z.ZodType>();

  constructor(methods: Readonly<Record<string, M>>) {
    this.#methods = methods;
  }

  /** Returns the method and its validated parameters. */
  find(name: string, params: unknown): Dispatched<M> {
    const method = Object.hasOwn(this.#methods, name) ? this.#methods[name] : undefined;
    if (!method) throw new RpcError(rpcCodes.methodNotFound, `Unhandled method ${name}`);
    const schema = this.#schemas.get(name) ?? method.params();
    this.#schemas.set(name, schema);
    // Some clients wrap the parameter object in an array, or send an empty array.
    const given = Array.isArray(params) && params.length <= 1 ? params[0] : params;
    const checked = schema.safeParse(given ?? {});
    if (checked.success) return { method, params: checked.data, unknown: () => unknownIn(given, schema) };
    throw new RpcError(rpcCodes.invalidParams, `Invalid params for ${name}: ${wrongParts(checked.error)}`);
  }
}

function unknownIn(given: unknown, schema: z.ZodType): Readonly<Record<string, unknown>> {
  return Object.fromEntries(unknownMembers("", given, schema));
}

/** Looks into objects, lists, maps, and the alternative that fits. Objects with free names have no unknown members. */
function unknownMembers(path: string, value: unknown, schema: z.ZodType): (readonly [string, unknown])[] {
  const { innerType, element, options, valueType, shape, catchall } = definitionOf(schema);
  if (innerType) return unknownMembers(path, value, innerType);
  if (element) return [value].flat().flatMap((one) => unknownMembers(path, one, element));
  const fitting = options?.find((option) => option.safeParse(value).success);
  if (fitting) return unknownMembers(path, value, fitting);
  if (!isObject(value) || catchall) return [];
  return Object.entries(value).flatMap(([name, member]): (readonly [string, unknown])[] => {
    const inner = path === "" ? name : `${path}.${name}`;
    if (shape && !Object.hasOwn(shape, name)) return [[inner, member]];
    const known = shape?.[name] ?? valueType;
    return known ? unknownMembers(inner, member, known) : [];
  });
}

/** The parts of zod's schemas that say which names an object has. */
interface SchemaDefinition {
  readonly shape?: Readonly<Record<string, z.ZodType>>;
  /** Set for an object with free names. */
  readonly catchall?: z.ZodType;
  /** The schema within `optional`, `nullish` and the like. */
  readonly innerType?: z.ZodType;
  /** Of an array. */
  readonly element?: z.ZodType;
  /** Of a union. */
  readonly options?: readonly z.ZodType[];
  /** Of a map. */
  readonly valueType?: z.ZodType;
}

const definitionOf = (schema: z.ZodType): SchemaDefinition => schema.def as SchemaDefinition;

const MAX_PARTS = 5;

function wrongParts(error: z.ZodError): string {
  const parts = error.issues.map(({ path, message }) =>
    [...(path.length > 0 ? [path.join(".")] : []), message].join(": "),
  );
  const rest = parts.length - MAX_PARTS;
  return [...parts.slice(0, MAX_PARTS), ...(rest > 0 ? [`and ${rest} more`] : [])].join("; ");
}

/** Converts a failure to the protocol's error response. */
export function answerTo(name: string, error: unknown, onDefect: (error: unknown) => void): RpcError {
  if (error instanceof RpcError) return error;
  const rpcErrorOf = (text: string, kind: string): RpcError =>
    new RpcError(rpcCodes.internalError, `Request ${name} failed with message: ${text}`, { kind });
  if (error instanceof TroupeError) {
    return rpcErrorOf(withHint(error.message, error.hint), error.kind);
  }
  if (error instanceof ModelError) return rpcErrorOf(error.message, "provider");
  onDefect(error);
  return rpcErrorOf(error instanceof Error ? error.message : String(error), "defect");
}
