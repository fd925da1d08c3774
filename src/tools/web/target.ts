/** Resolves a URL from the model to addresses that may be connected to. */

import { addressKind, parseAddress, refusalOf, refusalOfName } from "../../lib/address.ts";
import { type ResolvedAddress, systemResolve } from "../../lib/node/checked-dial.ts";
import { isOwnAddress } from "../../lib/node/own-address.ts";
import { ToolError } from "../tool-error.ts";
import type { WebAccess } from "./web-access.ts";

const MAX_URL_CHARACTERS = 4096;

/** Returns the normalised URL without its fragment. Throws a `ToolError` for an invalid one. */
export function checkedUrl(text: string, base?: URL): URL {
  if (text.length > MAX_URL_CHARACTERS) throw new ToolError(`The URL is longer than ${MAX_URL_CHARACTERS} characters.`);
  const url = parse(text, base);
  if (url === undefined)
    throw new ToolError(`"${text}" is not a complete URL; give one such as https://example.com/page.`);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new ToolError(`Only http and https URLs can be fetched, not ${url.protocol}`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new ToolError(
      "The URL contains a user name or password. Credentials are never sent; give the URL without them.",
    );
  }
  url.hash = "";
  return url;
}

function parse(text: string, base: URL | undefined): URL | undefined {
  try {
    return new URL(text, base);
  } catch {
    return undefined;
  }
}

/**
 * Resolves the name once. The caller must connect only to the returned addresses, so that the name cannot change
 * between check and connection. One forbidden address refuses the whole name.
 */
export async function allowedAddresses(url: URL, access: WebAccess): Promise<readonly ResolvedAddress[]> {
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const allowLocalhost = access.allowLocalhost ?? false;
  const nameRefusal = refusalOfName(host, { allowLocalhost });
  if (nameRefusal !== undefined) throw notFetchedError(url, nameRefusal);
  const literal = parseAddress(host);
  const addresses = literal
    ? [{ address: host, family: literal.length === 4 ? 4 : 6 }]
    : await (access.resolve ?? systemResolve)(host).catch((cause: unknown) => {
        throw new ToolError(`The name ${host} could not be resolved. Check its spelling.`, { cause });
      });
  if (addresses.length === 0) throw new ToolError(`The name ${host} has no address.`);
  for (const { address } of addresses) {
    const reason = refusalOf(address, { allowLocalhost }) ?? ownRefusal(address, access);
    if (reason !== undefined) throw notFetchedError(url, literal ? reason : `${reason} (${address})`);
  }
  return addresses;
}

/** Refuses public addresses of this machine: services on them may not be meant for the Internet. */
function ownRefusal(address: string, { allowLocalhost = false, ownAddresses }: WebAccess): string | undefined {
  if (allowLocalhost && addressKind(address) === "loopback") return undefined;
  return isOwnAddress(address, ownAddresses?.()) ? "an address of this machine" : undefined;
}

function notFetchedError(url: URL, reason: string): ToolError {
  return new ToolError(
    `Not fetched: ${url.host} is ${reason}. Only the public Internet can be reached with this tool.`,
    {
      code: "denied",
    },
  );
}
