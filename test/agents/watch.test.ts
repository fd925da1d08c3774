import { rm } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { AgentCatalog } from "../../src/catalog/agents/agents.ts";
import { rememberRemote } from "../../src/catalog/agents/agents-remote-memory.ts";
import { watchAgents } from "../../src/catalog/agents/agents-watch.ts";
import { agent, agentStage, customNames } from "./stage.ts";

/** What the watch told. Two files that are written slowly are two changes: only the last of them is sure. */
function listener() {
  const heard: string[][] = [];
  const until = (names: readonly string[]) => expect.poll(() => heard.at(-1)).toEqual(names);
  return { heard, until, onChange: (catalog: AgentCatalog) => void heard.push(customNames(catalog)) };
}

describe("watched agents", () => {
  it("ORC-11 watched agents are added, changed and removed while a session runs", async () => {
    await using stage = await agentStage({ "work/.github/agents/one.md": agent("one") });
    const { heard, until, onChange } = listener();
    const watch = await watchAgents(stage.sources, onChange);
    try {
      expect(customNames(watch.current)).toEqual(["one (project)"]);
      await stage.folder.files({
        "work/.github/agents/two.md": agent("two"),
        "work/.github/agents/three.md": agent("three"),
      });
      await until(["one (project)", "three (project)", "two (project)"]);
      await stage.folder.files({ "work/.github/agents/one.md": agent("renamed") });
      await until(["renamed (project)", "three (project)", "two (project)"]);
      await rm(stage.at("work/.github/agents/three.md"));
      await until(["renamed (project)", "two (project)"]);
      expect(heard.length).toBeGreaterThanOrEqual(3);
      expect(customNames(watch.current)).toEqual(heard.at(-1));
    } finally {
      watch.close();
    }
  });

  it("a refresh finds agents whose folder appeared later, and then watches that folder", async () => {
    await using stage = await agentStage();
    const { until, onChange } = listener();
    let asked = 0;
    const remote = async (): Promise<unknown> => ({ agents: [{ name: `remote ${++asked}`, prompt: "p" }] });
    const watch = await watchAgents({ ...stage.sources, ...rememberRemote(remote) }, onChange);
    try {
      const before = watch.current;
      expect(await watch.refresh()).toBe(before);
      await stage.folder.files({ "home/.troupe/agents/late.md": agent("late") });
      expect(customNames(await watch.refresh())).toEqual(["late (user)", "remote 1 (remote)"]);
      await stage.folder.files({ "home/.troupe/agents/later.md": agent("later") });
      await until(["late (user)", "later (user)", "remote 1 (remote)"]);
    } finally {
      watch.close();
    }
  });

  it("no changes of agents are reported after the watch is closed", async () => {
    await using stage = await agentStage({ "work/.github/agents/one.md": agent("one") });
    const { heard, onChange } = listener();
    const watch = await watchAgents(stage.sources, onChange);
    watch.close();
    await stage.folder.files({ "work/.github/agents/two.md": agent("two") });
    await pause(350);
    expect(customNames(await watch.refresh())).toEqual(["one (project)"]);
    expect(heard).toEqual([]);
  });
});
