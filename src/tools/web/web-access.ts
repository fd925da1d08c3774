/** How tools reach the web. The session fills it in; what is left out has a safe default. */
export interface WebAccess {
  /** As sent to servers: `troupe/<version>`. */
  readonly userAgent?: string;
  /** Lets loopback addresses through, and only those. */
  readonly allowLocalhost?: boolean;
  /** For one call, redirects and all. */
  readonly timeoutMs?: number;
  /** All addresses of a name; the system's resolver unless given. */
  readonly resolve?: (host: string) => Promise<readonly ResolvedAddress[]>;
  /** The addresses of this machine; those of its interfaces unless given. */
  readonly ownAddresses?: () => readonly string[];
}

export interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

/** Set for tests of a local server: `TROUPE_WEB_FETCH_ALLOW_LOCALHOST=1`, or the name older scripts use. */
export function allowsLocalhost(environment: Readonly<Record<string, string | undefined>>): boolean {
  return environment.TROUPE_WEB_FETCH_ALLOW_LOCALHOST === "1" || environment.COPILOT_WEB_FETCH_ALLOW_LOCALHOST === "1";
}
