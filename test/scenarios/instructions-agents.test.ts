import { describe, expect, it } from "vitest";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { of, onStage, starts, texts } from "../features/stage.ts";
import { dataOf } from "../support/stage.ts";

describe("instructions in subfolders for agents", () => {
  const files = {
    "AGENTS.md": "Everyone hums.",
    "part/AGENTS.md": "In this part, sing.",
    "part/a.ts": "a",
    "part/b.ts": "b",
  };
  const looks = (path: string) => calls(["view", { path }]);

  it("instructions in subfolders are given once, and only to the agent that entered the folder", async () => {
    const steps = [
      starts("g", "general-purpose"),
      starts("e", "explore"),
      starts("h", "general-purpose"),
      says("so far"),
      looks("part/a.ts"),
      says("ok"),
      of("g", looks("part/a.ts"), looks("part/b.ts"), says("g saw it")),
      of("e", looks("part/a.ts"), says("e saw it")),
      of("h", looks("part/b.ts"), says("h saw it")),
    ];
    await onStage(steps, { files }, async ({ session, requests }) => {
      await session.sendAndWait({ prompt: "go" });
      const sings = (agent: string): number[] =>
        requests(agent).map((request) => texts(request).filter((text) => text.includes("In this part, sing.")).length);
      expect({ g: sings("g"), e: sings("e"), h: sings("h") }).toEqual({ g: [0, 1, 1], e: [0, 0], h: [0, 1] });
      expect(sings("main")).toEqual([0, 0, 0, 0]);
      // The main agent comes there later, and is told as if nobody had been there.
      await session.sendAndWait({ prompt: "look yourself" });
      expect(sings("main").at(-1)).toBe(1);
      const told = session.events.flatMap(({ type, data, agentId }) =>
        type === "system.notification" && data.kind.type === "instruction_discovered" ? [agentId ?? "main"] : [],
      );
      expect(told).toEqual(["g", "h", "main"]);
      expect(dataOf(session.events, "system.notification")[0]?.kind).toMatchObject({
        sourcePath: expect.stringMatching(/part\/AGENTS\.md$/),
        triggerFile: expect.stringMatching(/part\/a\.ts$/),
        triggerTool: "view",
      });
    });
  });

  it("instructions in subfolders are given once over all turns of a background agent", async () => {
    const steps = [
      starts("g", "general-purpose", { mode: "background" }),
      says("started"),
      calls(["write_agent", { agent_id: "g", message: "again" }]),
      says("asked"),
      says("thanks"),
      of("g", looks("part/a.ts"), says("one"), looks("part/b.ts"), says("two")),
    ];
    await onStage(steps, { files }, async ({ session, requests }) => {
      await session.sendAndWait({ prompt: "go" });
      const last = requests("g").at(-1);
      expect(last && texts(last).filter((text) => text.includes("In this part, sing."))).toHaveLength(1);
    });
  });
});
