/** The view of the workers of a database: what the server reads and does, and the page in a browser. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { openCluster, submitWork } from "../../src/runtime/cluster/cluster.ts";
import { setBudget, setRate } from "../../src/runtime/cluster/limits.ts";
import { addRequest } from "../../src/runtime/cluster/requests.ts";
import { setTenantRole } from "../../src/runtime/cluster/tenants.ts";
import { recordEnd, recordSetAside, recordWaiting } from "../../src/runtime/cluster/work.ts";
import { type Database, openDatabase } from "../../src/store/postgres/database.ts";
import { linePage } from "../../src/store/postgres/line-pages.ts";
import { postgresStore } from "../../src/store/postgres/postgres.ts";
import { migrate } from "../../src/store/postgres/schema.ts";
import { says } from "../../src/testing/index.ts";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import type { Boot, ClusterView, SessionRow } from "../../src/web/api.ts";
import { message } from "../store/support.ts";
import { type PostgresServer, postgresPrograms, startPostgres } from "../support/postgres.ts";
import { AxeBuilder } from "./axe.ts";
import { readStream } from "./events.ts";
import { noBrowser, openBrowser, openTab, type Tab, webStage } from "./stage.ts";
import { walkByTab } from "./walk.ts";

const programs = postgresPrograms();
/** The page's walk runs in every test run; `npm run test:web` runs everything. */
const SLOW = process.env.TROUPE_SLOW !== undefined;
const HOSTILE = "<img src=x onerror=alert(1)> [click](javascript:alert(1))";

if (programs === undefined) it.skip("the view of workers (skipped: no Postgres here)");

it("the page has no view, key or method of workers without a database", async () => {
  await using stage = await webStage();
  expect(await stage.call<Boot>("web.boot")).toEqual({ version: "0.0.0", home: stage.home, cwd: stage.cwd });
  await expect(stage.call("web.cluster")).rejects.toThrow("Unknown method web.cluster.");
});

describe.runIf(programs !== undefined)("the view of workers", () => {
  let server: PostgresServer;
  let database: Database;
  let folder: TempFolder;
  const moved = crypto.randomUUID();
  const [asking, poison, waiting] = ["asks", "poison", "waits"].map((name) => `${name}-${crypto.randomUUID()}`) as [
    string,
    string,
    string,
  ];

  beforeAll(async () => {
    server = await startPostgres(programs ?? "");
    database = await openDatabase({ url: server.url });
    folder = await tempFolder();
    await migrate(database);
    await seedWorkers(database);
    await seedTakeOver(database, folder, moved);
    const log = await storeOf(database, folder, "alive").create(waiting);
    await log.append(message(1), { barrier: true });
    await log.close();
    await seedWork(server.url, { asking, poison, waiting });
    await setBudget(database, "acme", { costUsd: 200, tokens: null, period: "month" });
    await setRate(database, "openai/gpt-5", { requestsPerMinute: 600, concurrency: 20 });
    await database.query("update troupe.rate_limit set gate_until = now() + interval '1 hour'");
  });
  afterAll(async () => {
    await database?.close();
    server?.remove();
    await folder?.remove();
  });

  it("the view of workers reads workers, queues, sessions, budgets and limits, and shows no password", async () => {
    const at = Object.assign(new URL(server.url), { password: "secret" });
    await using stage = await webStage({ database: at.href });
    const { database: name } = await stage.call<Boot>("web.boot");
    expect(name).toBe(`${at.host}${at.pathname}`);
    const view = await stage.call<ClusterView>("web.cluster");
    expect(
      view.workers.map(({ worker, state, sessions, concurrency }) => [worker, state, sessions, concurrency]),
    ).toEqual([
      ["alive", "alive", 1, 8],
      ["draining", "drained", 0, 8],
      ["lost", "lost", 0, 8],
    ]);
    expect(view.workers.map(({ leaseMs }) => leaseMs > 0)).toEqual([true, true, false]);
    expect(view.queues).toEqual([
      {
        ...{ pool: "default", tenant: "acme", waiting: 1, running: 0, parked: 1, setAside: 1 },
        oldestMs: expect.toSatisfy((ms: number) => ms >= 0 && ms < 100_000),
      },
    ]);
    expect(view.sessions.map(({ session, state, repository, reason }) => [session, state, repository, reason])).toEqual(
      [
        [poison, "set_aside", null, HOSTILE],
        [asking, "waiting", null, null],
        [waiting, "queued", "https://git.example.com/app.git", null],
      ],
    );
    expect(view.takeOvers).toMatchObject([{ session: moved, from: "lost", to: "alive", count: 1 }]);
    expect(view.budgets).toMatchObject([{ tenant: "acme", costUsd: 200, spentUsd: 0, heldUsd: 0 }]);
    expect(view.limits).toMatchObject([{ name: "openai/gpt-5", gateMs: expect.any(Number) }]);
    expect(view.requests).toMatchObject([{ id: "r1", sessionId: asking, kind: "permission" }]);
    expect(JSON.stringify(view)).not.toContain("secret");
  });

  it("the view of workers accepts only decisions that fit the request", async () => {
    await using stage = await webStage({ database: server.url });
    const answer = (params: object) => stage.call("web.answerRequest", { sessionId: asking, id: "r1", ...params });
    await expect(answer({ decision: "text", text: "allow" })).rejects.toThrow(
      "does not fit a request of kind permission. Answer with allow or deny.",
    );
    await expect(answer({})).rejects.toThrow("The request has no decision.");
    await expect(stage.call("web.drain", { worker: "nobody", isAsked: true })).rejects.toThrow(
      "This worker no longer exists",
    );
    await expect(stage.call("web.retryWork", { work: waiting })).rejects.toThrow("is not suspended and has not failed");
  });

  it("the view of workers shows a tenant's role its own work and sessions, and says what is hidden", async () => {
    await database.query("create role acme login");
    await setTenantRole(database, { role: "acme", tenant: "acme", pools: [] });
    await database.query("update troupe.session set tenant = 'acme' where id = $1", [waiting]);
    await using stage = await webStage({ database: Object.assign(new URL(server.url), { username: "acme" }).href });
    const view = await stage.call<ClusterView>("web.cluster");
    expect(view).toMatchObject({ isTenant: true, workers: [], limits: [], takeOvers: [] });
    expect(view.queues).toMatchObject([{ tenant: "acme", waiting: 1, parked: 1, setAside: 1 }]);
    expect(view.budgets).toMatchObject([{ tenant: "acme", costUsd: 200, spentUsd: 0, heldUsd: null }]);
    expect(view.sessions).toHaveLength(3);
    const rows = await stage.call<readonly SessionRow[]>("web.sessions");
    expect(rows.map(({ id, state, isInDatabase }) => [id, state, isInDatabase])).toEqual([[waiting, "working", true]]);
    expect(await stage.call("web.events", { sessionId: waiting })).toHaveLength(1);
    expect(await stage.call("web.events", { sessionId: moved }).catch(String)).toContain("no session");
    await database.query("update troupe.session set tenant = 'default' where id = $1", [waiting]);
  });

  it("the view of workers reports an unreachable database, and lists the local sessions", async () => {
    await using stage = await webStage({ database: "postgres://troupe@127.0.0.1:1/away", steps: [says("hi")] });
    const own = await stage.call<{ sessionId: string }>("web.create", { prompt: "hello" });
    await using stream = await readStream(stage, `session=${own.sessionId}`);
    await stream.until(({ all }) => all.some(({ data }) => data.problem?.includes("127.0.0.1:1") === true));
    await stream.until((one) => one.events().some(({ type }) => type === "assistant.message"));
    expect((await stage.call<readonly SessionRow[]>("web.sessions")).map(({ id }) => id)).toEqual([own.sessionId]);
  });

  it("the view of workers reads logs in pages of limited size, without damaged lines", async () => {
    const line = (id: number, text: string): string => JSON.stringify({ id: `e${id}`, ...about, data: { text } });
    const about = { timestamp: new Date().toISOString(), parentId: null, type: "user.message" };
    const lines = Array.from({ length: 1_500 }, (_, index) => line(index + 1, index < 5 ? "x".repeat(400_000) : ""));
    lines[7] = "damaged";
    await database.query("insert into troupe.session(id, epoch, last_seq) values('long', 1, 1500)");
    await database.query(
      "insert into troupe.event select 'long', e.seq, 1, e.line from unnest($1::text[]) with ordinality as e(line, seq)",
      [lines],
    );
    const pages: number[][] = [];
    for (let page = await linePage(database, "long", 0); ; ) {
      pages.push(page.lines.map(({ number }) => number));
      if (page.isEnd) break;
      page = await linePage(database, "long", page.last);
    }
    expect(pages.map(({ length }) => length)).toEqual([3, 999, 497]);
    expect(pages.flat()).toEqual(lines.flatMap((_, index) => (index === 7 ? [] : [index + 1])));
    expect(await linePage(database, "long", 1_500)).toEqual({ lines: [], last: 1_500, isEnd: true });
    await database.query("delete from troupe.session where id = 'long'");
  });

  describe.skipIf(noBrowser !== undefined)(`in a browser${noBrowser ? ` (skipped: ${noBrowser})` : ""}`, () => {
    let browser: Awaited<ReturnType<typeof openBrowser>>;
    beforeAll(async () => {
      browser = await openBrowser();
    });
    afterAll(() => browser?.[Symbol.asyncDispose]());

    it.runIf(SLOW)("the view of workers is not offered without a database", async () => {
      await using stage = await webStage();
      await using tab = await openTab(browser.browser, stage, { hash: "#/workers" });
      await tab.page.waitForSelector("h1:has-text('Sessions')");
      await tab.page.waitForSelector(".link-state[title*=troupe]");
      await tab.page.keyboard.press("w");
      expect(await tab.page.innerText("nav")).not.toContain("Workers");
      expect(await tab.page.locator("h1").innerText()).toBe("Sessions");
    });

    const openView = async (tab: Tab): Promise<Page> => {
      await tab.page.waitForSelector("nav >> text=Workers");
      await tab.page.keyboard.press("w");
      await tab.page.waitForSelector("tr:has-text('lost')");
      return tab.page;
    };
    const found = async (sql: string) => (await database.query<{ id: unknown }>(sql)).rows.map(({ id }) => id);

    it("the view of workers shows database texts as text, drains a worker, undoes that, and answers", async () => {
      await using stage = await webStage({ database: server.url });
      await using tab = await openTab(browser.browser, stage);
      const page = await openView(tab);
      expect(await page.locator("main img, main a:not([href^='#/s/'])").count()).toBe(0);
      expect(await page.innerText(".fact-card >> nth=0")).toContain("<img src=x");
      await page.click("tr:has-text('alive') >> text=Drain");
      await page.waitForSelector("tr:has-text('alive') >> text=Take jobs again");
      expect(await found("select id from troupe.worker where drain_asked")).toEqual(["alive"]);
      await page.click("tr:has-text('alive') >> text=Take jobs again");
      await page.waitForSelector("tr:has-text('alive') >> text=Drain");
      expect(await found("select id from troupe.worker where drain_asked")).toEqual([]);
      await page.keyboard.press("y");
      await page.waitForSelector(".ask", { state: "detached" });
      expect(await found("select answer as id from troupe.answer")).toEqual([{ kind: "approved" }]);
      expect(tab.trouble).toEqual([]);
    });

    it.runIf(SLOW)(
      "the view of workers works by keyboard, cancels after a second click, and polls only while visible",
      async () => {
        await using stage = await webStage({ database: server.url });
        await using tab = await openTab(browser.browser, stage);
        const page = await openView(tab);
        expect(await AxeBuilder(page)).toEqual([]);
        expect(await walkByTab(page)).toMatchObject({ missed: [], unseen: [] });
        const card = '.fact-card:has-text("waits for a place")';
        await page.click(`${card} >> text=details`);
        expect(await page.innerText(card)).toContain("https://git.example.com/app.git at main");
        await page.click(`${card} >> [data-action=cancel]`);
        await page.click(`${card} >> text=Click again to cancel it`);
        await page.waitForSelector("text=Cancelled.");
        await page.click(`${card} >> strong >> a`);
        await page.waitForSelector(".line.user");
        await page.goBack();
        await page.waitForSelector(card);
        expect(await found("select id from troupe.work where abort_at is not null")).toEqual([waiting]);

        const calls = (): number => tab.requests.filter((address) => address.endsWith("/rpc")).length;
        const callsIn = async (ms: number): Promise<number> => {
          const before = calls();
          await page.waitForTimeout(ms);
          return calls() - before;
        };
        expect(await callsIn(3_000)).toBeOneOf([1, 2, 3]);
        const show = (state: string) =>
          page.evaluate(`Object.defineProperty(document, "visibilityState", { value: "${state}", configurable: true });
          document.dispatchEvent(new Event("visibilitychange"))`);
        await show("hidden");
        await page.waitForTimeout(1_000);
        expect(await callsIn(2_500)).toBe(0);
        await show("visible");
        await expect.poll(() => callsIn(100)).toBeGreaterThan(0);
        await page.keyboard.press("g");
        await page.waitForSelector("h1:has-text('Sessions')");
        await page.waitForTimeout(1_000);
        expect(await callsIn(2_500)).toBe(0);
        expect(tab.trouble).toEqual([]);
      },
    );
  });
});

async function seedWorkers(database: Database): Promise<void> {
  const workers = [
    ["alive", false, "1 hour"],
    ["draining", true, "1 hour"],
    ["lost", false, "-1 hour"],
  ] as const;
  for (const [id, isDraining, left] of workers) {
    await database.query(
      `insert into troupe.worker(id, host, pid, pool, version, concurrency, draining, expires_at)
       values($1, 'host', 1, 'default', '0.0.0', 8, $2, now() + $3::interval)`,
      [id, isDraining, left],
    );
  }
}

async function seedTakeOver(database: Database, folder: TempFolder, sessionId: string): Promise<void> {
  await (await storeOf(database, folder, "lost").create(sessionId)).append(message(1), { barrier: true });
  await storeOf(database, folder, "alive").open(sessionId);
}

const storeOf = (database: Database, { path }: TempFolder, id: string) =>
  postgresStore({ database, folder: path, disk: nodeDisk, worker: { id, host: "host", pid: 1 } });

async function seedWork(url: string, ids: { asking: string; poison: string; waiting: string }): Promise<void> {
  const cluster = await openCluster({ url });
  const { database } = cluster;
  for (const id of Object.values(ids)) {
    const place = id === ids.waiting ? { repository: "https://git.example.com/app.git", ref: "main" } : {};
    const request = { prompt: HOSTILE, flags: [], ...place };
    await submitWork(cluster, { ...{ id, sessionId: id, tenant: "acme", onLoss: "continue" }, request });
  }
  await database.query("delete from troupe.queue where work_id <> $1", [ids.waiting]);
  await database.query("insert into troupe.session(id, epoch, tenant) values($1, 1, 'acme')", [ids.asking]);
  await recordWaiting(database, ids.asking);
  const permissionRequest = {
    ...{ kind: "shell", toolCallId: "c1", fullCommandText: `echo '${HOSTILE}'`, intention: "say it" },
    ...{
      commands: [],
      possiblePaths: [],
      possibleUrls: [],
      hasWriteFileRedirection: false,
      canOfferSessionApproval: false,
    },
  } as const;
  const asked = { kind: "permission", requestId: "r1", permissionRequest } as unknown as Parameters<
    typeof addRequest
  >[2];
  await addRequest(database, ids.asking, asked, ids.asking);
  await recordSetAside(database, ids.poison, HOSTILE);
  await recordEnd(database, ids.poison, { kind: "failed", message: HOSTILE });
  await cluster.close();
}
