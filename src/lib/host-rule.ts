/** Hosts that a sandboxed program may reach, as settings and definitions name them. */
export interface HostRule {
  /** Lower case; without the star. */
  readonly name: string;
  /** Only names below it. */
  readonly below: boolean;
  readonly ports: readonly number[];
}

const DEFAULT_PORTS = [80, 443];
const RULE =
  /^(\*\.)?((?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)(?::(\d{1,5}))?$/;

/** `host`, `host:port`, `*.host` or `*.host:port`; without a port it means 80 and 443. Returns undefined for other text. */
export function hostRule(text: string): HostRule | undefined {
  const [, star, name, port] = RULE.exec(text.toLowerCase()) ?? [];
  if (name === undefined) return undefined;
  const isPort = port === undefined || (Number(port) > 0 && Number(port) < 65_536);
  return isPort
    ? { name, below: star !== undefined, ports: port === undefined ? DEFAULT_PORTS : [Number(port)] }
    : undefined;
}

export const HOST_NOTATION = "write host, host:port, *.domain or *.domain:port";
/** For one program of a project: a person has to read them. */
export const MAX_PROGRAM_HOSTS = 50;
/** Said in place of hosts when there are none. */
export const NO_NETWORK = "none (no network)";
