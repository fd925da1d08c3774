import { describe, expect, it } from "vitest";
import { parseUrlPattern, urlMatches } from "./urls.ts";

function matches(rule: string, address: string, refusing = false): boolean {
  const pattern = parseUrlPattern(rule);
  if (typeof pattern === "string") throw new Error(pattern);
  return urlMatches(pattern, address, refusing);
}

describe("an address under a rule", () => {
  const table: [string, string, boolean][] = [
    ["x.com", "https://x.com/", true],
    ["x.com", "https://x.com/any/path?q=1", true],
    ["x.com", "http://x.com/", false],
    ["x.com", "https://X.COM:443/", true],
    ["x.com", "https://x.com:8443/", false],
    ["x.com:8443", "https://x.com:8443/", true],
    ["x.com", "https://x.com.evil.org/", false],
    ["x.com", "https://evil.org/x.com", false],
    ["x.com", "https://x.com@evil.org/", false],
    ["x.com", "https://sub.x.com/", false],
    ["x.com", "https://x.com./", true],
    ["http://x.com", "http://x.com:80/", true],
    ["http://x.com", "https://x.com/", false],
    ["https://*.x.com", "https://x.com/", true],
    ["https://*.x.com", "https://a.b.x.com/", true],
    ["https://*.x.com", "https://evilx.com/", false],
    ["*.x.com", "http://a.x.com/", false],
    ["https://x.com/", "https://x.com/any", true],
    ["https://x.com/docs", "https://x.com/docs", true],
    ["https://x.com/docs", "https://x.com/docs?page=2", true],
    ["https://x.com/docs", "https://x.com/docs/a", false],
    ["https://x.com/docs", "https://x.com/docsx", false],
    ["https://x.com/docs/*", "https://x.com/docs/a/b", true],
    ["https://x.com/docs/*", "https://x.com/docs", false],
    ["https://x.com/docs/*", "https://x.com/docs/../admin", false],
    ["https://x.com/docs/*", "https://x.com/docs/%2e%2e/admin", false],
    ["https://x.com/docs/*", "https://x.com/docs/..%2fadmin", false],
    ["https://x.com/*", "https://x.com/a", true],
    ["bücher.de", "https://xn--bcher-kva.de/", true],
    ["127.0.0.1", "https://0x7f.1/", true],
    ["x.com", "ftp://x.com/", false],
    ["x.com", "not an address", false],
  ];
  it.each(table)("the URL rule %s matches %s: %s", (rule, address, expected) => {
    expect(matches(rule, address)).toBe(expected);
  });

  it("a URL rule refuses a bare host over both protocols and a path in any encoding", () => {
    expect(matches("x.com", "http://x.com/", true)).toBe(true);
    expect(matches("https://x.com", "http://x.com/", true)).toBe(false);
    expect(matches("https://x.com/admin", "https://x.com/%61dmin", true)).toBe(true);
  });
});

it.each([
  ["ftp://x.com", "only http and https can be used, not ftp"],
  ["https://", "it names no host"],
  ["*", "a host may contain * only at its start, as in *.example.com"],
  ["a.*.com", "a host may contain * only at its start, as in *.example.com"],
  ["x.com/*/y", "a path may contain * only as /* at its end"],
  ["x.com/?q=1", "it must be a host and a path, without spaces, a query, a fragment or a user name"],
  ["user@x.com", "it must be a host and a path, without spaces, a query, a fragment or a user name"],
  ["x.com:port", '"x.com:port" is not a host'],
])("a URL rule says why %s could never match", (rule, problem) => {
  expect(parseUrlPattern(rule)).toBe(problem);
});
