/**
 * Tokens for remote MCP servers, brought by the program that hosts a session: it signs people in itself. A host that
 * brought none is not asked again for the same server before somebody wants it to be.
 */

import type { TokenRequest } from "../../tools/mcp/oauth/oauth-host.ts";
import type { SessionTokens } from "../mcp/session-token-port.ts";
import type { SessionSetup } from "./session-setup.ts";

export function sessionTokens({
  log,
  listener,
  shared,
}: Pick<SessionSetup, "log" | "listener" | "shared">): SessionTokens {
  const declined = new Map<string, { readonly serverUrl: string }>();
  const isDeclined = (name: string, url: string): boolean => declined.get(name)?.serverUrl === url;
  return {
    owner: log.sessionId,
    canAsk: () => listener.session?.requests.canAnswer("mcp_oauth") ?? false,
    async request(wanted, signal) {
      const { session } = listener;
      const { serverName, serverUrl } = wanted;
      if (!session || isDeclined(serverName, serverUrl)) return { kind: "cancelled" };
      const answer = await session.requests.request("mcp_oauth", asTold(wanted), { signal });
      if (typeof answer === "object" && answer.kind === "token") {
        // Whatever a server makes of it, nobody reads it in a log or an answer.
        shared.addSecret(answer.accessToken, `token of ${serverName}`);
        return answer;
      }
      const isFinal = wanted.reason === "initial" || wanted.reason === "reauth";
      if (isFinal && !signal.aborted) declined.set(serverName, { serverUrl });
      return { kind: "cancelled" };
    },
    hasDeclined: ({ name, transport }) => transport.type !== "stdio" && isDeclined(name, transport.url),
    askAgain(serverName) {
      if (serverName === undefined) declined.clear();
      else declined.delete(serverName);
    },
  };
}

function asTold({ wwwAuthenticateParams, staticClientConfig, ...request }: TokenRequest) {
  return {
    ...request,
    ...(wwwAuthenticateParams && { wwwAuthenticateParams: { ...wwwAuthenticateParams } }),
    ...(staticClientConfig && { staticClientConfig: { ...staticClientConfig } }),
  };
}
