/**
 * Signs in to a remote MCP server from a session, as `troupe mcp login` does. The address is returned at once, and
 * clients that open addresses are asked to open it. When the user is back, the server is connected with the new token.
 */
import { deferred } from "../../lib/deferred.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { SessionSetup } from "../setup/session-setup.ts";
import type { SessionMcp } from "./session-mcp.ts";

/** Resolves with the address of the sign-in; undefined if the server needs none or the client signs in by itself. */
export async function signInToServer(
  mcp: SessionMcp,
  serverName: string,
  setup: Pick<SessionSetup, "disk" | "stateRoot" | "channel">,
): Promise<URL | undefined> {
  await mcp.opened();
  const server = mcp.servers.find(({ config }) => config.name === serverName);
  if (!server) throw new TroupeError("usage", `MCP server '${serverName}' is not configured.`);
  const { config } = server;
  if (config.transport.type === "stdio")
    throw new TroupeError("usage", `MCP server '${serverName}' is not a remote server: there is nowhere to sign in.`);
  const [{ login }, { fileSignIn }, { guardedFetch }, { httpEndpoint }] = await Promise.all([
    import("../../tools/mcp/oauth/oauth.ts"),
    import("../../tools/mcp/oauth/oauth-store.ts"),
    import("../../tools/mcp/guarded-fetch.ts"),
    import("../../tools/mcp/http-endpoint.ts"),
  ]);
  const { disk, stateRoot, channel } = setup;
  const reach = await guardedFetch(httpEndpoint(config));
  const stop = new AbortController();
  const { session } = channel;
  const signal = session ? AbortSignal.any([stop.signal, session.queue.closed]) : stop.signal;
  const address = deferred<URL | undefined>();
  const signedIn = login({
    config,
    store: fileSignIn({ disk, stateRoot, config }),
    fetch: reach.fetch,
    signal,
    onAuthorize(url) {
      address.resolve(url);
      void open(channel, { serverName, url, stop });
    },
  });
  const done = signedIn.then(async (result) => {
    if (result === "signed-in") {
      await server.reconnect();
      await server.definitions(signal);
      await channel.emit("session.info", { infoType: "mcp", message: `Signed in to ${serverName}.` });
    }
    address.resolve(undefined);
  });
  done
    .catch((error: unknown) => {
      address.reject(error);
      if (!signal.aborted) channel.warn("mcp", error instanceof Error ? error.message : String(error));
    })
    .finally(() => {
      stop.abort();
      reach.close();
    });
  return address.promise;
}

/** Asks clients to open the address. Only a refusal ends the sign-in: a client may be unable to open it. */
async function open(
  channel: SessionSetup["channel"],
  { serverName, url, stop }: { serverName: string; url: URL; stop: AbortController },
): Promise<void> {
  const requests = channel.session?.requests;
  if (!requests?.canAnswer("elicitation")) return;
  const message = `Sign in to the MCP server ${serverName}.`;
  const data = { mode: "url" as const, url: url.href, message };
  const answer = await requests.request("elicitation", data, { signal: stop.signal }).catch(() => undefined);
  if (typeof answer !== "object" || answer.action !== "decline") return;
  stop.abort(new TroupeError("failed", "The sign-in was declined."));
  await channel.emit("session.info", { infoType: "mcp", message: `The sign-in to ${serverName} was declined.` });
}
