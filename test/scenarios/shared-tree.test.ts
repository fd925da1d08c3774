import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { deferred } from "../../src/lib/deferred.ts";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { of, onStage, resultsOf } from "../features/stage.ts";

describe("agents that write in one tree", () => {
  it("an agent's stale write is refused with the name of the sibling, and works after a new read", async () => {
    const [seen, written] = [deferred<void>(), deferred<void>()];
    const task = (name: string) =>
      ["task", { description: name, prompt: `@${name} write`, agent_type: "general-purpose", name }] as const;
    const edit = (from: string, to: string) => calls(["edit", { path: "a.txt", old_str: from, new_str: to }]);
    const look = calls(["view", { path: "a.txt" }]);
    const steps = [
      calls(task("slow"), task("quick")),
      says("both wrote"),
      of(
        "slow",
        look,
        async () => {
          seen.resolve();
          await written.promise;
          return edit("one", "slow");
        },
        look,
        edit("two", "slow"),
        says("done"),
      ),
      of(
        "quick",
        async () => {
          await seen.promise;
          return look;
        },
        edit("one", "two"),
        async () => {
          written.resolve();
          return says("done");
        },
      ),
    ];
    await onStage(steps, { files: { "a.txt": "one\n" } }, async ({ session, folder }) => {
      expect(await session.sendAndWait({ prompt: "go" })).toMatchObject({ answer: "both wrote" });
      const refused = resultsOf(session.events, "edit").filter((text) => text.includes("changed by agent"));
      expect(refused).toEqual([expect.stringMatching(/a\.txt was changed by agent "quick"/)]);
      expect(readFileSync(join(folder, "a.txt"), "utf8")).toBe("slow\n");
    });
  });
});
