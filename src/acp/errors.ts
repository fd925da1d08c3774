import { isObject } from "../lib/json.ts";
import { RpcError, rpcCodes } from "../protocol/rpc/errors.ts";

/** Codes of the Agent Client Protocol. */
const AUTH_REQUIRED = -32000;
const NOT_FOUND = -32002;

const AUTHENTICATION = "authentication";

/** No model provider accepts a configured key. Editors then show their ways to sign in. */
export const authRequired = (message: string): RpcError =>
  new RpcError(AUTH_REQUIRED, message, { kind: AUTHENTICATION });

export const noSession = (sessionId: string): RpcError =>
  new RpcError(NOT_FOUND, `There is no session ${sessionId}.`, { kind: "session" });

/** Converts an error of the session's server to the codes for editors, for which -32000 means that a key is missing. */
export function editorError(error: unknown): unknown {
  if (!(error instanceof RpcError)) return error;
  const kind = isObject(error.data) ? error.data.kind : undefined;
  const code = error.code === rpcCodes.refused && kind !== AUTHENTICATION ? rpcCodes.internalError : error.code;
  return new RpcError(code, plainMessage(error), error.data);
}

/** Removes the name of the failed method, which the user did not call. */
export const plainMessage = ({ message }: Error): string => message.replace(/^Request \S+ failed with message: /, "");
