/** Defines a method of the server: a schema for its parameters, and a function. */
import * as z from "zod";
import type { Session } from "../../session/session.ts";
import type { ClientConnection } from "../connection.ts";
import type { Hub } from "../hub.ts";
import type { ServerParts } from "../parts.ts";
import type { HostedSession } from "../sessions/hosted-session.ts";

/** Context that a method receives beside its parameters. */
export interface Call {
  readonly server: ServerParts;
  readonly hub: Hub;
  readonly connection: ClientConnection;
  /** Aborts when the client cancels the request or disconnects. */
  readonly signal: AbortSignal;
}

export interface SessionCall extends Call {
  readonly hosted: HostedSession;
  readonly session: Session;
}

export interface Method {
  /** Called when the method is first used, so that unused schemas cost nothing. */
  params(): z.ZodType;
  /** Returns the result. `undefined` is sent as `null`. */
  run(params: unknown, call: Call): unknown;
}

export type MethodTable = Readonly<Record<string, Method>>;

/** A method of the server as a whole. */
export function method<S extends z.ZodType>(params: () => S, run: (params: z.infer<S>, call: Call) => unknown): Method {
  // The params were parsed with this schema.
  return { params, run: (given, call) => run(given as z.infer<S>, call) };
}

/** A method of one session. `sessionId` is among its params, and the session must be open in this server. */
export function sessionMethod<S extends Readonly<Record<string, z.ZodType>>>(
  shape: () => S,
  run: (params: z.infer<z.ZodObject<S>>, call: SessionCall) => unknown,
): Method {
  return {
    params: () => z.object({ ...shape(), sessionId: z.string() }),
    async run(given, call) {
      const params = given as z.infer<z.ZodObject<S>> & { sessionId: string };
      const hosted = call.hub.require(params.sessionId);
      hosted.touch();
      if (hosted.reopening) await hosted.reopening;
      if (hosted.isHandedOver) await call.hub.takeBack(hosted);
      return run(params, { ...call, hosted, session: hosted.session });
    },
  };
}

/** For methods without params of their own. */
export const nothing = (): Record<never, never> => ({});
export const noParams = (): z.ZodObject => z.object({});
