import type { Command } from "./command.ts";

const server = [{ name: "name", values: "server" }] as const;

export const mcp: Command = {
  name: "mcp",
  group: "Setup",
  summary: "configure MCP servers, or run one",
  examples: [
    ["troupe mcp add files -- npx some-mcp-server /data", "a server that troupe starts"],
    ["troupe mcp add docs https://example.com/mcp", "a server behind a URL"],
    ["troupe mcp list --connect", "connect to each server and show its state"],
  ],
  usual: "list",
  subcommands: [
    {
      name: "list",
      summary: "list the servers, their source and state",
      flags: { connect: true, json: "print one JSON array" },
    },
    {
      name: "get",
      summary: "print the configuration of a server, without secrets",
      arguments: server,
      flags: { connect: true, json: "print one JSON object" },
    },
    {
      name: "add",
      summary: "add a server for all folders: a URL, or -- and a command",
      arguments: [{ name: "name" }, { name: "url|-- command", repeated: true }],
      flags: { transport: true, env: true, header: true, tools: true, timeout: true, connect: true },
      examples: [
        ["troupe mcp add files -- npx some-mcp-server /data", "a program"],
        ["troupe mcp add docs https://example.com/mcp --header 'Authorization: Bearer $TOKEN'", "a URL"],
      ],
      notes: ["A value may name a variable: write $TOKEN in single quotes, and the file gets the name, not the token."],
    },
    { name: "remove", summary: "remove a server from your own configuration", arguments: server },
    { name: "enable", summary: "turn a server on", arguments: server },
    { name: "disable", summary: "turn a server off", arguments: server },
    { name: "approve", summary: "approve a server and the descriptions of its tools as shown", arguments: server },
    {
      name: "login",
      summary: "sign in to a remote server",
      arguments: server,
      notes: ["A client secret is read from TROUPE_MCP_CLIENT_SECRET."],
    },
    { name: "logout", summary: "delete the stored sign-in of a server", arguments: server },
    {
      name: "serve",
      summary: "run an MCP server over stdio whose tools run sessions",
      takesSessionFlags: true,
      notes: ["The flags apply to all of its sessions. No user can be asked, so calls that no rule allows are denied."],
    },
  ],
  load: async () => (await import("../mcp/mcp.ts")).runMcp,
};
