/** Asks for trust, opens a session and leaves it: shared by the terminal and its plain form. */
import { plural } from "../lib/text.ts";
import type { Client } from "../sdk/client.ts";
import { joinHolder } from "./find-session.ts";
import { TerminalSession, type TerminalSessionOptions } from "./session.ts";
import type { Join } from "./session-choice.ts";

/** Finished blocks of a resumed session that are shown. */
export const SHOWN_BLOCKS = 40;

export interface TrustQuestion {
  readonly folder: string;
  readonly items: readonly { readonly kind: string; readonly id: string; readonly shown: string }[];
  accept(): Promise<void>;
}

export const trustChoices = ["trust this folder as it is now", "work without them"] as const;

export const trustTitle = ({ folder, items }: TrustQuestion): string =>
  `${folder} brings ${plural(items.length, "thing")} that would run or decide something`;

/** Many ids begin with the kind. */
export const trustedName = ({ kind, id }: TrustQuestion["items"][number]): string =>
  `${kind} ${id.startsWith(`${kind}:`) ? id.slice(kind.length + 1) : id}`;

interface OpenOptions extends TerminalSessionOptions {
  /** Joins the session in the process that has it open. */
  readonly join?: Join | undefined;
  /** Called when that process has ended. */
  gone(): void;
  /** Connects to a server of this process, if `client` is not one. */
  readonly reconnect?: (() => Promise<Client>) | undefined;
}

/** Opens a session, or joins it in another process. The client of the session may be another one than was given. */
export async function openOrJoin({
  reconnect,
  ...options
}: OpenOptions): Promise<{ readonly session: TerminalSession; readonly isJoined: boolean }> {
  const joined = await joinHolder(options.client, options.resumeId, options);
  const client = joined ?? (await reconnect?.()) ?? options.client;
  try {
    const session = await TerminalSession.open({ ...options, client, ...(joined && { cwd: undefined }) });
    return { session, isJoined: joined !== undefined };
  } catch (error) {
    if (client !== options.client) await client.stop();
    throw error;
  }
}

/**
 * Lets go of the session and of its server. Removes a session in which nothing was said. Returns a line that says how to
 * resume the session.
 */
export async function leaveSession(
  session: TerminalSession | undefined,
  client: Client | undefined,
): Promise<string | undefined> {
  const isEmpty = session?.isNew === true && session.view.main.messages === 0;
  if (session && isEmpty) await client?.deleteSession(session.id).catch(() => undefined);
  await client?.stop();
  return session && !isEmpty ? `Resume this session with: troupe --resume ${session.id.slice(0, 8)}` : undefined;
}
