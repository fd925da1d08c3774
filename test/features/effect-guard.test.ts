/** Every effect of a session passes its guard: built-in tools, those of MCP servers and programs, agents' calls, hooks. */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import type { EffectGuard } from "../../src/lib/effect-guard.ts";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { ExternalTools } from "../../src/session/requests/external-tools.ts";
import { ToolError } from "../../src/tools/tool-error.ts";
import { of, onStage, resultsOf, starts } from "./stage.ts";

const server = fileURLToPath(new URL("../mcp/servers/scripted.mjs", import.meta.url));

const files = {
  "home:mcp-config.json": JSON.stringify({
    mcpServers: { good: { command: process.execPath, args: [server, "good"] } },
  }),
  "home:hooks/note.json": JSON.stringify({
    version: 1,
    hooks: { agentStop: [{ bash: "touch hooked", timeoutSec: 20 }] },
  }),
};

/** Keeps what it was asked, and refuses it or lets it run. */
function guard(isLost: boolean): { readonly effects: EffectGuard; readonly asked: string[] } {
  const asked: string[] = [];
  const refuse = (name: string): void => {
    asked.push(name);
    if (isLost) throw new ToolError("lost");
  };
  return {
    asked,
    effects: {
      async run({ name, waits }, signal, action) {
        refuse(waits ? `${name} (waits)` : name);
        return action(signal);
      },
      assertValid: () => refuse("start"),
    },
  };
}

describe("the guard of effects", () => {
  it.each([true, false])(
    "the guard of effects is called before every effect of a session (refuses: %s)",
    async (isLost) => {
      const { effects, asked } = guard(isLost);
      const tools = new ExternalTools();
      tools.offer("client", [{ name: "theirs", description: "Theirs.", parameters: { type: "object" } }]);
      const steps = [
        calls(["good-echo", { words: "hello" }]),
        calls(["bash", { command: "touch made", description: "make" }]),
        calls(["theirs", {}]),
        starts("scout", "general-purpose"),
        says("done"),
      ];
      const agent = of("scout", calls(["create", { path: "by-agent", file_text: "x" }]), says("looked"));
      const options = { files, effects, client: { program: { tools } }, tools: { waitForServers: true } };
      await onStage([...steps, agent], options, async ({ session, folder }) => {
        session.requests.attach({ kinds: ["external_tool"], handle: async () => ({ result: "theirs ran" }) });
        await session.sendAndWait({ prompt: "Act." });
        const made = ["made", "by-agent", "hooked"].filter((name) => existsSync(join(folder, name)));
        expect({
          made,
          echo: resultsOf(session.events, "good-echo"),
          theirs: resultsOf(session.events, "theirs"),
        }).toEqual(
          isLost
            ? { made: [], echo: ["lost"], theirs: ["lost"] }
            : {
                made: ["made", "by-agent", "hooked"],
                echo: [expect.stringContaining("hello")],
                theirs: ["theirs ran"],
              },
        );
      });
      const always = ["good-echo", "bash", "theirs (waits)", "task (waits)", "a hook of agentStop"];
      expect(asked).toEqual(expect.arrayContaining(isLost ? always : [...always, "start", "create"]));
    },
  );
});
