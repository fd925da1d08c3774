import { plural } from "../lib/text.ts";
import { TroupeError } from "../protocol/errors.ts";
import { defineCommand } from "./command.ts";
import { clipLine, joinLines } from "./lines.ts";

export const mcp = defineCommand({
  name: "mcp",
  summary: "Show the MCP servers of this session and their status, or sign in to one",
  argumentHint: "[login <server>]",
  harmless: "alone",
  needs: ["servers"],
  async run(argumentText, { servers, signIn }) {
    const [word, ...rest] = argumentText.split(/\s+/);
    if (word) {
      const name = rest.join(" ");
      if (word !== "login" || name === "") throw new TroupeError("usage", "Use /mcp, or /mcp login <server>.");
      if (!signIn) throw new TroupeError("usage", "This session has no MCP servers.");
      return { kind: "completed", text: signInText(name, await signIn(name)) };
    }
    const lines = (await servers()).map(({ name, status, tools, error }) => {
      const trouble = error === undefined ? "" : `: ${clipLine(error)}`;
      // Servers connect when their tools are needed.
      const state = status === "pending" ? "not connected yet" : clipLine(status, 40);
      return `${clipLine(name, 80)}  ${state}, ${tools === undefined ? "tools not known" : plural(tools, "tool")}${trouble}`;
    });
    const none = "This session has no MCP servers. To add one, run: troupe mcp add";
    return { kind: "completed", text: lines.length === 0 ? none : joinLines(lines) };
  },
});

const signInText = (name: string, address: string | undefined): string =>
  address === undefined
    ? `${clipLine(name, 80)} needs no sign-in now.`
    : `Open this address to sign in to ${clipLine(name, 80)}:\n\n${address}\n\nIts tools are available when you have signed in.`;
