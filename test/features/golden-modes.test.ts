import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import type { ModelRequest } from "../../src/model/provider.ts";
import { submit } from "../../src/runtime/submit.ts";
import { story } from "../../src/testing/story.ts";
import { dataOf } from "../support/stage.ts";
import { beginning, onStage, texts, toolNames, turn } from "./stage.ts";

const root = (...lines: readonly string[]): string[] => lines.map((line) => `root ${line}`);
const asked = ["troupe.permission"];
const creates = (path: string) => calls(["create", { path, file_text: "x" }]);
const completes = calls(["task_complete", { summary: "made a.txt" }]);

describe("golden: /autopilot", () => {
  it("ORC-65 ORC-76 ORC-77 ORC-84 LOOP-12 LOOP-13 LOOP-14 golden: /autopilot sends reminders until the task is done", async () => {
    const steps = [says("I would begin so."), creates("a.txt"), says("And now?"), completes];
    await onStage(steps, {}, async ({ session, folder, requests, heard }) => {
      expect(await submit(session, "/autopilot on")).toMatchObject({ kind: "said" });
      expect(await submit(session, "make a.txt")).toMatchObject({
        verdict: { kind: "complete", verified: false, summary: "made a.txt" },
      });
      expect(existsSync(join(folder, "a.txt"))).toBe(true);
      const ended = turn([[]]);
      expect(story(session.events)).toEqual(
        root(
          "session.start",
          "session.mode_changed",
          ...beginning.slice(1),
          ...turn(),
          "session.usage_checkpoint",
          "user.message",
          ...turn([asked]),
          ...turn(),
          "session.usage_checkpoint",
          "user.message",
          ...ended.slice(0, -1),
          "session.task_complete",
          ...ended.slice(-1),
          "session.usage_checkpoint",
        ),
      );
      expect(dataOf(session.events, "session.mode_changed")).toEqual([
        { previousMode: "interactive", newMode: "autopilot" },
      ]);
      expect(dataOf(session.events, "session.task_complete")).toEqual([{ summary: "made a.txt", success: true }]);
      const told = dataOf(session.events, "user.message");
      expect(told.map(({ content, source }) => [content, source])).toEqual([
        ["make a.txt", undefined],
        ["", "autopilot"],
        ["", "autopilot"],
      ]);
      const reminder = requests("main")
        .map((request) => texts(request).at(-1) ?? "")
        .find((text) => text.includes("not marked complete"));
      expect(reminder).toMatch(/Do not call `task_complete` while .*(step remains|unresolved)/);
      // Rests on the way name autopilot. The last one does not: it ends the work.
      const rests = heard.flatMap(({ type, data }) => (type === "session.idle" ? [data] : []));
      expect(rests).toEqual([{ mode: "autopilot" }, { mode: "autopilot" }, { mode: "autopilot" }, {}]);
      expect(told.map(({ agentMode }) => agentMode)).toEqual(["autopilot", "autopilot", "autopilot"]);
      expect(await submit(session, "/autopilot off")).toMatchObject({ kind: "said" });
      expect(session.mainAgent.modes.current).toBe("interactive");
    });
  });

  it("ORC-88 golden: /autopilot adds instructions to the system prompt while it is on, and only then", async () => {
    const systems: string[] = [];
    for (const [mode, steps] of [
      ["interactive", [says("ok")]],
      ["autopilot", [completes]],
    ] as const) {
      await onStage(steps, { mode }, async ({ session, first }) => {
        await submit(session, "make a.txt");
        systems.push(first("main").system ?? "");
      });
    }
    const [interactive = "", autopilot = ""] = systems;
    expect(interactive).not.toMatch(/autopilot/i);
    expect(autopilot).toMatch(/Autopilot is on: you work by yourself until the task is done\.[\s\S]*`task_complete`/);
    // Switched off in the same session, the instructions are gone from the next request on.
    await onStage([completes, says("ok")], { mode: "autopilot" }, async ({ session, requests }) => {
      await submit(session, "make a.txt");
      await submit(session, "/autopilot off");
      await submit(session, "and now?");
      expect(requests("main").map(({ system = "" }) => system.includes("Autopilot is on"))).toEqual([true, false]);
    });
  });

  it("ORC-78 golden: /autopilot sends no third reminder with a limit of two", async () => {
    const steps = [0, 1, 2].flatMap((index) => [creates(`${index}.txt`), says(`step ${index}`)]);
    await onStage(steps, { mode: "autopilot" }, async ({ session }) => {
      const result = await submit(session, "never ends", { maxContinues: 2 });
      expect(result).toMatchObject({ verdict: { kind: "out_of_budget" } });
      expect(dataOf(session.events, "user.message").map(({ source }) => source)).toEqual([
        undefined,
        "autopilot",
        "autopilot",
      ]);
    });
  });

  it("LOOP-15 ORC-79 golden: /autopilot sends no reminder while the user is present or questions are off", async () => {
    const looked = ["ask_user", "task_complete"];
    const shown: string[][] = [];
    const modes = [{}, { client: { askUser: false } }, { mode: "autopilot" as const }];
    for (const options of modes) {
      const steps = "mode" in options ? [completes] : [says("Shall I?")];
      await onStage(steps, options, async ({ session, first }) => {
        session.requests.attach({ kinds: ["user_input"], handle: async () => undefined });
        await submit(session, "make a.txt");
        shown.push(toolNames(first("main")).filter((name) => looked.includes(name)));
        expect(dataOf(session.events, "user.message")).toHaveLength(1);
      });
    }
    expect(shown).toEqual([["ask_user"], [], ["task_complete", "ask_user"]]);
  });
});

describe("golden: /plan", () => {
  it("ORC-70 golden: /plan continues an approved plan with autopilot_fleet in autopilot, as a fleet", async () => {
    const steps = [
      (request: ModelRequest) =>
        calls(["create", { path: /\/\S+plan\.md/.exec(request.system)?.[0] ?? "", file_text: "1. make a.txt" }]),
      creates("early.txt"),
      calls(["exit_plan_mode", { summary: "make a.txt", showFleet: true }]),
      says("On it."),
      creates("a.txt"),
      completes,
    ];
    await onStage(steps, {}, async ({ session, folder }) => {
      const plans: unknown[] = [];
      session.requests.attach({
        kinds: ["exit_plan_mode"],
        handle: async (request) => {
          plans.push(request);
          return { approved: true, selectedAction: "autopilot_fleet" };
        },
      });
      const result = await submit(session, "/plan make a.txt");
      expect(result).toMatchObject({ verdict: { kind: "complete" } });
      expect(plans).toMatchObject([
        { summary: "make a.txt", planContent: "1. make a.txt", actions: expect.arrayContaining(["autopilot_fleet"]) },
      ]);
      expect(existsSync(join(folder, "early.txt"))).toBe(false);
      expect(readFileSync(join(folder, "a.txt"), "utf8")).toBe("x");
      expect(dataOf(session.events, "session.mode_changed").map(({ newMode }) => newMode)).toEqual([
        "plan",
        "autopilot",
      ]);
      expect(dataOf(session.events, "user.message").map(({ content }) => content)).toEqual([
        "make a.txt",
        "Fleet deployed",
      ]);
      const [refused, approved, ended] = [turn([asked]), turn([[]]), turn([[]])];
      expect(story(session.events)).toEqual(
        root(
          "session.start",
          "session.mode_changed",
          ...beginning.slice(1),
          ...turn([asked]),
          ...refused.slice(0, 5),
          "session.warning",
          ...refused.slice(5),
          ...approved.slice(0, 4),
          "troupe.question",
          "session.mode_changed",
          "troupe.message_queued",
          ...approved.slice(4),
          ...turn(),
          "system.message",
          "user.message",
          ...turn([asked]),
          ...ended.slice(0, -1),
          "session.task_complete",
          ...ended.slice(-1),
          "session.usage_checkpoint",
        ),
      );
    });
  });

  it("ORC-70 golden: /plan does not let a fleet that a plan started end while a todo is ready", async () => {
    const sql = (query: string) => calls(["sql", { query, description: "todos" }]);
    const steps = [
      calls(["exit_plan_mode", { summary: "make two files", showFleet: true }]),
      says("On it."),
      sql("INSERT INTO todos (id, title) VALUES ('a', 'A'), ('b', 'B')"),
      says("I think that is all."),
      sql("UPDATE todos SET status = 'done'"),
      completes,
    ];
    await onStage(steps, {}, async ({ session }) => {
      session.requests.attach({
        kinds: ["exit_plan_mode"],
        handle: async () => ({ approved: true, selectedAction: "autopilot_fleet" }),
      });
      expect(await submit(session, "/plan make two files")).toMatchObject({ verdict: { kind: "complete" } });
      const told = dataOf(session.events, "user.message");
      expect(told.map(({ content, source }) => source ?? content)).toEqual([
        "make two files",
        "Fleet deployed",
        "gate-fleet",
      ]);
      expect(told.at(-1)?.content).toMatch(/2 todos are ready and not done: a, b\./);
    });
  });
});
