/**
 * Addresses in rules. This is how they match:
 * - The protocol must match; a bare host means https. Default ports are ignored.
 * - Hosts are compared without case. `*.x.com` is x.com and everything below it.
 * - No path: the whole origin. A path is exact. `/*` at its end makes it a prefix.
 */
export interface UrlPattern {
  readonly protocol: "http:" | "https:";
  /** True when the rule named the protocol. */
  readonly protocolGiven: boolean;
  readonly host: string;
  readonly subdomains: boolean;
  readonly port: string;
  /** Undefined: the whole origin. */
  readonly path?: { readonly value: string; readonly prefix: boolean };
}

/** Returns the pattern, or a sentence on why no address could ever match it. */
export function parseUrlPattern(text: string): UrlPattern | string {
  const [, scheme, rest = ""] = /^(?:([a-z][a-z0-9+.-]*):\/\/)?(.*)$/is.exec(text) ?? [];
  const protocol = `${scheme ?? "https"}:`.toLowerCase();
  if (protocol !== "http:" && protocol !== "https:") return `only http and https can be used, not ${scheme}`;
  const subdomains = rest.startsWith("*.");
  const bare = subdomains ? rest.slice(2) : rest;
  const slash = bare.indexOf("/");
  const authority = slash === -1 ? bare : bare.slice(0, slash);
  const path = slash === -1 ? "" : bare.slice(slash);
  if (authority === "") return "it names no host";
  if (authority.includes("*")) return "a host may contain * only at its start, as in *.example.com";
  if (/[\s?#@\\]/.test(text)) return "it must be a host and a path, without spaces, a query, a fragment or a user name";
  const parsed = tryParse(protocol, authority, path);
  if (parsed === undefined) return `${JSON.stringify(authority)} is not a host`;
  const pattern = {
    protocol,
    protocolGiven: scheme !== undefined,
    host: withoutRootDot(parsed.hostname),
    subdomains,
    port: parsed.port,
  } as const;
  if (path === "" || path === "/" || path === "/*") return pattern;
  const prefix = path.endsWith("/*");
  const value = decode(prefix ? parsed.pathname.slice(0, -1) : parsed.pathname);
  if (value.includes("*")) return "a path may contain * only as /* at its end";
  return { ...pattern, path: { value, prefix } };
}

/**
 * Returns true when the address matches the pattern. With `refusing`, a bare host covers both protocols: denying a host
 * must not leave http open.
 */
export function urlMatches(pattern: UrlPattern, address: string, refusing = false): boolean {
  if (!URL.canParse(address)) return false;
  const url = new URL(address);
  const anyProtocol = refusing && !pattern.protocolGiven && /^https?:$/.test(url.protocol);
  if (url.protocol !== pattern.protocol && !anyProtocol) return false;
  if (url.port !== pattern.port && !(anyProtocol && pattern.port === "")) return false;
  const host = withoutRootDot(url.hostname);
  const hostMatches = host === pattern.host || (pattern.subdomains && host.endsWith(`.${pattern.host}`));
  if (!hostMatches) return false;
  if (pattern.path === undefined) return true;
  const path = decode(url.pathname);
  // A server may decode the path, so an encoded ".." must not leave an allowed prefix.
  if (!refusing && /(?:^|[/\\])\.\.(?:[/\\]|$)/.test(path)) return false;
  return pattern.path.prefix ? path.startsWith(pattern.path.value) : path === pattern.path.value;
}

/** Returns protocol, host and port: the scope of one permission question. */
export function urlOrigin(address: string): string | undefined {
  return URL.canParse(address) ? new URL(address).origin : undefined;
}

function tryParse(protocol: string, authority: string, path: string): URL | undefined {
  const address = `${protocol}//${authority}${path}`;
  return URL.canParse(address) ? new URL(address) : undefined;
}

function withoutRootDot(host: string): string {
  return host.endsWith(".") ? host.slice(0, -1) : host;
}

function decode(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
