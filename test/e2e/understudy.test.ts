import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { troupe } from "../support/troupe.ts";

it("answers the README's first question about this repository, offline, with paths and lines that are true", async () => {
  await using folder = await tempFolder();
  const finished = await troupe(["-p", "Explain how this repository is organised"], {
    cwd: process.cwd(),
    home: folder.path,
  });
  expect(finished.code).toBe(0);
  for (const place of ["src/loop/", "src/session/", "src/store/", "bin/troupe.js", "understudy", "troupe models"]) {
    expect(finished.stdout).toContain(place);
  }
  const cited = [...finished.stdout.matchAll(/`([\w./-]+\.\w+):(\d+)`/g)];
  expect(cited.length).toBeGreaterThan(10);
  for (const [, path = "", line = ""] of cited) {
    expect(existsSync(path), path).toBe(true);
    expect(readFileSync(path, "utf8").split("\n").length, path).toBeGreaterThanOrEqual(Number(line));
  }
  const log = readFileSync(
    join(folder.path, "session-state", /session ([0-9a-f-]{36})/.exec(finished.stderr)?.[1] ?? "", "events.jsonl"),
    "utf8",
  );
  expect(log.split("\n").filter((line) => line.includes("assistant.turn_start")).length).toBeLessThanOrEqual(8);
});

it("finds where something is", async () => {
  await using folder = await tempFolder();
  const finished = await troupe(["-p", "Where is runLoop defined?", "-s"], { cwd: process.cwd(), home: folder.path });
  expect(finished.stdout).toMatch(/src\/loop\/loop\.ts:\d+/);
});
