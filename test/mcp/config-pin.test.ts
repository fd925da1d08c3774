import { describe, expect, it } from "vitest";
import { pinnedItem, serverKey, shownServer } from "../../src/tools/mcp/config/config-pin.ts";
import type { McpServerConfig } from "../../src/tools/mcp/server.ts";

describe("the identity of a server", () => {
  const server = (transport: McpServerConfig["transport"]): McpServerConfig => ({
    name: "a",
    scope: "project",
    source: "/w/.mcp.json",
    transport,
    tools: ["*"],
    timeoutMs: 1,
  });

  it("the identity of an MCP server is shown in full, one fact a line", () => {
    const shown = (transport: McpServerConfig["transport"]): string => pinnedItem(server(transport)).shown;
    expect(
      shown({
        type: "stdio",
        command: "npx",
        args: ["--api-key=abc", "--token", "abc", "--key", "$KEY", "a\u202eb", "two\nlines"],
        environment: { S: "abc" },
      }),
    ).toBe(
      [
        "program: npx",
        ...["--api-key=abc", "--token", "abc", "--key", "$KEY", "a<U+202E>b", "two\n    ⏎ lines"].map(
          (word) => `argument: ${word}`,
        ),
        "hosts: none (no network)",
        "variables: S",
        "your variables that it refers to: KEY",
        "variable S: abc",
      ].join("\n"),
    );
    expect(shown({ type: "http", url: "https://a/b?key=$K&x", headers: { Authorization: "Bearer $TOKEN" } })).toBe(
      [
        "address (http): https://a/b?key=$K&x",
        "your variables that are sent to it: K, TOKEN",
        "header Authorization: Bearer $TOKEN",
      ].join("\n"),
    );
  });

  it("the identity of an MCP server has no secret in lists, and visible hidden characters", () => {
    const list = (transport: McpServerConfig["transport"]): string => shownServer(server(transport));
    const args = ["--api-key=abc", "--token", "abc", "--key", "$KEY", "a\u202eb", "two\nlines"];
    expect(list({ type: "stdio", command: "npx", args, environment: { S: "abc" } })).toBe(
      'npx --api-key=*** --token *** --key $KEY "a<U+202E>b" "two\\nlines" (variables: S)',
    );
    expect(list({ type: "http", url: "https://a/b?key=abc&x", headers: { Authorization: "abc" } })).toBe(
      "https://a/b?key=***&x (headers: Authorization)",
    );
  });

  it("the identity of an MCP server changes with its hosts", () => {
    const digest = (hosts: readonly string[]): string =>
      pinnedItem(server({ type: "stdio", command: "a", args: [], environment: {}, hosts })).digest;
    expect(new Set([digest([]), digest(["a.example"]), digest(["a.example:80"])]).size).toBe(3);
  });

  it("the identity of an MCP server changes with values that matter for trust, and not with secrets", () => {
    const one = server({ type: "http", url: "https://a/", headers: { A: "1" } });
    const other = server({ type: "http", url: "https://a/", headers: { A: "2" } });
    const third = server({ type: "http", url: "https://b/", headers: { A: "1" } });
    expect(pinnedItem(one).digest).not.toBe(pinnedItem(other).digest);
    expect(serverKey(one)).toBe(serverKey(other));
    expect(serverKey(one)).not.toBe(serverKey(third));
  });
});
