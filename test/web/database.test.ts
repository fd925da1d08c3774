/** Sessions of a database in the page: watched, answered, continued, replayed and found like those of this machine. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { calls, says } from "../../src/testing/index.ts";
import type { SessionHit, SessionRow } from "../../src/web/api.ts";
import { ClusterStage, SLOW } from "../cluster/stage.ts";
import { postgresPrograms } from "../support/postgres.ts";
import { noBrowser, openBrowser, openTab, webStage } from "./stage.ts";

const programs = postgresPrograms();
/** `npm run test:web` runs it. */
const without = programs === undefined ? "no Postgres here" : SLOW ? noBrowser : "TROUPE_SLOW is not set";

if (without !== undefined) it.skip(`sessions of a database in the page (skipped: ${without})`);

describe.runIf(without === undefined)("a session of a database in the page", () => {
  let cluster: ClusterStage;
  let browser: Awaited<ReturnType<typeof openBrowser>>;

  beforeAll(async () => {
    cluster = await ClusterStage.open(programs ?? "");
    cluster.spawnWorker("one", { flags: ["--ask", "--park-after", "0.2"] });
    browser = await openBrowser();
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await cluster?.close();
  });

  const submit = async (word: string): Promise<string> => {
    const { stdout, stderr } = await cluster.run(["submit", "-p", `Do ${word}.`, "--ask", "--json"]);
    expect(stderr).toBe("");
    return (JSON.parse(stdout) as { sessionId: string }).sessionId;
  };
  const saidIn = (page: Page, words: string) => page.waitForSelector(`.blocks:has-text("${words}")`);

  it("a database session in the page is listed, followed, answered while parked, continued and found", async () => {
    cluster.play(
      "zebra",
      calls(["bash", { command: "echo striped", description: "look" }]),
      calls(["ask_user", { question: "How many stripes?", choices: ["ten", "eleven"] }]),
      says("zebras are striped"),
    );
    cluster.play("okapi", says("okapis are shy"));
    await using stage = await webStage({ database: cluster.url });
    await using tab = await openTab(browser.browser, stage);
    await using other = await openTab(browser.browser, stage, { hash: "#/attention" });
    const { page } = tab;
    const sessionId = await submit("zebra");

    await page.click('.session-row:has-text("Do zebra."):has-text("needs you") a');
    await page.waitForSelector('.ask:has-text("echo striped")');
    // While the worker still has it, the head names the worker.
    await expect.poll(() => page.innerText(".session-head")).toContain("in the database");
    await other.page.waitForSelector('.ask:has-text("echo striped")');
    await page.click("[data-answer=yes]");
    await other.page.waitForSelector('.ask:has-text("How many stripes?")');
    await other.page.click("text=eleven");
    await saidIn(page, "zebras are striped");
    expect(await page.innerText(".blocks")).toContain("eleven");
    await other.page.waitForSelector("text=Nothing waits for you.");

    await page.fill("#composer", "Do okapi.");
    await page.keyboard.press("Enter");
    await saidIn(page, "okapis are shy");
    await page.waitForSelector('.session-head:has-text("closed")');
    expect(await page.locator(".line.user").count()).toBe(2);

    await page.keyboard.press("Escape");
    await page.keyboard.press("{");
    await page.waitForSelector("[data-replay=play]:has-text('Play')");
    expect(await page.innerText(".blocks")).not.toContain("okapis");
    expect(await page.locator("[data-replay=fork]").count()).toBe(0);
    await page.keyboard.press("e");
    expect(await page.innerText(".tabs")).toBe("Run\nCost");
    await page.keyboard.press("2");
    await page.waitForSelector("text=on the machines of workers");
    await page.keyboard.press("3");
    await page.waitForSelector("td:has-text('faux-model')");
    const hits = await stage.call<readonly SessionHit[]>("web.search", { words: "okapis" });
    expect(hits.map((hit) => hit.sessionId)).toContain(sessionId);
    const [row] = await stage.call<readonly SessionRow[]>("web.sessions");
    expect(row).toMatchObject({ id: sessionId, state: "closed", isInDatabase: true, attention: [] });
    expect([...tab.trouble, ...other.trouble]).toEqual([]);
  });
});
