import { describe, expect, it } from "vitest";
import { pinnedItem, serverKey } from "../../src/tools/mcp/config-pin.ts";
import type { McpServerConfig } from "../../src/tools/mcp/server.ts";

describe("what stands for a server", () => {
  const server = (transport: McpServerConfig["transport"]): McpServerConfig => ({
    name: "a",
    scope: "project",
    source: "/w/.mcp.json",
    transport,
    tools: ["*"],
    timeoutMs: 1,
  });

  it("shows no secret, and hidden characters are visible", () => {
    const shown = (transport: McpServerConfig["transport"]): string => pinnedItem(server(transport)).shown;
    expect(
      shown({
        type: "stdio",
        command: "npx",
        args: ["--api-key=abc", "--token", "abc", "--key", "$KEY", "a\u202eb", "two\nlines"],
        environment: { S: "abc" },
      }),
    ).toBe('npx --api-key=*** --token *** --key $KEY "a<U+202E>b" "two\\nlines" (variables: S)');
    expect(shown({ type: "http", url: "https://a/b?key=abc&x", headers: { Authorization: "abc" } })).toBe(
      "https://a/b?key=***&x (headers: Authorization)",
    );
  });

  it("is another for other values where trust is concerned, and the same server whatever its secrets are", () => {
    const one = server({ type: "http", url: "https://a/", headers: { A: "1" } });
    const other = server({ type: "http", url: "https://a/", headers: { A: "2" } });
    const third = server({ type: "http", url: "https://b/", headers: { A: "1" } });
    expect(pinnedItem(one).digest).not.toBe(pinnedItem(other).digest);
    expect(serverKey(one)).toBe(serverKey(other));
    expect(serverKey(one)).not.toBe(serverKey(third));
  });
});
