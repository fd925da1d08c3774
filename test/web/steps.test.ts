/** Steps of a person in the page, beyond the tour: fork, compare, merge, discard, search; cuts; other clients at once. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join, resolve } from "node:path";
import { spawn } from "@lydell/node-pty";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { calls, says } from "../../src/testing/index.ts";
import type { SessionRow } from "../../src/web/api.ts";
import { noBrowser, openBrowser, openTab, type WebStage, webStage } from "./stage.ts";

const SLOW = process.env.TROUPE_SLOW !== undefined;
const ROUNDS = SLOW ? 40 : 8;

const eventsOf = (stage: WebStage, sessionId: string): Promise<readonly SessionEvent[]> =>
  stage.call("web.events", { sessionId });

/** Returns the id of the session that a tab shows. */
const sessionOf = (address: string): string => new URL(address).hash.split("/")[2] ?? "";

function commitAll(folder: string): void {
  const git = (...args: string[]): void => void execFileSync("git", ["-C", folder, ...args]);
  git("init", "-q");
  git("add", ".");
  git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "first");
}

describe.skipIf(noBrowser !== undefined)(`steps in the page${noBrowser ? ` (skipped: ${noBrowser})` : ""}`, () => {
  let browser: Awaited<ReturnType<typeof openBrowser>>;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser?.[Symbol.asyncDispose]());

  it("the page approves a command, forks before a later change, compares, merges, discards and searches", async () => {
    const steps = [
      calls(["bash", { command: "echo two > a.txt; echo made > made.txt", description: "write" }]),
      calls(["bash", { command: "echo three > a.txt; echo late > late.txt", description: "write more" }]),
      says("the first attempt"),
      calls(["edit", { path: "a.txt", old_str: "two", new_str: "better" }]),
      says("the second attempt is marvellous"),
    ];
    await using stage = await webStage({ files: { "work/a.txt": "one\n" }, steps });
    commitAll(stage.cwd);
    await using tab = await openTab(browser.browser, stage);
    const { page } = tab;
    await page.fill("#prompt", "improve a.txt");
    await page.keyboard.press("Enter");
    for (const word of ["echo two", "echo three"]) {
      await page.waitForSelector(`.ask:has-text("${word}")`);
      await page.keyboard.press("Escape");
      await page.keyboard.press("y");
    }
    await page.waitForSelector(".line.assistant:has-text('the first attempt')");

    // At the end of the first command there was no second one.
    const sessionId = sessionOf(page.url());
    const first = await eventsOf(stage, sessionId);
    const point = 1 + first.findIndex(({ type }) => type === "tool.execution_complete");
    await page.locator(".replay input[type=range]").fill(String(point));
    await page.waitForSelector("text=Fork here");
    await page.keyboard.press("Escape");
    await page.keyboard.press("f");
    await page.waitForSelector("text=Forked.");
    await page.waitForSelector(".replay .state:has-text('live')");
    const forkId = sessionOf(page.url());
    expect(forkId).not.toBe(sessionId);
    let folder = "";
    await expect
      .poll(async () => {
        const rows = await stage.call<readonly SessionRow[]>("web.sessions");
        folder = rows.find(({ id }) => id === forkId)?.cwd ?? "";
        return folder;
      })
      .toContain("forks");
    expect(readFileSync(join(folder, "a.txt"), "utf8")).toBe("two\n");
    expect([existsSync(join(folder, "made.txt")), existsSync(join(folder, "late.txt"))]).toEqual([true, false]);

    await page.fill("#composer", "try something else");
    await page.keyboard.press("Enter");
    await page.waitForSelector('.ask:has-text("a.txt")');
    await page.keyboard.press("Escape");
    await page.keyboard.press("y");
    await page.waitForSelector(".line.assistant:has-text('marvellous')");

    await page.keyboard.press("g");
    await page.fill("#search", "marvellous");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".hits mark:has-text('marvellous')");
    await page.fill("#search", "");
    for (const box of await page.locator('.session-row input[type="checkbox"]').all()) await box.check();
    await page.click("text=Compare 2");
    await page.waitForSelector("tbody tr >> nth=1");
    expect(await page.locator("tbody tr").count()).toBe(2);
    await page.waitForSelector("text=/blocks say the same/");
    expect(await page.innerText(".columns")).toContain("marvellous");

    // The folder becomes what the second attempt made of it: what the first one added later goes.
    await page.click("text=Merge this one");
    await page.waitForSelector("text=Merged as uncommitted changes.");
    expect(readFileSync(join(stage.cwd, "a.txt"), "utf8")).toBe("better\n");
    expect([existsSync(join(stage.cwd, "made.txt")), existsSync(join(stage.cwd, "late.txt"))]).toEqual([true, false]);

    await page.goto(`${stage.origin}/#/s/${forkId}/changes`);
    await page.waitForSelector("text=Worktree of this fork");
    await page.click('button:has-text("Discard")');
    await page.waitForSelector("text=Discarded.");
    await page.waitForSelector("text=Worktree of this fork", { state: "detached" });
    expect(existsSync(folder)).toBe(false);
    expect(tab.trouble).toEqual([]);
  });

  it("the page misses and repeats nothing when streams are cut again and again", async () => {
    const steps = Array.from({ length: ROUNDS }, (_, index) => says(`answer ${index}`));
    await using stage = await webStage({ steps });
    const { sessionId } = await stage.call<{ sessionId: string }>("web.create", { prompt: "message 0" });
    await using tab = await openTab(browser.browser, stage, { hash: `#/s/${sessionId}` });
    const { page } = tab;
    await page.waitForSelector(".line.assistant");
    let cuts = 0;
    for (let round = 1; round < ROUNDS; round++) {
      cuts += stage.cutStreams();
      await stage.call("session.send", { sessionId, prompt: `message ${round}` });
      await page.waitForTimeout(round % 3 === 0 ? 1_200 : 50);
    }
    await page.waitForSelector(`.line.assistant:has-text("answer ${ROUNDS - 1}")`);
    expect(cuts).toBeGreaterThan(1);
    const count = (await eventsOf(stage, sessionId)).length.toLocaleString("en-US");
    await expect.poll(() => page.innerText(".replay .where")).toContain(`${count} / ${count}`);
    await page.locator(".blocks").evaluate((list) => list.scrollTo(0, 0));
    const lines = Array.from({ length: ROUNDS }, (_, index) => [`you\n\nmessage ${index}`, `agent\n\nanswer ${index}`]);
    if (!SLOW) expect(await page.locator(".line.user, .line.assistant").allInnerTexts()).toEqual(lines.flat());
  });

  it("a terminal and two tabs share one session", async () => {
    const steps = ["one", "two", "three"].map((word) => says(`answer ${word}`));
    await using stage = await webStage({ steps });
    const terminal = spawn(process.execPath, [resolve("bin/troupe.js")], {
      ...{ cwd: stage.cwd, cols: 100, rows: 30 },
      env: { ...stage.environment, TERM: "xterm-256color" },
    });
    let screen = "";
    terminal.onData((data) => {
      screen += data;
    });
    const ended = new Promise((done) => terminal.onExit(done));
    try {
      await expect.poll(() => screen, { timeout: 60_000 }).toContain("interactive");
      terminal.write("from the terminal\r");
      await expect.poll(() => screen, { timeout: 60_000 }).toContain("answer one");
      await using one = await openTab(browser.browser, stage);
      await using other = await openTab(browser.browser, stage);
      for (const { page } of [one, other]) {
        await page.click(".session-row a");
        await page.waitForSelector(".line.assistant:has-text('answer one')");
      }
      await one.page.fill("#composer", "from a tab");
      await one.page.keyboard.press("Enter");
      await other.page.waitForSelector(".line.assistant:has-text('answer two')");
      await expect.poll(() => screen, { timeout: 60_000 }).toContain("answer two");
      terminal.write("from the terminal again\r");
      for (const { page } of [one, other]) {
        await page.waitForSelector(".line.assistant:has-text('answer three')");
        expect(await page.locator(".line.user").allInnerTexts()).toEqual(
          ["from the terminal", "from a tab", "from the terminal again"].map((text) => `you\n\n${text}`),
        );
      }
      expect([...one.trouble, ...other.trouble]).toEqual([]);
    } finally {
      terminal.kill("SIGKILL");
      await ended;
    }
  });

  it("the page opens although another program left a service worker on the port", async () => {
    const worker = `self.addEventListener("install", () => self.skipWaiting());
      self.addEventListener("activate", (event) => event.waitUntil(clients.claim()));
      self.addEventListener("fetch", (event) => {
        if (new URL(event.request.url).pathname !== "/login")
          event.respondWith(new Response("<h1>squatted</h1>", { headers: { "content-type": "text/html" } }));
      });`;
    const squatter = createServer(({ url }, response) => {
      const isScript = url === "/worker.js";
      response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
      response.end(isScript ? worker : "<script>navigator.serviceWorker.register('/worker.js')</script>");
    });
    await new Promise<void>((done) => squatter.listen(0, "127.0.0.1", done));
    const { port } = squatter.address() as { port: number };
    const context = await browser.browser.newContext();
    const page = await context.newPage();
    await page.goto(`http://127.0.0.1:${port}/`);
    await page.evaluate("navigator.serviceWorker.ready.then(() => undefined)");
    await page.goto(`http://127.0.0.1:${port}/`);
    await page.waitForSelector("text=squatted");
    squatter.closeAllConnections();
    await new Promise((done) => squatter.close(done));
    await using stage = await webStage({ port });
    await page.goto(stage.web.address());
    await page.waitForSelector(".link-state.open");
    await context.close();
  });
});
