import type { Json } from "../../lib/json.ts";

/** Codes of JSON-RPC 2.0, and our own in the range it leaves free. */
export const rpcCodes = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internalError: -32603,
  /** The server cannot accept this now: too many requests, not signed in, or shutting down. */
  refused: -32000,
  cancelled: -32800,
} as const;

/** The error that one side responds with, and that the other side's caller receives. */
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
