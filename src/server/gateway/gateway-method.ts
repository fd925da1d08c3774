/** How a method of the gateway is defined. */

import * as z from "zod";
import type { ClientConnection } from "../connection.ts";
import type { Gateway } from "./gateway.ts";

export interface GatewayCall {
  readonly gateway: Gateway;
  /** The same, for the methods that every server has. */
  readonly server: Gateway;
  readonly connection: ClientConnection;
  readonly signal: AbortSignal;
}

export interface GatewayMethod {
  params(): z.ZodType;
  run(params: unknown, call: GatewayCall): unknown;
}

export function method<S extends z.ZodType>(
  params: () => S,
  run: (params: z.infer<S>, call: GatewayCall) => unknown,
): GatewayMethod {
  // The params were parsed with this schema.
  return { params, run: (given, call) => run(given as z.infer<S>, call) };
}

export const ofSession = <S extends z.ZodRawShape>(shape: S) => z.object({ ...shape, sessionId: z.string() });
