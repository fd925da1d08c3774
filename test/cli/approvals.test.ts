import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { askForApproval } from "../../src/cli/approvals.ts";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { onStage, type Stage } from "../features/stage.ts";

const make = (path: string) => calls(["create", { path, file_text: "text" }]);
const done = says("done");

/** Types one answer after the other, each when the question is on the screen. */
async function answering(stage: Stage, answers: readonly string[]): Promise<{ screen: string; pauses: number }> {
  const [input, output] = [new PassThrough(), new PassThrough()];
  let [screen, pauses, typed] = ["", 0, 0];
  output.on("data", (chunk: Buffer) => {
    screen += chunk.toString();
    if (!chunk.toString().includes("Allow?")) return;
    const answer = answers[typed++];
    if (answer === undefined) input.end();
    else input.write(`${answer}\n`);
  });
  const bar = { pause: () => () => void pauses++ };
  const stop = askForApproval(stage.session, { terminal: { input, output }, bar });
  await stage.session.sendAndWait({ prompt: "go" });
  stop();
  return { screen, pauses };
}

describe("permission questions at a terminal", () => {
  it("a permission question runs the call after yes, refuses it after no, and shows the change", async () => {
    await onStage([make("one.txt"), make("two.txt"), done], { permissions: {} }, async (stage) => {
      const { screen, pauses } = await answering(stage, ["what?", "y", "n keep it small"]);
      expect([existsSync(join(stage.folder, "one.txt")), existsSync(join(stage.folder, "two.txt"))]).toEqual([
        true,
        false,
      ]);
      expect(screen).toContain("  | Change:\n  | @@ -0,0 +1,1 @@\n  | +text\n");
      expect(screen).not.toMatch(/```|The model says/);
      expect(screen.match(/Allow\?/g)).toHaveLength(3);
      expect(pauses).toBe(2);
      expect(JSON.stringify(stage.requests().at(-1))).toContain("They said: keep it small");
    });
  });

  it("a permission question is not answered by input typed before it was shown", async () => {
    await onStage([make("one.txt"), done], { permissions: {} }, async (stage) => {
      const modes: boolean[] = [];
      const input = Object.assign(new PassThrough(), { isTTY: true, setRawMode: (mode: boolean) => modes.push(mode) });
      const output = new PassThrough();
      input.write("y\ny");
      output.on("data", (chunk: Buffer) => void (chunk.toString().includes("Allow?") && input.write("n\n")));
      const bar = { pause: () => () => undefined };
      const stop = askForApproval(stage.session, { terminal: { input, output }, bar });
      await stage.session.sendAndWait({ prompt: "go" });
      stop();
      expect(existsSync(join(stage.folder, "one.txt"))).toBe(false);
      expect(modes).toEqual([true, false]);
    });
  });

  it("a permission question is not repeated in this session after the answer a, and nothing is stored", async () => {
    await onStage([make("one.txt"), make("two.txt"), done], { permissions: {} }, async (stage) => {
      const { screen } = await answering(stage, ["s", "a"]);
      expect(existsSync(join(stage.folder, "two.txt"))).toBe(true);
      expect(screen.match(/Allow\?/g)).toHaveLength(2);
      expect(existsSync(join(stage.home, "permissions-config.json"))).toBe(false);
    });
  });

  it.each(["d", "n"])("a permission question ends the agent's answer after the key %s", async (answer) => {
    await onStage([make("one.txt")], { permissions: {} }, async (stage) => {
      await answering(stage, [answer]);
      expect(existsSync(join(stage.folder, "one.txt"))).toBe(false);
      expect(stage.requests()).toHaveLength(1);
    });
  });

  it("a permission question stores the answer p for the folder", async () => {
    await onStage([make("one.txt"), done], { permissions: {} }, async (stage) => {
      await answering(stage, ["p"]);
      const kept = readFileSync(join(stage.home, "permissions-config.json"), "utf8");
      expect(JSON.parse(kept).locations[stage.folder].tool_approvals).toEqual([{ kind: "write" }]);
    });
  });

  it("a permission question counts as denied when the input ends, and offers only answers that can be stored", async () => {
    const workflow = make(".github/workflows/ci.yml");
    await onStage([make("one.txt"), done], { permissions: {} }, async (stage) => {
      const { screen } = await answering(stage, []);
      expect(screen).toMatch(/\[d\] deny, \[n <why>\] deny and say why: \n$/);
      expect(existsSync(join(stage.folder, "one.txt"))).toBe(false);
    });
    await onStage([workflow, done], { permissions: {} }, async (stage) => {
      const { screen } = await answering(stage, ["p", "a", "y"]);
      expect(screen).not.toContain("always in this folder");
      expect(existsSync(join(stage.folder, ".github/workflows/ci.yml"))).toBe(true);
    });
  });
});
