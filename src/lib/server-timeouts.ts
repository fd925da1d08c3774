/**
 * Settings for connections to Postgres, so that the server ends what a client that vanished has left. By default it would
 * wait for two hours, and a transaction would hold its locks that long: no other worker could take the sessions in it.
 */

/** A live client is never silent for this long in a transaction. */
const TRANSACTION_SECONDS = 10;
/** After so many seconds without a packet the server asks whether the client is there. */
const SILENCE_SECONDS = 10;
const PROBE_SECONDS = 5;
/** A client that leaves packets unanswered for so long is gone. */
const UNANSWERED_SECONDS = 20;

const SETTINGS = {
  idle_in_transaction_session_timeout: `${TRANSACTION_SECONDS}s`,
  tcp_keepalives_idle: SILENCE_SECONDS,
  tcp_keepalives_interval: PROBE_SECONDS,
  tcp_user_timeout: `${UNANSWERED_SECONDS}s`,
};

/** Adds the settings to the address of a database. Options that are there already win. */
export function withServerTimeouts(url: string): string {
  const address = new URL(url);
  const own = Object.entries(SETTINGS).map(([name, value]) => `-c ${name}=${value}`);
  const given = address.searchParams.get("options");
  address.searchParams.set("options", [...own, ...(given ? [given] : [])].join(" "));
  return address.href;
}

/** The same question from this side: the silence after which a client asks whether the server is there. */
export const CLIENT_SILENCE_MS = SILENCE_SECONDS * 1_000;
