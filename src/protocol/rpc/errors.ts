import type { Json } from "../../lib/json.ts";

/** Codes of JSON-RPC 2.0, and what is ours among those it leaves free. */
export const rpcCodes = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  /** The server cannot take this now: too much at once, not signed in, shutting down. */
  refused: -32000,
  cancelled: -32800,
} as const;

/** What one side answers in place of a result, and what the other side's caller is thrown. */
export class RpcError extends Error {
  override readonly name = "RpcError";
  readonly code: number;
  readonly data: Json | undefined;

  constructor(code: number, message: string, data?: Json) {
    super(message);
    this.code = code;
    this.data = data;
  }
}
