/**
 * Tokens for remote MCP servers from the program that hosts the session, which signs users in itself. If the host
 * provides none, it is asked again for the same server only after `askAgain`.
 */

import type { TokenRequest } from "../../tools/mcp/oauth/oauth-host.ts";
import type { SessionTokens } from "../mcp/session-token-port.ts";
import type { SessionSetup } from "./session-setup.ts";

export function sessionTokens({
  log,
  channel,
  shared,
}: Pick<SessionSetup, "log" | "channel" | "shared">): SessionTokens {
  const declined = new Map<string, { readonly serverUrl: string }>();
  const isDeclined = (name: string, url: string): boolean => declined.get(name)?.serverUrl === url;
  return {
    owner: log.sessionId,
    canAsk: () => channel.session?.requests.canAnswer("mcp_oauth") ?? false,
    async request(wanted, signal) {
      const { session } = channel;
      const { serverName, serverUrl } = wanted;
      if (!session || isDeclined(serverName, serverUrl)) return { kind: "cancelled" };
      const answer = await session.requests.request("mcp_oauth", asRequest(wanted), { signal });
      if (typeof answer === "object" && answer.kind === "token") {
        // Redact the token from logs and answers, whatever a server does with it.
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

function asRequest({ wwwAuthenticateParams, staticClientConfig, ...request }: TokenRequest) {
  return {
    ...request,
    ...(wwwAuthenticateParams && { wwwAuthenticateParams: { ...wwwAuthenticateParams } }),
    ...(staticClientConfig && { staticClientConfig: { ...staticClientConfig } }),
  };
}
