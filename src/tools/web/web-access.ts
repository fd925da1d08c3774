import type { ResolveName } from "../../lib/node/checked-dial.ts";

/**
 * The port through which the tools of this folder reach the web, provided by the session. Every option has a safe
 * default.
 */
export interface WebAccess {
  /** The User-Agent header: `troupe/<version>`. */
  readonly userAgent?: string;
  /** Allows loopback addresses, and no other local ones. */
  readonly allowLocalhost?: boolean;
  /** For one call, including redirects. */
  readonly timeoutMs?: number;
  /** Resolves a name to all its addresses (default: the system resolver). */
  readonly resolve?: ResolveName;
  /** Returns the addresses of this machine (default: those of its interfaces). */
  readonly ownAddresses?: () => readonly string[];
}

/** Set for tests with a local server: `TROUPE_WEB_FETCH_ALLOW_LOCALHOST=1`, or the older name. */
export function allowsLocalhost(environment: Readonly<Record<string, string | undefined>>): boolean {
  return environment.TROUPE_WEB_FETCH_ALLOW_LOCALHOST === "1" || environment.COPILOT_WEB_FETCH_ALLOW_LOCALHOST === "1";
}
