import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { troupe } from "../support/troupe.ts";
import { checkCitations } from "../understudy/citations.ts";
import { manyParts, stage } from "../understudy/repositories.ts";

interface Told {
  readonly type: string;
  readonly agentId?: string;
  readonly data: Readonly<Record<string, unknown>>;
}

const events = (lines: string): Told[] => lines.split("\n").flatMap((line) => (line === "" ? [] : [JSON.parse(line)]));

it("the understudy answers the README's first question about this repository, offline, with real paths", async () => {
  await using folder = await tempFolder();
  const finished = await troupe(["-p", "Explain how this repository is organised"], {
    cwd: process.cwd(),
    home: folder.path,
  });
  expect(finished.code).toBe(0);
  expect(finished.stderr).not.toMatch(/fail|denied|does not exist|view_range/);
  const views = finished.stderr.split("\n").filter((line) => /: view .*tool-output/.test(line));
  expect(new Set(views).size).toBe(views.length);
  for (const place of ["src/runtime/", "src/session/", "src/store/", "bin/troupe.js", "understudy", "troupe models"]) {
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
  const turns = new Map<string, number>();
  for (const { type, agentId = "main" } of events(log)) {
    if (type === "assistant.turn_start") turns.set(agentId, (turns.get(agentId) ?? 0) + 1);
  }
  expect(turns.size).toBeGreaterThanOrEqual(4);
  expect(Math.max(...turns.values())).toBeLessThanOrEqual(8);
});

describe("a repository of several parts", () => {
  const explain = async (...flags: string[]) => {
    const at = await stage(manyParts());
    const args = ["-p", "Explain how this repository is organised", "--output-format", "json", ...flags];
    const finished = await troupe(args, { cwd: at.cwd, home: at.scratch });
    expect(finished.code).toBe(0);
    const told = events(finished.stdout);
    const answer = String(
      told.filter(({ type, agentId }) => type === "assistant.message" && !agentId).at(-1)?.data.content,
    );
    expect(checkCitations(at.cwd, answer)).toBeGreaterThan(4);
    return { at, told, answer, of: (type: string) => told.filter((event) => event.type === type) };
  };

  it("the understudy explores a repository of several parts with parallel agents and cites real places", async () => {
    const { at, told, answer, of } = await explain();
    await using _ = at;
    const ids = ["explore-src-lib", "explore-src-orders", "explore-src-stock", "explore-test"];
    expect(of("subagent.started").map(({ agentId }) => agentId)).toEqual(ids);
    expect(
      of("subagent.completed")
        .map(({ agentId }) => agentId)
        .sort(),
    ).toEqual(ids);
    expect(of("subagent.failed")).toEqual([]);
    const types = told.map(({ type }) => type);
    expect(types.lastIndexOf("subagent.started")).toBeLessThan(types.indexOf("subagent.completed"));
    expect(answer).toContain("found by 4 `explore` agents");
    expect(answer).toContain("- `src/orders/` uses `src/lib/` (`src/orders/price.ts:2`)");
  });

  it.each([
    [
      "when agents are denied",
      ["--deny-tool", "agent"],
      "4 of 4 agents gave no report, so I looked there myself – task: ",
    ],
    ["when only reading is offered", ["--available-tools", "view,glob,grep"], "Where to start reading"],
  ])("the understudy explains a repository of several parts alone %s", async (_name, flags, said) => {
    const { at, answer, of } = await explain(...flags);
    await using _ = at;
    expect(of("subagent.started")).toEqual([]);
    expect(answer).toContain("- `src/orders/` (7) – Orders, from the wish to the parcel. `src/orders/orders.ts:1`");
    expect(answer).toContain(said);
  });
});

it("the understudy finds where a function is defined", async () => {
  await using folder = await tempFolder();
  const finished = await troupe(["-p", "Where is runLoop defined?", "-s"], { cwd: process.cwd(), home: folder.path });
  expect(finished.stdout).toMatch(/src\/loop\/loop\.ts:\d+/);
});
