/** Clicks in the cost view and in the comparison of several attempts. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { says } from "../../src/testing/index.ts";
import { noBrowser, openBrowser, openTab, webStage } from "./stage.ts";

const SLOW = process.env.TROUPE_SLOW !== undefined;

const priced = (input: number, output: number) => ({ price: { input, output, cacheRead: 0 } });
const providers = JSON.stringify({
  providers: {
    work: { baseUrl: "http://127.0.0.1:9/v1", models: { cheap: priced(1, 2), dear: priced(100, 200), unpriced: {} } },
  },
});

describe.skipIf(!SLOW || noBrowser !== undefined)(
  `costs and attempts in the page${noBrowser ? ` (skipped: ${noBrowser})` : ""}`,
  () => {
    let browser: Awaited<ReturnType<typeof openBrowser>>;
    beforeAll(async () => {
      browser = await openBrowser();
    });
    afterAll(() => browser?.[Symbol.asyncDispose]());

    it("the page shows what the recorded tokens cost on other models, the cheapest first", async () => {
      const usage = { inputTokens: 10_000, outputTokens: 1_000 };
      await using stage = await webStage({
        files: { "home/providers.json": providers },
        steps: [says("one", { usage }), says("two", { usage })],
      });
      const { sessionId } = await stage.call<{ sessionId: string }>("web.create", { prompt: "go" });
      await using tab = await openTab(browser.browser, stage, { hash: `#/s/${sessionId}` });
      const { page } = tab;
      await page.waitForSelector(".line.assistant:has-text('one')");
      await page.click("nav.tabs a:text-is('Cost')");
      const table = 'section[aria-label="The same run on another model"]';
      const costOf = (model: string) => page.innerText(`${table} tr:has-text("work/${model}") >> td >> nth=1`);
      await page.waitForSelector(`${table} tr:has-text("work/dear")`);
      expect([await costOf("cheap"), await costOf("dear")]).toEqual(["$0.0120", "$1.2000"]);
      const names = await page.locator(`${table} tbody tr td.words`).allInnerTexts();
      expect(names.filter((name) => name.startsWith("work/"))).toEqual(["work/cheap", "work/dear"]);
      await stage.call("session.send", { sessionId, prompt: "again" });
      await expect.poll(() => costOf("dear")).toBe("$2.4000");
      // Looking back, only what had been used until then counts.
      await page.keyboard.press("{");
      await page.waitForSelector("text=No model was called yet.");
      expect(await costOf("dear")).toBe("$0.0000");
      expect(tab.trouble).toEqual([]);
    });

    it("the page compares three attempts in one table, and merges the one that is clicked", async () => {
      await using stage = await webStage({ steps: [says("hello")] });
      const git = (...args: string[]): void => void execFileSync("git", ["-C", stage.cwd, ...args]);
      git("init", "-q");
      git("add", ".");
      git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "first");
      const { sessionId } = await stage.call<{ sessionId: string }>("web.create", { prompt: "go" });
      await using tab = await openTab(browser.browser, stage, { hash: `#/s/${sessionId}` });
      const { page } = tab;
      await page.waitForSelector(".line.assistant:has-text('hello')");
      const events = await stage.call<readonly SessionEvent[]>("web.events", { sessionId });
      const forks: { sessionId: string; cwd: string }[] = [];
      for (let index = 0; index < 3; index++) {
        const fork = await stage.call<{ sessionId: string; cwd: string }>("web.fork", {
          ...{ sessionId, toEventId: events.findLast(({ type }) => type === "assistant.message")?.id },
        });
        writeFileSync(join(fork.cwd, `attempt-${index}.txt`), `${index}\n`);
        forks.push(fork);
      }
      await page.click("text=/^Sessions/");
      await page.waitForSelector(".session-row >> nth=3");
      const box = (index: number) =>
        page.locator(`.session-row:has-text("(fork${index === 0 ? ")" : ` ${index + 1})`}") input`);
      for (const index of [0, 1, 2]) await box(index).check();
      await page.click("text=Compare 3");
      await page.waitForSelector("tbody tr >> nth=2");
      expect(await page.locator("tbody tr").count()).toBe(3);
      await page.click("tbody tr:has-text('(fork 2)') >> text=Merge this one");
      await page.waitForSelector("text=Merged as uncommitted changes.");
      expect(readFileSync(join(stage.cwd, "attempt-1.txt"), "utf8")).toBe("1\n");
      expect([0, 2].filter((index) => existsSync(join(stage.cwd, `attempt-${index}.txt`)))).toEqual([]);
      expect(tab.trouble).toEqual([]);
    });
  },
);
