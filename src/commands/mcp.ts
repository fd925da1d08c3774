import { plural } from "../lib/text.ts";
import { defineCommand } from "./command.ts";
import { listed, shown } from "./lines.ts";

export const mcp = defineCommand({
  name: "mcp",
  summary: "Show the MCP servers of this session and how they are",
  harmless: "always",
  needs: ["servers"],
  run(_, { servers }) {
    const lines = servers().map(({ name, status, tools, error }) => {
      const trouble = error === undefined ? "" : `: ${shown(error)}`;
      return `${shown(name, 80)}  ${shown(status, 40)}, ${plural(tools, "tool")}${trouble}`;
    });
    const none = "This session has no MCP servers. Outside of it, troupe mcp add adds one.";
    return { kind: "completed", text: lines.length === 0 ? none : listed(lines) };
  },
});
