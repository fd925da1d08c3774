import { plural } from "../lib/text.ts";
import { defineCommand } from "./command.ts";
import { listed, shown } from "./lines.ts";

export const mcp = defineCommand({
  name: "mcp",
  summary: "Show the MCP servers of this session and their status",
  harmless: "always",
  needs: ["servers"],
  async run(_, { servers }) {
    const lines = (await servers()).map(({ name, status, tools, error }) => {
      const trouble = error === undefined ? "" : `: ${shown(error)}`;
      // Servers connect when their tools are needed.
      const state = status === "pending" ? "not connected yet" : shown(status, 40);
      return `${shown(name, 80)}  ${state}, ${tools === undefined ? "tools not known" : plural(tools, "tool")}${trouble}`;
    });
    const none = "This session has no MCP servers. To add one, run: troupe mcp add";
    return { kind: "completed", text: lines.length === 0 ? none : listed(lines) };
  },
});
