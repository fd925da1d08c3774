import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Drafts } from "../../src/terminal/input/drafts.ts";

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
