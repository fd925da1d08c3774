import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Drafts } from "../../src/terminal/input/drafts.ts";
import { calls, forAgent, says, stalls } from "../../src/testing/index.ts";
import { READY, terminalStage } from "./stage.ts";

describe("drafts on disk", () => {
  let home: string;
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), "troupe-drafts-"));
  });
  afterEach(() => rmSync(home, { recursive: true, force: true }));

  const stored = (): string => JSON.parse(readFileSync(join(home, "drafts", `${process.pid}.json`), "utf8")).text;

  it("a draft keeps a key that comes before the folder exists", async () => {
    const drafts = new Drafts(home, home);
    drafts.changed({ text: "early", agents: {} });
    await drafts.flush();
    expect(stored()).toBe("early");
  });

  it("small and large drafts are written whole and automatically, without temporary files left", async () => {
    const drafts = new Drafts(home, home);
    for (const text of ["a", "ab", "x".repeat(200_000), "abc"]) {
      drafts.changed({ text, agents: {} });
      await expect
        .poll(() => existsSync(join(home, "drafts")) && readdirSync(join(home, "drafts")))
        .toEqual([`${process.pid}.json`]);
      await expect.poll(stored).toBe(text);
    }
    expect(readdirSync(join(home, "drafts"))).toEqual([`${process.pid}.json`]);
  });
});

describe("a message to an agent", () => {
  it("a message that a stopped agent does not accept becomes the draft for it again, and is lost at no key", async () => {
    const isAgent = ({ messages }: { readonly messages: readonly { readonly role: string }[] }): boolean =>
      JSON.stringify(messages.find(({ role }) => role === "user")).includes("agent work");
    const task = { agent_type: "general-purpose", name: "ann", description: "look", prompt: "agent work" };
    await using stage = await terminalStage({
      columns: 100,
      steps: [
        calls(["task", { ...task, mode: "background" }]),
        forAgent(isAgent, stalls()),
        says("It is at work."),
        says("It was stopped."),
      ],
    });
    await stage.shows(READY);
    stage.send("go\r");
    await stage.shows("It is at work.");
    stage.send("\u0014");
    await stage.shows("Agents · 1 at work");
    stage.send("xx");
    await stage.shows("Agents · 0 at work");
    stage.send("m");
    await stage.shows("to ann ›");
    stage.send("look at readme.md too\r");
    await stage.shows(/ann.*(?:stopped|cancelled|ended)/);
    await stage.shows("to ann › look at readme.md too");
    stage.send("\u001b");
    await stage.hides("to ann ›");
    stage.send("my own prompt");
    stage.send("\u0014");
    await stage.shows("Agents · 0 at work");
    stage.send("m");
    await stage.shows("to ann › look at readme.md too");
  });
});
