import { describe, expect, it } from "vitest";
import { leavesOf, maskSecrets, valueAt, withValue } from "./config-values.ts";

const settings = { model: "a", permissions: { allow: ["write"], deny: [] }, flags: {} };

describe("settings by key", () => {
  it("settings by key are read, set and removed at any depth, and the original does not change", () => {
    expect(valueAt(settings, ["permissions", "allow"])).toEqual(["write"]);
    expect(valueAt(settings, ["permissions", "ask"])).toBeUndefined();
    expect(valueAt(settings, ["model", "x"])).toBeUndefined();
    expect(valueAt(settings, ["constructor"])).toBeUndefined();
    expect(withValue(settings, ["a", "b"], 1)).toEqual({ ...settings, a: { b: 1 } });
    expect(withValue({ a: { b: 1 }, c: 2 }, ["a", "b"], undefined)).toEqual({ c: 2 });
    expect(withValue(settings, ["model"], undefined)).toEqual({ permissions: settings.permissions, flags: {} });
    expect(settings.model).toBe("a");
  });

  it("settings by key are listed by their whole key", () => {
    expect(leavesOf(settings).map(([key]) => key)).toEqual(["model", "permissions.allow", "permissions.deny", "flags"]);
  });
});

it("troupe config masks secrets by name and place, and shows references to variables", () => {
  expect(
    maskSecrets({
      apiKey: "s",
      token: "$TOKEN",
      mcpServers: { a: { env: { A: "s", B: "$B" }, headers: { Authorization: "Bearer s" }, args: ["-x"] } },
      secretEnvironmentVariables: ["NAME"],
    }),
  ).toEqual({
    apiKey: "********",
    token: "$TOKEN",
    mcpServers: {
      a: { env: { A: "********", B: "$B" }, headers: { Authorization: "********" }, args: ["-x"] },
    },
    secretEnvironmentVariables: ["NAME"],
  });
});
