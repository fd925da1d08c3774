/** Methods about the server, its machine and the user. This file: the handshake, pings and the shutdown. */

import * as z from "zod";
import { isSameSecret } from "../../../lib/node/same-secret.ts";
import { RpcError, rpcCodes } from "../../../protocol/rpc/errors.ts";
import { version } from "../../../runtime/version.ts";
import { type MethodTable, method, noParams } from "../method.ts";

/** The version of the protocol. */
const PROTOCOL_VERSION = 3;

export const connectionMethods: MethodTable = {
  connect: method(
    () =>
      z.object({
        token: z.string().optional(),
        enableGitHubTelemetryForwarding: z.boolean().optional(),
        supportedTaskKinds: z.array(z.string().max(50)).max(50).default([]),
      }),
    ({ token, enableGitHubTelemetryForwarding: wantsTelemetry = false, supportedTaskKinds }, { connection }) => {
      if (connection.token !== undefined && !isSameSecret(token ?? "", connection.token)) {
        throw new RpcError(rpcCodes.refused, "AUTHENTICATION_FAILED: the connection token is missing or wrong.");
      }
      connection.admit();
      connection.wantsTelemetry = wantsTelemetry;
      connection.taskKinds = new Set(supportedTaskKinds);
      return { ok: true, protocolVersion: PROTOCOL_VERSION, version };
    },
  ),
  ping: method(
    () => z.object({ message: z.string().optional() }),
    ({ message = "" }) => ({
      message: `pong: ${message}`,
      timestamp: new Date().toISOString(),
      protocolVersion: PROTOCOL_VERSION,
    }),
  ),
  "status.get": method(noParams, () => ({ version, protocolVersion: PROTOCOL_VERSION })),
  "runtime.shutdown": method(noParams, async (_, { server }) => {
    await server.shutDown();
  }),
};
