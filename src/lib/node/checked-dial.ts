/** Connects to checked addresses only: a name is resolved once, so it cannot change between check and connection. */
import type { LookupFunction } from "node:net";

export interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

export type ResolveName = (host: string) => Promise<readonly ResolvedAddress[]>;

export async function systemResolve(host: string): Promise<readonly ResolvedAddress[]> {
  const { lookup } = await import("node:dns/promises");
  return lookup(host, { all: true });
}

/** Always returns the checked addresses, whatever name is asked for. */
export function lookupOnly(addresses: readonly ResolvedAddress[]): LookupFunction {
  const [first] = addresses;
  return (_host, options, callback) => {
    if (options.all) callback(null, [...addresses]);
    else callback(null, first?.address ?? "", first?.family ?? 4);
  };
}
