/** `troupe usage` of the built program: its sums equal those of the logs. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { modelServer, says } from "../../src/testing/index.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { type TroupeOptions, troupe } from "../support/troupe.ts";

interface Report {
  readonly since?: string;
  readonly rows: readonly { readonly key: string; readonly calls: number; readonly costUsd: number }[];
  readonly total: Readonly<Record<string, number>>;
}

async function desk() {
  const folder = await tempFolder();
  const [home, cwd] = [join(folder.path, "home"), join(folder.path, "project")];
  for (const path of [home, cwd]) mkdirSync(path, { mode: 0o700 });
  const server = await modelServer({ handler: () => says("a short answer") });
  const models = { priced: { price: { input: 3, output: 15 } }, free: { price: { input: 0, output: 0 } }, unknown: {} };
  const provider = { baseUrl: server.baseUrl, apiKey: "k", models };
  writeFileSync(join(home, "providers.json"), JSON.stringify({ providers: { work: provider } }));
  const run = (args: readonly string[], more: Partial<TroupeOptions> = {}) => troupe(args, { cwd, home, ...more });
  return {
    home,
    run,
    ask: (prompt: string, ...more: string[]) => run(["-s", "-p", prompt, ...more]),
    async report(...flags: string[]): Promise<Report> {
      const { code, stdout, stderr } = await run(["usage", "--json", ...flags]);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      return JSON.parse(stdout) as Report;
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** Adds up all logs, each event once. */
function sumsOfLogs(home: string): Record<string, number> {
  const seen = new Set<string>();
  const sums: Record<string, number> = { calls: 0, inputTokens: 0, outputTokens: 0, costUsd: 0, unpriced: 0 };
  for (const name of readdirSync(join(home, "session-state"))) {
    const log = join(home, "session-state", name, "events.jsonl");
    if (!existsSync(log)) continue;
    for (const line of readFileSync(log, "utf8").split("\n").filter(Boolean)) {
      const { id, type, data } = JSON.parse(line) as { id: string; type: string; data: Record<string, number | null> };
      if (type !== "troupe.usage" || seen.has(id)) continue;
      seen.add(id);
      for (const key of ["inputTokens", "outputTokens", "costUsd"]) sums[key] = (sums[key] ?? 0) + (data[key] ?? 0);
      sums.calls = (sums.calls ?? 0) + 1;
      if (data.costUsd === null) sums.unpriced = (sums.unpriced ?? 0) + 1;
    }
  }
  return sums;
}

const comparable = ({ costUsd = 0, ...rest }: Readonly<Record<string, number>>) => ({
  ...rest,
  costUsd: costUsd.toFixed(9),
});

it("troupe usage equals the sums of the logs, through resumes, rewinds and forks, with and without its cache", async () => {
  await using at = await desk();
  await at.ask("one", "--model", "work/priced", "--name", "first");
  await at.ask("two", "--resume", "first");
  await at.ask("three", "--model", "work/unknown");
  await at.run(["rewind", "--session", "first", "--to", "2"]);
  await at.run(["fork", "--session", "first", "--name", "second"]);
  await at.ask("four", "--resume", "second");
  const sums = sumsOfLogs(at.home);
  expect(sums).toMatchObject({ calls: 4, unpriced: 1 });
  expect(sums.costUsd).toBeGreaterThan(0);
  const first = await at.report();
  expect(comparable(first.total)).toMatchObject(comparable(sums));
  expect(existsSync(join(at.home, "usage-cache.json"))).toBe(true);
  expect(await at.report()).toEqual(first);
  await at.ask("five", "--model", "work/priced");
  expect(comparable((await at.report()).total)).toMatchObject(comparable(sumsOfLogs(at.home)));
  writeFileSync(join(at.home, "usage-cache.json"), "{ broken");
  expect(comparable((await at.report()).total)).toMatchObject(comparable(sumsOfLogs(at.home)));
  rmSync(join(at.home, "usage-cache.json"));
  for (const by of ["day", "model", "agent", "repository"]) {
    const { rows, total } = await at.report("--by", by);
    expect({ by, calls: rows.reduce((sum, { calls }) => sum + calls, 0) }).toEqual({ by, calls: 5 });
    expect(total.calls).toBe(5);
  }
});

it("troupe usage groups by model, agent and repository, and lists what has no known price", async () => {
  await using at = await desk();
  await at.ask("one", "--model", "work/priced");
  await at.ask("two", "--model", "work/unknown");
  const byModel = await at.report("--by", "model");
  expect(byModel.rows.map(({ key }) => key)).toEqual(["work/priced", "work/unknown"]);
  expect((await at.report("--by", "agent")).rows.map(({ key }) => key)).toEqual(["main"]);
  expect((await at.report("--by", "repository")).rows.map(({ key }) => key)).toEqual([
    expect.stringMatching(/project$/),
  ]);
  const { stdout } = await at.run(["usage", "--by", "model"]);
  expect(stdout).toMatch(/^model +calls +input +cached +output +cost\n/);
  expect(stdout).toMatch(/\ntotal +2 /);
  expect(stdout).toContain("+ the cost of 1 calls to models without a known price");
});

it("troupe usage counts only whole days since --since, and says when nothing was used", async () => {
  await using at = await desk();
  expect((await at.run(["usage"])).stdout).toBe("Nothing was used yet.\n");
  await at.ask("one", "--model", "work/free");
  expect((await at.report("--since", "1d")).total.calls).toBe(1);
  expect((await at.run(["usage", "--since", "2999-01-01"])).stdout).toBe("Nothing was used since 2999-01-01.\n");
  expect(await at.run(["usage", "--since", "soon"])).toMatchObject({ code: 2 });
  expect(await at.run(["usage", "--by", "colour"])).toMatchObject({ code: 2 });
});
