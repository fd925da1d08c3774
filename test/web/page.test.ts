import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { calls, says } from "../../src/testing/index.ts";
import { AxeBuilder } from "./axe.ts";
import { noBrowser, openBrowser, openTab, type Tab, webStage } from "./stage.ts";
import { files, prompt, tour } from "./tour.ts";
import { walkByTab } from "./walk.ts";

/** Elements that are cut off at the right, but for those that scroll by themselves. */
const tooWide = `[...document.querySelectorAll("body *")]
  .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
  .filter((one) => !one.closest(".list, .lanes, .table, .diff, nav, pre, .tab"))
  .map((one) => one.outerHTML.slice(0, 80)).slice(0, 3).join(" ")`;
/** The tour runs in every test run; `npm run test:web` runs everything. */
const SLOW = process.env.TROUPE_SLOW !== undefined;
const PAGE = join(import.meta.dirname, "../../dist/web");

it("the page loads at most 80 kB before charts and highlighting, compressed", () => {
  const main = readFileSync(join(PAGE, "main.js"), "utf8");
  const loaded = new Set(["index.html", "style.css", "main.js"]);
  const follow = (name: string): void => {
    const text = readFileSync(join(PAGE, name), "utf8");
    for (const [, chunk = ""] of text.matchAll(/(?:from|import)\s?"\.\/(chunk-\w+\.js)"/g)) {
      if (loaded.has(chunk)) continue;
      loaded.add(chunk);
      follow(chunk);
    }
  };
  follow("main.js");
  expect(main.length).toBeGreaterThan(1_000);
  const bytes = [...loaded].reduce((sum, name) => sum + gzipSync(readFileSync(join(PAGE, name))).length, 0);
  expect(bytes).toBeLessThan(80_000);
});

describe.skipIf(noBrowser !== undefined)(`the page in a browser${noBrowser ? ` (skipped: ${noBrowser})` : ""}`, () => {
  let browser: Awaited<ReturnType<typeof openBrowser>>;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser?.[Symbol.asyncDispose]());

  const text = (tab: Tab): Promise<string> => tab.page.innerText("body");

  it("the page shows the todos of a fleet as its plan, as they change and after a reload", async () => {
    const sql = (query: string) => calls(["sql", { description: "todos", query }]);
    const steps = [
      sql("INSERT INTO todos (id, title, description) VALUES ('a', 'Port the lexer', 'x'), ('b', 'Test it', 'y')"),
      sql("UPDATE todos SET status = 'done' WHERE id = 'a'"),
      says("One is left."),
    ];
    await using stage = await webStage({ steps });
    const { sessionId } = await stage.call<{ sessionId: string }>("web.create", { prompt: "port it" });
    await using tab = await openTab(browser.browser, stage, { hash: `#/s/${sessionId}` });
    await tab.page.waitForSelector("li.done:has-text('Port the lexer')");
    await tab.page.reload();
    await tab.page.waitForSelector("li.done:has-text('Port the lexer')");
    expect(await tab.page.innerText("ul.todo")).toContain("Test it");
  });

  it("the page starts a session, approves, follows three agents, stops them, scrubs, undoes and comments", async () => {
    await using stage = await webStage({ files, steps: tour() });
    execFileSync("git", ["init", "-q", stage.cwd]);
    await using tab = await openTab(browser.browser, stage);
    const { page } = tab;
    await page.fill("#prompt", prompt);
    await page.keyboard.press("Enter");

    // The request is in the list of all sessions too, with the exact change.
    await page.waitForSelector(".ask");
    expect(await page.innerText(".blocks")).not.toContain("have no effect");
    await page.click("text=/^Attention 1$/");
    expect(await page.innerText(".ask")).toContain("parse.ts");
    await page.keyboard.press("y");
    await page.waitForSelector('.ask:has-text("parse.ts")', { state: "detached" });
    await page.goBack();

    const row = (name: string): string => `button.agent-row:has-text("${name}")`;
    await page.waitForSelector(row("find-callers"));
    await page.waitForSelector(`${row("find-callers")}:has-text("idle")`);
    await page.click(row("find-callers"));
    await page.waitForSelector('.panel:has-text("There is one caller")');
    expect(await walkByTab(page)).toMatchObject({ missed: [], unseen: [] });

    // A request of a child blocks the child; denying it lets the child go on.
    await page.waitForSelector(`${row("write-tests")}:has-text("approval")`);
    await page.click(row("write-tests"));
    await page.fill('.ask input[type="text"]', "Do not run them yet");
    await page.keyboard.press("Escape");
    await page.keyboard.press("N");
    await page.waitForSelector('.note:has-text("Do not run them yet")');

    await page.click(row("check-docs"));
    await page.waitForSelector(`${row("check-docs")}:has-text("working")`);
    await page.fill("#composer", "Look at README.md only");
    await page.keyboard.press("Enter");
    await expect.poll(() => page.inputValue("#composer")).toBe("");
    await page.keyboard.press("Escape");
    await page.keyboard.press("X");
    await page.waitForSelector(`${row("check-docs")}:has-text("stopped")`);

    // One event back and forth; the slider says where.
    await page.waitForSelector(".state:has-text('live')");
    await page.keyboard.press("[");
    await page.waitForSelector("text=Fork here");
    await page.keyboard.press("e");
    await page.waitForSelector(".replay .state:has-text('live')");

    await page.keyboard.press("2");
    await page.waitForSelector(".dl.add");
    expect(await page.innerText(".diff")).toContain(".map((cell) => cell.trim())");
    await page.hover(".dl.add");
    await page.click(".dl.add >> text=why");
    await page.waitForSelector("text=Where this line comes from");
    expect(await page.innerText("aside.ask")).toContain("main agent");
    await page.click(".dl.add >> text=comment");
    await page.fill(".comment textarea", "Keep it on one line");
    await page.click("text=Send to the agent");
    await page.waitForSelector("text=Sent to the main agent.");
    await page.keyboard.press("1");
    await page.click(row("main agent"));
    await page.waitForSelector(".line.user:has-text('Keep it on one line')");
    await page.waitForSelector(`${row("main agent")}:has-text("idle")`);
    await page.keyboard.press("2");
    await page.click("text=Undo back to here");
    await page.waitForSelector("text=Restored 1 file.");
    expect(readFileSync(join(stage.cwd, "src/parse.ts"), "utf8")).toBe(files["work/src/parse.ts"]);
    expect(tab.trouble).toEqual([]);
  });

  it.runIf(SLOW)("the page shows one session in two tabs, and sends no requests while nothing happens", async () => {
    await using stage = await webStage({ steps: [says("first"), says("second")] });
    const { sessionId } = await stage.call<{ sessionId: string }>("web.create", { prompt: "go" });
    await using one = await openTab(browser.browser, stage, { hash: `#/s/${sessionId}` });
    await using other = await openTab(browser.browser, stage, { hash: `#/s/${sessionId}` });
    for (const tab of [one, other]) await tab.page.waitForSelector("text=first");
    await one.page.fill("#composer", "again");
    await one.page.keyboard.press("Enter");
    for (const tab of [one, other]) await tab.page.waitForSelector(".line.assistant:has-text('second')");
    const before = [one.requests.length, other.requests.length];
    await new Promise((resolve) => setTimeout(resolve, 10_000));
    expect([one.requests.length, other.requests.length]).toEqual(before);
    const asked = new Set(other.requests.map((url) => new URL(url).pathname));
    expect([...asked].filter((path) => path === "/events")).toHaveLength(1);
    expect(one.trouble).toEqual([]);
  });

  it.runIf(SLOW)(
    "the page says how to log in after a restart, and continues then without gap or duplicate",
    async () => {
      await using stage = await webStage({ steps: [says("first"), says("second")] });
      const { sessionId } = await stage.call<{ sessionId: string }>("web.create", { prompt: "go" });
      await using tab = await openTab(browser.browser, stage, { hash: `#/s/${sessionId}` });
      await tab.page.waitForSelector(".line.assistant:has-text('first')");
      await stage.restart();
      await tab.page.waitForSelector(".toast:has-text('Open the address that it prints now')");
      const other = await tab.context.newPage();
      await other.goto(stage.web.address());
      await stage.call("session.send", { sessionId, prompt: "again" });
      await tab.page.waitForSelector(".line.assistant:has-text('second')");
      expect(await tab.page.locator(".line.user").allInnerTexts()).toEqual(["you\n\ngo", "you\n\nagain"]);
      expect(await tab.page.locator(".line.assistant").count()).toBe(2);
    },
  );

  it("the page takes the token out of the address, keeps it for a reload, and lets in a second tab", async () => {
    await using stage = await webStage();
    await using tab = await openTab(browser.browser, stage);
    await tab.page.waitForSelector(".link-state.open");
    expect(tab.page.url()).toBe(`${stage.origin}/#/`);
    await tab.page.reload();
    await tab.page.waitForSelector(".link-state.open");
    const second = await tab.context.newPage();
    await second.goto(`${stage.origin}/#/attention`);
    await second.waitForSelector(".link-state.open");
    await using stranger = await openTab(browser.browser, stage, { isLoggedIn: false });
    await stranger.page.waitForSelector("text=This page needs a new address");
    expect(tab.trouble).toEqual([]);
  });

  it.runIf(SLOW)("the page breaks no accessibility rule, in light and dark, wide and on a phone", async () => {
    const allowed = { "home/settings.json": JSON.stringify({ permissions: { allow: ["write"] } }) };
    await using stage = await webStage({ files: { ...files, ...allowed }, steps: tour() });
    const { sessionId } = await stage.call<{ sessionId: string }>("web.create", { prompt });
    const ready: Readonly<Record<string, string>> = {
      compare: "tbody",
      changes: ".dl",
      cost: ".chart canvas",
      memory: ".tab",
    };
    const wide = { width: 1280, height: 800 };
    const phone = { width: 390, height: 780 };
    const tabs = ["", "/changes", "/cost", "/memory"].map((name) => `#/s/${sessionId}${name}`);
    const views = ["#/", "#/attention", "#/memory", `#/compare?ids=${sessionId},${sessionId}`, ...tabs];
    for (const [scheme, size] of [
      ...[["light", wide] as const, ["dark", phone] as const],
      ...[["dark", wide] as const, ["light", phone] as const],
    ]) {
      await using tab = await openTab(browser.browser, stage, { scheme, size });
      for (const hash of views) {
        await tab.page.goto(`${stage.origin}/${hash}`);
        await tab.page.waitForSelector(ready[hash.split("?")[0]?.replace(/^.*\//, "") ?? ""] ?? "main");
        await tab.page.waitForTimeout(150);
        expect({ scheme, hash, found: await AxeBuilder(tab.page) }).toEqual({ scheme, hash, found: [] });
        const isWide = await tab.page.evaluate<string>(tooWide);
        expect({ hash, isWide }).toEqual({ hash, isWide: "" });
      }
      await tab.page.keyboard.press("?");
      await tab.page.waitForSelector("dialog[open]");
      expect(await text(tab)).toContain("everything that waits for you");
    }
  });
});
