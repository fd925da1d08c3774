import { describe, expect, it } from "vitest";
import { GivenModel, GivenProvider, NamedProvider } from "./given-providers.ts";

describe("a provider or a model given by a program", () => {
  it("a provider or a model of a program is read without its unknown fields", () => {
    const given = { baseUrl: "http://127.0.0.1:1/v1", type: "azure", azure: { apiVersion: "1" }, later: "http" };
    expect(GivenProvider.parse(given)).toEqual({
      baseUrl: "http://127.0.0.1:1/v1",
      type: "azure",
      azure: { apiVersion: "1" },
    });
  });

  it.each([
    ["a provider without an address", GivenProvider, {}],
    ["a kind that there is not", GivenProvider, { baseUrl: "http://127.0.0.1:1", type: "other" }],
    ["no tokens at all", GivenProvider, { baseUrl: "http://127.0.0.1:1", maxOutputTokens: 0 }],
    ["a name that could be taken for a model", NamedProvider, { baseUrl: "http://127.0.0.1:1", name: "a/b" }],
    ["a model without a name", GivenModel, { id: "", provider: "a" }],
  ])("a provider or a model of a program is refused: %s", (_, schema, given) => {
    expect(schema.safeParse(given).success).toBe(false);
  });
});
