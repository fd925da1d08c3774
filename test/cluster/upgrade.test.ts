/** Workers of an older program go on while a newer one changes the tables. */

import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { migrate, migrations } from "../../src/store/postgres/schema.ts";
import { postgresPrograms } from "../support/postgres.ts";
import { ClusterStage, HANG, SLOW } from "./stage.ts";
import { promptOf } from "./stage-model.ts";

const programs = postgresPrograms();
/** The last commit before limits, budgets and tenants. It knows two migrations. */
const OLDER = { commit: "8d6eefbbeb6c8189c0acaecd1c578925347aed3a", schema: 2 };
const hasOlder = spawnSync("git", ["cat-file", "-e", `${OLDER.commit}^{commit}`]).status === 0;
/** A possible next migration: it only adds. */
const NEXT = `
  alter table troupe.work add column next_priority integer not null default 0;
  alter table troupe.session add column next_label text;
  alter table troupe.worker add column next_zone text;
  create table troupe.next_thing(id text primary key, session_id text references troupe.session on delete cascade);
  create index next_work on troupe.work(next_priority);`;

if (programs === undefined) it.skip("older workers survive migrations (skipped: no Postgres here)");
else if (SLOW && !hasOlder)
  it.skip("older workers survive migrations (skipped: the older commit is not in this clone)");

describe.runIf(programs !== undefined && SLOW)("older workers", { timeout: 600_000 }, () => {
  let stage: ClusterStage;
  afterEach(() => stage?.close());

  it("older workers continue while the next migration runs, and start after it", async () => {
    stage = await ClusterStage.open(programs ?? "", { lease: 10 });
    const { id } = await stage.worker("before");
    const ids = await stage.submit(4, { tokens: 6 });
    await expect.poll(() => stage.count(`troupe.session where holder = '${id}'`), HANG).toBeGreaterThan(0);
    await migrate(stage.database, [...migrations, NEXT]);
    await stage.worker("after");
    await stage.finish([...ids, ...(await stage.submit(4))]);
    expect(await stage.count("troupe.next_thing")).toBe(0);
    expect(await stage.takeOvers()).toBe(0);
    expect(await stage.violations()).toEqual([]);
  });

  it.runIf(hasOlder)("workers of an earlier program share their work with this one, which migrates", async () => {
    stage = await ClusterStage.open(programs ?? "", { schema: OLDER.schema, lease: 10 });
    const older = buildOlder(stage.folder.at("older"));
    const old = await stage.worker("old", { program: older });
    const oldIds = Array.from({ length: 6 }, () => crypto.randomUUID());
    const submitted = oldIds.map((sessionId, index) => {
      const tokens = Array.from({ length: 8 }, (_, token) => `t${token}-${sessionId.slice(0, 8)}`);
      const args = ["submit", "--session-id", sessionId, "-p", promptOf("act", index === 0 ? tokens : tokens.slice(4))];
      return stage.run(args, {}, older);
    });
    expect((await Promise.all(submitted)).map(({ code }) => code)).toEqual(oldIds.map(() => 0));
    await expect.poll(() => stage.count(`troupe.session where holder = '${old.id}'`), HANG).toBeGreaterThan(0);
    await stage.worker("new");
    expect(await stage.count("troupe.migration")).toBe(migrations.length);
    const newIds = await stage.submit(6, { tokens: 4 });
    await stage.finish([...oldIds, ...newIds]);
    expect(await stage.takeOvers(oldIds)).toBe(0);
    // Each version goes on with sessions of the other one.
    old.child.kill("SIGKILL");
    await stage.finish(await stage.submit(2));
    await stage.clear();
    await stage.worker("old2", { program: older });
    const last = await stage.submit(2, { tokens: 6 });
    await stage.worker("new2");
    await stage.finish(last);
    const by = new Set(stage.effects().map(({ worker }) => worker));
    expect(by.has(old.id)).toBe(true);
    expect(await stage.violations()).toEqual([]);
  });
});

/** Returns the path of the earlier program. */
function buildOlder(folder: string): string {
  mkdirSync(folder, { recursive: true });
  const archive = execFileSync("git", ["archive", OLDER.commit], { maxBuffer: 2 ** 28 });
  execFileSync("tar", ["-x", "-C", folder], { input: archive });
  symlinkSync(resolve("node_modules"), join(folder, "node_modules"));
  execFileSync(process.execPath, ["scripts/build.mjs"], {
    cwd: folder,
    env: { ...process.env, TROUPE_SKIP_TYPES: "1" },
    stdio: "ignore",
  });
  return join(folder, "bin", "troupe.js");
}
