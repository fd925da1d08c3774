import { describe, expect, it } from "vitest";
import { methods } from "../../src/server/methods/list.ts";

interface SdkDiff {
  readSdk(folder: string): { version: string; methods: string[]; callbacks: string[]; events: string[] };
}

const { readSdk } = (await import(new URL("../../scripts/sdk-diff.mjs", import.meta.url).href)) as SdkDiff;
const served = new Set(Object.keys(methods));

/** Public methods that this server answers with "Unhandled method". */
const known: Readonly<Record<string, readonly string[]>> = {
  "@github/copilot-sdk": [],
  "copilot-sdk-1.0.14": [],
};

describe.each(Object.entries(known))("the package %s", (name, unserved) => {
  it("has no public method that is not served, except the known ones", () => {
    const sdk = readSdk(`node_modules/${name}`);
    expect(sdk.methods.length).toBeGreaterThan(250);
    expect(sdk.events.length).toBeGreaterThan(100);
    expect(sdk.methods.filter((method) => !served.has(method))).toEqual(unserved);
  });
});
