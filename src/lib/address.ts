/**
 * Classifies network addresses. Every address that leads back into this machine, its network or its cloud is
 * recognised, in every notation. Unassigned addresses count as reserved.
 */

export type AddressKind =
  | "public"
  | "loopback"
  | "private"
  | "metadata"
  | "unspecified"
  | "carrier"
  | "linkLocal"
  | "multicast"
  | "reserved"
  | "mapped"
  | "translated"
  | "tunnel"
  | "none";

/** Returns "none" for text that is not an address. */
export function addressKind(address: string): AddressKind {
  const bytes = parseAddress(address);
  if (bytes === undefined) return "none";
  return bytes.length === 4 ? kindOfV4(bytes) : kindOfV6(bytes);
}

/**
 * Returns why this address must not be connected to, or undefined if it is public. Text that is not an address is refused.
 */
export function refusalOf(address: string, { allowLocalhost = false } = {}): string | undefined {
  const kind = addressKind(address);
  return kind === "public" || (allowLocalhost && kind === "loopback") ? undefined : words[kind];
}

/** Returns why this name must not be resolved, or undefined if its addresses decide. */
export function refusalOfName(host: string, { allowLocalhost = false } = {}): string | undefined {
  if (isLocalName(host)) return allowLocalhost ? undefined : "a name of this machine";
  return metadataNames.has(bareName(host)) ? "a name of cloud metadata" : undefined;
}

/** Names that mean this machine, whatever a resolver returns. */
export function isLocalName(host: string): boolean {
  const name = bareName(host);
  return name === "localhost" || name.endsWith(".localhost");
}

/** The gateway of a network without IPv4 leads to the embedded address, which can be public. */
export function isTranslated(address: string): boolean {
  const bytes = parseAddress(address);
  return bytes?.length === 16 && isIn(bytes, NAT64);
}

const words: Readonly<Record<Exclude<AddressKind, "public">, string>> = {
  loopback: "a loopback address",
  private: "a private address",
  metadata: "a cloud metadata address",
  unspecified: "an unspecified address",
  carrier: "an address of a carrier's network",
  linkLocal: "a link-local address",
  multicast: "a multicast address",
  reserved: "a reserved address",
  mapped: "an IPv4-mapped address",
  translated: "a NAT64 address of a local network",
  tunnel: "a 6to4 address",
  none: "not an address",
};

const metadataNames = new Set(["metadata.google.internal", "metadata.goog", "instance-data.ec2.internal"]);

const bareName = (host: string): string => host.toLowerCase().replace(/\.+$/, "");

/** Returns the four or sixteen bytes of an address as a resolver or `URL` writes it. */
export function parseAddress(text: string): readonly number[] | undefined {
  const bare = text.replace(/^\[(.*)\]$/, "$1").replace(/%.*$/, "");
  return bare.includes(":") ? parseV6(bare) : parseV4(bare);
}

function parseV4(text: string): readonly number[] | undefined {
  const parts = text.split(".");
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255)) return;
  return parts.map(Number);
}

function parseV6(text: string): readonly number[] | undefined {
  const halves = text.split("::");
  if (halves.length > 2 || text.length > 45) return;
  const [head, tail] = halves.map(groupsOf);
  if (head === undefined || (halves.length === 2 && tail === undefined)) return;
  if (tail === undefined) return head.length === 16 ? head : undefined;
  const missing = 16 - head.length - tail.length;
  return missing < 2 ? undefined : [...head, ...Array<number>(missing).fill(0), ...tail];
}

function groupsOf(text: string): number[] | undefined {
  if (text === "") return [];
  const groups = text.split(":");
  const bytes: number[] = [];
  for (const [index, group] of groups.entries()) {
    const embedded = index === groups.length - 1 && group.includes(".") ? parseV4(group) : undefined;
    if (embedded) bytes.push(...embedded);
    else if (/^[0-9a-f]{1,4}$/i.test(group))
      bytes.push(Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 255);
    else return;
  }
  return bytes;
}

type Range = readonly [prefix: readonly number[], bits: number, kind: AddressKind];

const v4Ranges: readonly Range[] = [
  [[0], 8, "unspecified"],
  [[10], 8, "private"],
  [[100, 100, 100, 200], 32, "metadata"],
  [[100, 64], 10, "carrier"],
  [[127], 8, "loopback"],
  [[168, 63, 129, 16], 32, "metadata"],
  [[169, 254, 169, 254], 32, "metadata"],
  [[169, 254], 16, "linkLocal"],
  [[172, 16], 12, "private"],
  [[192, 0, 0, 192], 32, "metadata"],
  [[192, 0, 0], 24, "reserved"],
  [[192, 0, 2], 24, "reserved"],
  [[192, 88, 99], 24, "reserved"],
  [[192, 168], 16, "private"],
  [[198, 18], 15, "reserved"],
  [[198, 51, 100], 24, "reserved"],
  [[203, 0, 113], 24, "reserved"],
  [[224], 4, "multicast"],
  [[240], 4, "reserved"],
];

/** Ranges inside the only block assigned to the public Internet (2000::/3). Teredo is in the first. */
const v6Ranges: readonly Range[] = [
  [[0x20, 0x01, 0x00], 23, "reserved"],
  [[0x20, 0x01, 0x0d, 0xb8], 32, "reserved"],
  [[0x20, 0x02], 16, "tunnel"],
  [[0x3f, 0xff, 0x00], 20, "reserved"],
];

/** Ranges outside of that block. */
const v6Named: readonly Range[] = [
  [Array<number>(16).fill(0), 128, "unspecified"],
  [[...Array<number>(15).fill(0), 1], 128, "loopback"],
  [[...Array<number>(10).fill(0), 0xff, 0xff], 96, "mapped"],
  // Metadata addresses of two clouds. They are among private addresses, which a user may allow.
  [[0xfd, 0x00, 0x0e, 0xc2], 32, "metadata"],
  [[0xfd, 0x20, 0x00, 0xce], 32, "metadata"],
  [[0xfc], 7, "private"],
  [[0xfe, 0x80], 10, "linkLocal"],
  [[0xff], 8, "multicast"],
];

/** Networks without IPv4 reach IPv4 addresses through this prefix, so the embedded address decides. */
const NAT64: Range = [[0x00, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0], 96, "translated"];

function kindOfV4(bytes: readonly number[]): AddressKind {
  return v4Ranges.find((range) => isIn(bytes, range))?.[2] ?? "public";
}

function kindOfV6(bytes: readonly number[]): AddressKind {
  if (isIn(bytes, NAT64)) return kindOfV4(bytes.slice(12)) === "public" ? "public" : "translated";
  const isGlobal = ((bytes[0] ?? 0) & 0xe0) === 0x20;
  const named = (isGlobal ? v6Ranges : v6Named).find((range) => isIn(bytes, range))?.[2];
  return named ?? (isGlobal ? "public" : "reserved");
}

function isIn(bytes: readonly number[], [prefix, bits]: Range): boolean {
  for (let bit = 0; bit < bits; bit += 8) {
    const mask = bits - bit >= 8 ? 0xff : (0xff << (8 - (bits - bit))) & 0xff;
    if (((bytes[bit / 8] ?? 0) & mask) !== ((prefix[bit / 8] ?? 0) & mask)) return false;
  }
  return true;
}
