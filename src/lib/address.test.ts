import { describe, expect, it } from "vitest";
import { type AddressKind, addressKind, isLocalName, isTranslated, refusalOf, refusalOfName } from "./address.ts";

const kinds: Readonly<Record<Exclude<AddressKind, "public">, readonly string[]>> = {
  loopback: ["127.0.0.1", "127.255.255.255", "::1", "0:0:0:0:0:0:0:1", "[::1]", "::1%lo"],
  private: ["10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255", "192.168.0.1", "fc00::1", "fdff::1"],
  metadata: ["169.254.169.254", "168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"],
  unspecified: ["0.0.0.0", "0.255.255.255", "::", "0:0:0:0:0:0:0:0"],
  carrier: ["100.64.0.0", "100.127.255.255"],
  linkLocal: ["169.254.0.1", "169.254.255.255", "fe80::1", "febf::1", "fe80::1%eth0"],
  multicast: ["224.0.0.1", "239.255.255.255", "ff02::1"],
  reserved: [
    ...["192.0.0.1", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1"],
    ...["240.0.0.1", "255.255.255.255", "::7f00:1", "::10.0.0.1", "64:ff9b:1::a00:1", "100::1", "fec0::1"],
    ...["2001::1", "2001:0:7f00:1::", "2001:1ff::1", "2001:db8::1", "3fff::1", "3fff:fff::1", "4000::1", "5f00::1"],
  ],
  mapped: ["::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:8.8.8.8"],
  translated: ["64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b::192.168.0.1", "64:ff9b::10.0.0.1"],
  tunnel: ["2002:7f00:1::", "2002:808:808::1"],
  none: [
    ...["", "x", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.256", "0x7f.0.0.1", ":::", "1::2::3", "12345::", "::1.2.3"],
    ...["1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7::8", "::1::", "1.2.3.4:80"],
  ],
};

const publicAddresses = [
  ...["93.184.216.34", "8.8.8.8", "1.1.1.1", "9.255.255.255", "11.0.0.0", "172.15.255.255", "172.32.0.1"],
  ...["100.63.255.255", "100.128.0.1", "169.253.0.1", "192.169.0.1", "198.20.0.0", "223.255.255.255"],
];

describe("an address", () => {
  it.each(Object.entries(kinds).flatMap(([kind, list]) => list.map((address) => [address, kind])))(
    "the address %j is refused as an address of the kind %s",
    (address, kind) => {
      expect(addressKind(address)).toBe(kind);
      expect(refusalOf(address)).toMatch(/address/);
    },
  );

  it.each(publicAddresses)("the address %s is public, and through NAT64 too", (address) => {
    expect([refusalOf(address), refusalOf(`64:ff9b::${address}`)]).toEqual([undefined, undefined]);
    expect([isTranslated(address), isTranslated(`64:ff9b::${address}`)]).toEqual([false, true]);
  });

  it.each([
    "2606:2800:220:1:248:1893:25c8:1946",
    "2001:4860:4860::8888",
    "2001:200::1",
    "2a00:1450:4001::1",
    "3ffe::1",
  ])("the address %s is public", (address) => expect(refusalOf(address)).toBeUndefined());

  it("an address is allowed with allowLocalhost only if it is this machine's", () => {
    const allowed = Object.values(kinds)
      .flat()
      .filter((address) => refusalOf(address, { allowLocalhost: true }) === undefined);
    expect(allowed).toEqual(kinds.loopback);
  });
});

describe("a name", () => {
  it.each(["localhost", "LOCALHOST.", "a.localhost", "a.b.localhost.."])("the host name %s is this machine", (name) => {
    expect([isLocalName(name), refusalOfName(name)]).toEqual([true, "a name of this machine"]);
    expect(refusalOfName(name, { allowLocalhost: true })).toBeUndefined();
  });

  it.each(["metadata.google.internal", "Metadata.Goog.", "instance-data.ec2.internal"])(
    "the host name %s is cloud metadata, even when this machine is allowed",
    (name) => {
      expect([isLocalName(name), refusalOfName(name, { allowLocalhost: true })]).toEqual([
        false,
        "a name of cloud metadata",
      ]);
    },
  );

  it.each(["example.com", "localhost.example.com", "notlocalhost"])(
    "the host name %s is judged by its addresses",
    (name) => {
      expect(refusalOfName(name)).toBeUndefined();
    },
  );
});
