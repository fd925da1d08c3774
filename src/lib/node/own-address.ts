import { networkInterfaces } from "node:os";
import { parseAddress } from "../address.ts";

/** Returns all current addresses of this machine. */
function ownAddresses(): string[] {
  return Object.values(networkInterfaces()).flatMap((list) => list?.map(({ address }) => address) ?? []);
}

/** Whether a connection to the address would stay on this machine, however the address is written. */
export function isOwnAddress(address: string, own: readonly string[] = ownAddresses()): boolean {
  const wanted = bytesOf(address);
  return wanted !== undefined && own.some((one) => bytesOf(one) === wanted);
}

/** Link-local addresses carry the name of an interface, which is not part of the address. */
const bytesOf = (address: string): string | undefined => parseAddress(address.replace(/%.*$/, ""))?.join(".");
