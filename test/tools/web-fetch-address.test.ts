import { expect, test } from "vitest";
import { allowedAddresses, checkedUrl } from "../../src/tools/web/target.ts";
import { allowsLocalhost } from "../../src/tools/web/web-access.ts";

/** Nothing is resolved here: a name that reaches the resolver counts as let through. */
const reached = { resolve: async () => [{ address: "93.184.216.34", family: 4 }] };

const hostile = [
  // This machine, in every notation a URL allows.
  "http://localhost/",
  "http://LOCALHOST/",
  "http://localhost./",
  "http://a.localhost/",
  "http://127.0.0.1/",
  "http://127.0.0.1./",
  "http://127.1/",
  "http://127.0.1/",
  "http://2130706433/",
  "http://0x7f000001/",
  "http://0x7f.0.0.1/",
  "http://0177.0.0.1/",
  "http://017700000001/",
  "http://0x7f.1/",
  "http://127.255.255.254/",
  "http://%31%32%37.0.0.1/",
  "http://①②⑦.⓪.⓪.①/",
  "http://127。0。0。1/",
  "http://0/",
  "http://0.0.0.0/",
  "http://0.1.2.3/",
  "http://[::1]/",
  "http://[0:0:0:0:0:0:0:1]/",
  "http://[::]/",
  "http://[::ffff:127.0.0.1]/",
  "http://[::ffff:7f00:1]/",
  "http://[::127.0.0.1]/",
  "http://[::7f00:1]/",
  "http://[64:ff9b::127.0.0.1]/",
  "http://[64:ff9b::7f00:1]/",
  "http://[64:ff9b:1::a00:1]/",
  "http://[2002:7f00:1::]/",
  "http://[2002:7f00:0001::1]/",
  "http://[2001:0:7f00:1::]/",
  // Private, shared and link-local networks.
  "http://10.0.0.1/",
  "http://10.255.255.255/",
  "http://0xa.0.0.1/",
  "http://167772161/",
  "http://172.16.0.1/",
  "http://172.31.255.255/",
  "http://192.168.0.1/",
  "http://192.168.257/",
  "http://100.64.0.1/",
  "http://100.127.255.255/",
  "http://169.254.1.1/",
  "http://[fc00::1]/",
  "http://[fd12:3456::1]/",
  "http://[fe80::1]/",
  "http://[febf::1]/",
  "http://[fec0::1]/",
  "http://[::ffff:10.0.0.1]/",
  "http://[::ffff:192.168.0.1]/",
  "http://[64:ff9b::192.168.0.1]/",
  "http://[2002:c0a8:1::1]/",
  // Metadata of clouds.
  "http://169.254.169.254/latest/meta-data/",
  "http://2852039166/",
  "http://0xa9fea9fe/",
  "http://0251.0376.0251.0376/",
  "http://[::ffff:169.254.169.254]/",
  "http://[64:ff9b::a9fe:a9fe]/",
  "http://[fd00:ec2::254]/",
  "http://168.63.129.16/",
  "http://100.100.100.200/",
  "http://192.0.0.192/",
  "http://[fd20:ce::254]/",
  "http://metadata.google.internal/computeMetadata/v1/",
  "http://Metadata.GOOG./",
  // Multicast, reserved, documentation.
  "http://224.0.0.1/",
  "http://239.255.255.250/",
  "http://240.0.0.1/",
  "http://255.255.255.255/",
  "http://192.0.2.1/",
  "http://198.18.0.1/",
  "http://198.51.100.1/",
  "http://203.0.113.1/",
  "http://[ff02::1]/",
  "http://[2001:db8::1]/",
  "http://[3fff::1]/",
  "http://[100::1]/",
  "http://[5f00::1]/",
  "http://[4000::1]/",
];

test.each(hostile)("%s is refused before anything is dialled", async (text) => {
  await expect(allowedAddresses(checkedUrl(text), reached)).rejects.toMatchObject({
    code: "denied",
    message: expect.stringContaining("Only the public Internet"),
  });
});

test.each([
  "http://0x7f.0.0.1.2/",
  "http://256.0.0.1/",
  "http://[::1%25lo]/",
  "http://[::1",
  "http://",
  "example.com",
  "/page",
  "file:///etc/passwd",
  "ftp://example.com/",
  "gopher://127.0.0.1/",
  "data:text/plain,hello",
  "javascript:alert(1)",
  "http://user@example.com/",
  "http://user:secret@example.com/",
  `http://example.com/${"a".repeat(5000)}`,
])("%s is no URL to fetch", (text) => {
  expect(() => checkedUrl(text)).toThrow(/URL/);
});

test("web_fetch refuses a name when one of its addresses is forbidden", async () => {
  const resolve = async () => [
    { address: "93.184.216.34", family: 4 },
    { address: "fe80::1%eth0", family: 6 },
  ];
  await expect(allowedAddresses(checkedUrl("https://rebind.example/"), { resolve })).rejects.toThrow(
    "rebind.example is a link-local address (fe80::1%eth0)",
  );
});

test("localhost may be allowed, and nothing else with it", async () => {
  const access = { allowLocalhost: true, resolve: async () => [{ address: "127.0.0.1", family: 4 }] };
  const addresses = (text: string) => allowedAddresses(checkedUrl(text), access);
  expect(await addresses("http://localhost:8080/")).toEqual([{ address: "127.0.0.1", family: 4 }]);
  expect(await addresses("http://[::1]/")).toEqual([{ address: "::1", family: 6 }]);
  for (const other of [
    "http://10.0.0.1/",
    "http://169.254.169.254/",
    "http://0.0.0.0/",
    "http://[::ffff:127.0.0.1]/",
  ]) {
    await expect(addresses(other)).rejects.toThrow("Only the public Internet");
  }
  expect(allowsLocalhost({ TROUPE_WEB_FETCH_ALLOW_LOCALHOST: "1" })).toBe(true);
  expect(allowsLocalhost({ COPILOT_WEB_FETCH_ALLOW_LOCALHOST: "1" })).toBe(true);
  expect(allowsLocalhost({ TROUPE_WEB_FETCH_ALLOW_LOCALHOST: "0" })).toBe(false);
});

test("web_fetch refuses the public addresses of this machine, in every notation", async () => {
  const own = { ...reached, ownAddresses: () => ["127.0.0.1", "93.184.216.34", "2606:2800:220:1::5", "fe80::1%eth0"] };
  for (const url of [
    "http://93.184.216.34/",
    "http://0x5db8d822/",
    "http://[2606:2800:220:1:0:0:0:5]/",
    "http://name.example/",
  ]) {
    await expect(allowedAddresses(checkedUrl(url), own)).rejects.toThrow("an address of this machine");
  }
  await expect(allowedAddresses(checkedUrl("http://93.184.216.35/"), own)).resolves.toHaveLength(1);
  const local = { ...own, allowLocalhost: true };
  await expect(allowedAddresses(checkedUrl("http://127.0.0.1/"), local)).resolves.toHaveLength(1);
  await expect(allowedAddresses(checkedUrl("http://93.184.216.34/"), local)).rejects.toThrow("of this machine");
});
