/**
 * The allowed addresses of a remote server. The user may name an address of the local machine or network. A project or
 * a plugin may not, because services there trust local clients.
 */
import { addressKind, isLocalName, parseAddress, refusalOf, refusalOfName } from "../../lib/address.ts";
import { type ResolvedAddress, systemResolve } from "../../lib/node/checked-dial.ts";
import type { McpHttpTransport, McpServerConfig } from "./server.ts";

export interface HttpEndpoint {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** Local hosts that the user named. */
  readonly privateHosts: ReadonlySet<string>;
}

/** An address or URL that must not be reached; the message gives the reason. */
export class EndpointError extends Error {
  override readonly name = "EndpointError";
}

const MAX_URL_CHARACTERS = 4096;
const MAX_HEADERS = 50;
const MAX_HEADER_CHARACTERS = 8192;
/** Set by the connection; a configuration cannot change them. */
const RESERVED_HEADERS =
  /^(host|connection|content-length|content-type|transfer-encoding|upgrade|te|trailer|expect|keep-alive|accept|accept-encoding|mcp-.*|proxy-.*|last-event-id)$/i;
/** Names that no public server can have. */
const PRIVATE_NAME = /^[^.]+$|\.(internal|intranet|local|lan|corp|home|private|home\.arpa)$/i;

export function httpEndpoint(config: McpServerConfig, allowPrivateHosts: readonly string[] = []): HttpEndpoint {
  if (config.transport.type === "stdio") throw new EndpointError("it is not a remote server");
  const url = urlOf(config.transport);
  const mayNamePrivate = config.scope !== "project" && config.scope !== "plugin";
  const host = hostOf(url);
  const named = mayNamePrivate && (parseAddress(host) !== undefined || isLocalName(host) || PRIVATE_NAME.test(host));
  const privateHosts = new Set([...allowPrivateHosts.map((name) => name.toLowerCase()), ...(named ? [host] : [])]);
  return { url, headers: checkedHeaders(config.transport.headers), privateHosts };
}

function urlOf({ url: text }: McpHttpTransport): URL {
  if (text.length > MAX_URL_CHARACTERS)
    throw new EndpointError(`its URL is longer than ${MAX_URL_CHARACTERS} characters`);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) throw new EndpointError("its URL is not complete");
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new EndpointError(`its URL begins with ${url.protocol}, but only http and https are supported`);
  if (url.username !== "" || url.password !== "")
    throw new EndpointError("its URL contains a user name or password; use headers");
  url.hash = "";
  return url;
}

function checkedHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(headers);
  if (entries.length > MAX_HEADERS) throw new EndpointError(`it has more than ${MAX_HEADERS} headers`);
  for (const [name, value] of entries) {
    if (!/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/.test(name))
      throw new EndpointError("one of its headers has no valid name");
    if (RESERVED_HEADERS.test(name)) throw new EndpointError(`its header ${name} cannot be set`);
    if (value.length > MAX_HEADER_CHARACTERS || /[^\t\x20-\x7e\x80-\xff]/.test(value))
      throw new EndpointError(`the value of its header ${name} has characters that a header cannot have`);
  }
  return Object.fromEntries(entries);
}

/**
 * Returns all addresses of the host, each one checked. The caller must connect to these, so that the name cannot change
 * between check and connection. Cloud metadata addresses are never reached, whoever names them.
 */
export async function dialAddresses(url: URL, endpoint: HttpEndpoint): Promise<readonly ResolvedAddress[]> {
  const host = hostOf(url);
  const isPrivateNamed = endpoint.privateHosts.has(host);
  const nameRefusal = refusalOfName(host, { allowLocalhost: isPrivateNamed });
  if (nameRefusal !== undefined) throw addressError(host, nameRefusal);
  const literal = parseAddress(host);
  const addresses = literal ? [{ address: host, family: literal.length === 4 ? 4 : 6 }] : await resolve(host);
  for (const { address } of addresses) {
    const reason = refusalOf(address);
    const isNear = ["loopback", "private"].includes(addressKind(address));
    if (reason !== undefined && !(isPrivateNamed && isNear)) throw addressError(host, reason);
  }
  return addresses;
}

async function resolve(host: string): Promise<readonly ResolvedAddress[]> {
  const addresses = await systemResolve(host).catch(() => []);
  if (addresses.length === 0) throw new EndpointError(`the name ${host} could not be resolved`);
  return addresses;
}

export function hostOf(url: URL): string {
  return url.hostname.toLowerCase().replace(/^\[(.*)\]$/, "$1");
}

function addressError(host: string, reason: string): EndpointError {
  const remedy = "Addresses of this machine or its network are allowed only if the user's own settings name them.";
  return new EndpointError(`${host} is ${reason}. ${remedy}`);
}
