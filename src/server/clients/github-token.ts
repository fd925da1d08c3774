/** GitHub tokens that a client acquires for its session on demand. They are renewed before they expire. */

import * as z from "zod";
import { defined } from "../../lib/defined.ts";
import { TroupeError } from "../../protocol/errors.ts";
import type { ClientConnection } from "../connection.ts";
import type { Hub } from "../hub.ts";
import type { CreateParams } from "../sessions/session-options.ts";

const ACQUIRE_MS = 60_000;
const HOST = "github.com";
/** Fraction of a token's lifetime after which it is renewed. */
const RENEW_AFTER = 0.8;
const MIN_RENEW_MS = 5_000;
const MAX_RENEW_MS = 24 * 60 * 60 * 1000;

const Acquired = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("token"), accessToken: z.string().min(1), expiresIn: z.number() }),
  z.object({ kind: z.literal("cancelled") }),
]);

interface Provider {
  readonly connection: ClientConnection;
  readonly registrationId: string;
}

/**
 * Opens a session with a token from its client, if the client registered a provider. Throws if the client cancels or
 * cannot be reached: a session is not opened without its intended identity.
 */
export async function openWithToken<P extends CreateParams>(
  { hub, connection }: { hub: Hub; connection: ClientConnection },
  params: P,
  open: (params: P) => Promise<object>,
): Promise<object> {
  const { gitHubTokenProviderRegistrationId: registrationId, gitHubToken } = params;
  if (registrationId === undefined) return open(params);
  if (gitHubToken !== undefined) {
    throw new TroupeError("usage", "gitHubToken and gitHubTokenProvider cannot both be set. Omit one.");
  }
  const provider = { connection, registrationId };
  const { token, expiresIn } = await acquire(provider, params.sessionId, "initial");
  const opened = await open({ ...params, gitHubToken: token });
  const { sessionId } = z.object({ sessionId: z.string() }).parse(opened);
  renewLater(hub, sessionId, { provider, expiresIn });
  return opened;
}

async function acquire(
  { connection, registrationId }: Provider,
  sessionId: string | undefined,
  reason: "initial" | "refresh",
): Promise<{ readonly token: string; readonly expiresIn: number }> {
  const params = { registrationId, host: HOST, reason, ...defined({ sessionId }) };
  const answer = await connection.ask("gitHubToken.getToken", params, { timeoutMs: ACQUIRE_MS }).catch((cause) => {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TroupeError("configuration", `The client did not acquire a GitHub token: ${why}`, { cause });
  });
  const acquired = Acquired.safeParse(answer);
  if (!acquired.success) throw new TroupeError("configuration", "The client's answer contains no GitHub token.");
  if (acquired.data.kind === "cancelled") {
    throw new TroupeError("configuration", "The client cancelled the acquisition of a GitHub token.");
  }
  const { accessToken, expiresIn } = acquired.data;
  return { token: accessToken, expiresIn };
}

/** Schedules the renewal of a token. A busy session is retried until it is idle, since options change only then. */
function renewLater(hub: Hub, sessionId: string, what: { provider: Provider; expiresIn: number }): void {
  const { provider, expiresIn } = what;
  const wait = Math.min(Math.max(expiresIn * 1000 * RENEW_AFTER, MIN_RENEW_MS), MAX_RENEW_MS);
  const timer = setTimeout(() => {
    const hosted = hub.find(sessionId);
    if (!hosted || provider.connection.isClosed) return;
    if (hosted.isBusy) {
      renewLater(hub, sessionId, { provider, expiresIn: 0 });
      return;
    }
    acquire(provider, sessionId, "refresh")
      .then(async ({ token, expiresIn: next }) => {
        await hub.reconfigure(hosted, { gitHubToken: token });
        renewLater(hub, sessionId, { provider, expiresIn: next });
      })
      .catch((error: unknown) => {
        const why = error instanceof Error ? error.message : String(error);
        hosted.session.record.warn("github_token", `The session's GitHub token was not renewed: ${why}`);
      });
  }, wait);
  timer.unref();
}
