import type { ListSessionsResponse } from "@agentclientprotocol/sdk";
import { defined } from "../lib/defined.ts";
import { RpcError, rpcCodes } from "../protocol/rpc/errors.ts";
import type { Client } from "../sdk/client.ts";

const PAGE = 100;

/**
 * Returns a page of the sessions that can be loaded, the newest first. The cursor names the last session of the
 * previous page, so that new sessions do not shift the pages.
 */
export async function sessionPage(
  client: Client,
  { cwd, cursor }: { readonly cwd?: string | null | undefined; readonly cursor?: string | null | undefined },
): Promise<ListSessionsResponse> {
  const found = await client.listSessions(cwd ? { cwd } : undefined);
  const all = found.toSorted((one, other) => other.modifiedTime.localeCompare(one.modifiedTime));
  const last = cursor ? all.findIndex(({ sessionId }) => sessionId === cursor) : -1;
  if (cursor && last < 0) throw new RpcError(rpcCodes.invalidParams, "The cursor is not valid. List from the start.");
  const page = all.slice(last + 1, last + 1 + PAGE);
  const sessions = page.flatMap(({ sessionId, context, name, summary, modifiedTime: updatedAt }) => {
    const title = name ?? summary;
    return context ? [{ sessionId, cwd: context.cwd, updatedAt, ...defined({ title }) }] : [];
  });
  const next = last + 1 + PAGE < all.length ? page.at(-1)?.sessionId : undefined;
  return { sessions, ...defined({ nextCursor: next }) };
}
