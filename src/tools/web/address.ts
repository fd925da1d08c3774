/**
 * Which addresses a fetch may reach. Only addresses of the public Internet are good: everything that leads back into
 * this machine, its network or the cloud it runs in is named and refused, in every notation it can be written in.
 */

/** Why this address must not be dialled, or undefined when it is a public one. Text that is no address is refused. */
export function refusalOf(address: string, { allowLocalhost = false } = {}): string | undefined {
  const bytes = parseAddress(address);
  if (bytes === undefined) return "not an address";
  const reason = bytes.length === 4 ? refusalOfV4(bytes) : refusalOfV6(bytes);
  return allowLocalhost && reason === LOOPBACK ? undefined : reason;
}

/** Names that mean this machine or its cloud whatever a resolver says. */
export function isLocalName(host: string): boolean {
  const name = host.toLowerCase().replace(/\.+$/, "");
  return name === "localhost" || name.endsWith(".localhost");
}

/** The bytes of an address as a resolver or `URL` writes it: four or sixteen. */
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

type Range = readonly [prefix: readonly number[], bits: number, reason: string];

const LOOPBACK = "a loopback address";
const PRIVATE = "a private address";
const METADATA = "a cloud metadata address";
const RESERVED = "a reserved address";

const v4Ranges: readonly Range[] = [
  [[0], 8, "an unspecified address"],
  [[10], 8, PRIVATE],
  [[100, 100, 100, 200], 32, METADATA],
  [[100, 64], 10, "an address of a carrier's network"],
  [[127], 8, LOOPBACK],
  [[168, 63, 129, 16], 32, METADATA],
  [[169, 254, 169, 254], 32, METADATA],
  [[169, 254], 16, "a link-local address"],
  [[172, 16], 12, PRIVATE],
  [[192, 0, 0], 24, RESERVED],
  [[192, 0, 2], 24, RESERVED],
  [[192, 88, 99], 24, RESERVED],
  [[192, 168], 16, PRIVATE],
  [[198, 18], 15, RESERVED],
  [[198, 51, 100], 24, RESERVED],
  [[203, 0, 113], 24, RESERVED],
  [[224], 4, "a multicast address"],
  [[240], 4, RESERVED],
];

/** Inside the only block that is given out for the public Internet (2000::/3). */
const v6Ranges: readonly Range[] = [
  [[0x20, 0x01, 0x00], 23, RESERVED],
  [[0x20, 0x01, 0x0d, 0xb8], 32, RESERVED],
  [[0x20, 0x02], 16, "a 6to4 address"],
  [[0x3f, 0xff, 0x00], 20, RESERVED],
];

/** Outside of it: only for a better reason in the message. */
const v6Named: readonly Range[] = [
  [Array<number>(16).fill(0), 128, "an unspecified address"],
  [[...Array<number>(15).fill(0), 1], 128, LOOPBACK],
  [[...Array<number>(10).fill(0), 0xff, 0xff], 96, "an IPv4-mapped address"],
  [[0xfc], 7, PRIVATE],
  [[0xfe, 0x80], 10, "a link-local address"],
  [[0xff], 8, "a multicast address"],
];

/** Networks without IPv4 reach the old Internet through this prefix, so what it carries decides. */
const NAT64: Range = [[0x00, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0], 96, "NAT64"];

function refusalOfV4(bytes: readonly number[]): string | undefined {
  return v4Ranges.find((range) => isIn(bytes, range))?.[2];
}

function refusalOfV6(bytes: readonly number[]): string | undefined {
  if (isIn(bytes, NAT64))
    return refusalOfV4(bytes.slice(12)) === undefined ? undefined : "a NAT64 address of a local network";
  const isGlobal = ((bytes[0] ?? 0) & 0xe0) === 0x20;
  if (isGlobal) return v6Ranges.find((range) => isIn(bytes, range))?.[2];
  return v6Named.find((range) => isIn(bytes, range))?.[2] ?? RESERVED;
}

function isIn(bytes: readonly number[], [prefix, bits]: Range): boolean {
  for (let bit = 0; bit < bits; bit += 8) {
    const mask = bits - bit >= 8 ? 0xff : (0xff << (8 - (bits - bit))) & 0xff;
    if (((bytes[bit / 8] ?? 0) & mask) !== ((prefix[bit / 8] ?? 0) & mask)) return false;
  }
  return true;
}
