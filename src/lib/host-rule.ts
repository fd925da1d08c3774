/** Hosts that a sandboxed program may reach, as settings and definitions name them. */
export interface HostRule {
  /** Lower case, without the star. */
  readonly name: string;
  /** Matches only names below it. */
  readonly below: boolean;
  readonly ports: readonly number[];
}

const DEFAULT_PORTS = [80, 443];
const RULE =
  /^(\*\.)?((?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)(?::(\d{1,5}))?$/;

/**
 * Parses `host`, `host:port`, `*.host` or `*.host:port`. Without a port it means 80 and 443. Returns undefined for
 * other text.
 */
export function hostRule(text: string): HostRule | undefined {
  const [, star, name, port] = RULE.exec(text.toLowerCase()) ?? [];
  if (name === undefined) return undefined;
  const isPort = port === undefined || (Number(port) > 0 && Number(port) < 65_536);
  return isPort
    ? { name, below: star !== undefined, ports: port === undefined ? DEFAULT_PORTS : [Number(port)] }
    : undefined;
}

export const HOST_NOTATION = "write host, host:port, *.domain or *.domain:port";
/** Maximum for one program of a project: the user has to read them. */
export const MAX_PROGRAM_HOSTS = 50;
/** Shown instead of hosts if there are none. */
export const NO_NETWORK = "none (no network)";
