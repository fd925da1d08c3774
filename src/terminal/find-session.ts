/** Finds the session that the command line asks for, through the contract. */
import { TroupeError } from "../protocol/errors.ts";
import type { Client } from "../sdk/client.ts";
import type { Join, SessionChoice } from "./session-choice.ts";

/** Undefined for a new session. Throws when the session does not exist or several fit. */
export async function findSession(client: Client, choice: SessionChoice, cwd: string): Promise<string | undefined> {
  switch (choice.kind) {
    case "new":
      return undefined;
    case "continue": {
      const params = { context: { cwd } };
      const last = (await client.request("sessions.getLastForContext", params)) as { sessionId?: string };
      if (last.sessionId === undefined) throw new TroupeError("usage", "There is no earlier session in this folder.");
      return last.sessionId;
    }
    case "id": {
      const known = await client.listSessions();
      return known.some(({ sessionId }) => sessionId === choice.sessionId) ? choice.sessionId : undefined;
    }
    case "resume":
    case "attach":
      return findSessionId(client, choice.reference);
  }
}

async function findSessionId(client: Client, reference: string): Promise<string> {
  const all = await client.listSessions();
  const exact = all.find(({ sessionId }) => sessionId === reference);
  if (exact) return exact.sessionId;
  const found = all.filter(
    ({ sessionId, name }) => name === reference || (reference.length >= 7 && sessionId.startsWith(reference)),
  );
  const [one, other] = found;
  if (one === undefined) {
    throw new TroupeError("usage", `There is no session "${reference}".`, { hint: "See: troupe sessions list" });
  }
  if (other !== undefined)
    throw new TroupeError("usage", `${found.length} sessions match "${reference}". Use more of the id.`);
  return one.sessionId;
}

/** The session that was used last of those that the server has open; undefined when it has none. */
export async function openInServer(client: Client): Promise<string | undefined> {
  const all = await client.listSessions();
  const sessionIds = all.map(({ sessionId }) => sessionId);
  const { inUse } = (await client.request("sessions.checkInUse", { sessionIds })) as { inUse: readonly string[] };
  const open = all.filter(({ sessionId }) => inUse.includes(sessionId));
  return open.sort((one, other) => other.modifiedTime.localeCompare(one.modifiedTime))[0]?.sessionId;
}

/** The process that has a session open. */
export type SessionOwner =
  | { readonly kind: "nobody" | "died" }
  | { readonly kind: "process"; readonly pid: number; readonly isHere: boolean };

export async function holdersOf(client: Client, sessionIds: readonly string[]) {
  return (await client.request("sessions.getHolders", { sessionIds })) as {
    readonly ownPid: number;
    readonly holders: readonly { readonly sessionId: string; readonly holder: SessionOwner }[];
  };
}

/** Undefined when the session is not open in another process of this machine that can be joined. */
export async function joinHolder(
  client: Client,
  sessionId: string | undefined,
  { join, gone }: { readonly join?: Join | undefined; gone(): void },
): Promise<Client | undefined> {
  if (!join || sessionId === undefined) return undefined;
  const { ownPid, holders } = await holdersOf(client, [sessionId]);
  const holder = holders[0]?.holder;
  if (holder?.kind !== "process" || !holder.isHere || holder.pid === ownPid) return undefined;
  return join(holder.pid, gone);
}
