import { describe, expect, it } from "vitest";
import { createRedactor } from "./redact.ts";

const VALUE = "k9/Zq+77 \"é'<&>~!wQ";
const bytes = Buffer.from(VALUE);

describe("a known value in a rarer form", () => {
  const utf16 = Buffer.from(VALUE, "utf16le");
  const swapped = Buffer.from(utf16).swap16();
  const every = (made: (unit: number) => string): string =>
    Array.from({ length: VALUE.length }, (_, index) => made(VALUE.charCodeAt(index))).join("");
  const hex = (unit: number, width = 2): string => unit.toString(16).padStart(width, "0");
  const bytesAs = (before: string): string => Array.from(bytes, (byte) => before + hex(byte)).join("");

  it.each<[string, string]>([
    ["encoded for URLs twice", encodeURIComponent(encodeURIComponent(VALUE))],
    ["with every byte as in a URL", bytesAs("%").toUpperCase()],
    ["with every byte as in a URL, twice", bytesAs("%25")],
    ["in UTF-16, in base64", utf16.toString("base64")],
    ["in UTF-16, in base64, after other text", Buffer.from(`echo ${VALUE}`, "utf16le").toString("base64")],
    ["in UTF-16, in base64 for URLs", utf16.toString("base64url")],
    ["in big-endian UTF-16, in base64", swapped.toString("base64")],
    ["in UTF-16, in hexadecimal", utf16.toString("hex")],
    ["in escapes of Unicode", every((unit) => `\\u${hex(unit, 4)}`)],
    ["in escapes of Unicode with capitals", every((unit) => `\\u${hex(unit, 4).toUpperCase()}`)],
    ["in escapes of Unicode in JSON", every((unit) => `\\\\u${hex(unit, 4)}`)],
    ["in escapes with braces", every((unit) => `\\u{${unit.toString(16)}}`)],
    ["in escapes of bytes", bytesAs("\\x")],
    ["in decimal HTML entities", every((unit) => `&#${unit};`)],
    ["in hexadecimal HTML entities", every((unit) => `&#x${unit.toString(16).toUpperCase()};`)],
    ["in quoted-printable", VALUE.replace("é", "=C3=A9")],
    ["in quoted-printable throughout", bytesAs("=").toUpperCase()],
    ["in hexadecimal with spaces", (bytes.toString("hex").match(/../g) ?? []).join(" ")],
    ["in hexadecimal with colons", (bytes.toString("hex").match(/../g) ?? []).join(":").toUpperCase()],
    ["backwards", [...VALUE].reverse().join("")],
  ])("a known value in a rare encoding is masked %s, whole and in pieces", (_, text) => {
    const fresh = createRedactor({ values: [{ name: "DEPLOY_KEY", value: VALUE }], patterns: [] });
    const whole = `before ${text} after`;
    expect(fresh.text(whole)).toMatch(/^before .{0,20}\[redacted:DEPLOY_KEY\].{0,9} after$/s);
    const stream = createRedactor({ values: [{ name: "DEPLOY_KEY", value: VALUE }], patterns: [] }).stream();
    const streamed = [...whole].map((character) => stream.push(character)).join("") + stream.end();
    expect(streamed).toBe(fresh.text(whole));
  });

  it("a known value is masked in base32, also when it is short", () => {
    const redactor = createRedactor({ values: [{ name: "K", value: "Zk77-Qp2w" }], patterns: [] });
    expect(redactor.text("x LJVTONZNKFYDE5Y= y")).toMatch(/^x \[redacted:K\].{0,3} y$/);
  });
});
