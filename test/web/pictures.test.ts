/** Makes the pictures of the documentation: `TROUPE_PICTURES=1 npx vitest run test/web/pictures.test.ts`. */
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { noBrowser, openBrowser, openTab, webStage } from "./stage.ts";
import { files, prompt, tour } from "./tour.ts";

const FOLDER = join(import.meta.dirname, "../../docs/pictures");

it.skipIf(noBrowser !== undefined || !process.env.TROUPE_PICTURES)(
  "the pictures of the guide are drawn from the page",
  async () => {
    mkdirSync(FOLDER, { recursive: true });
    await using stage = await webStage({ files, steps: tour() });
    execFileSync("git", ["init", "-q", stage.cwd]);
    await using browser = await openBrowser();
    await using tab = await openTab(browser.browser, stage, { size: { width: 1180, height: 640 } });
    const { page } = tab;
    await page.fill("#prompt", prompt);
    await page.keyboard.press("Enter");
    await page.waitForSelector(".ask");
    await page.click("[data-answer=yes]");
    await page.waitForSelector('button.agent-row:has-text("write-tests"):has-text("approval")');
    await page.waitForSelector('button.agent-row:has-text("find-callers"):has-text("idle")');
    await page.click('button.agent-row:has-text("write-tests")');
    await page.waitForSelector(".ask");
    await page.mouse.move(0, 0);
    const shoot = (name: string): Promise<unknown> => page.screenshot({ path: join(FOLDER, `${name}.png`) });
    await shoot("dashboard-session");
    await page.keyboard.press("a");
    await page.waitForSelector(".asks .ask");
    await shoot("dashboard-attention");
    await page.goBack();
    await page.keyboard.press("2");
    await page.waitForSelector(".dl.add");
    await shoot("dashboard-changes");
    await using dark = await openTab(browser.browser, stage, { scheme: "dark", size: { width: 390, height: 720 } });
    await dark.page.waitForSelector(".session-row");
    await dark.page.screenshot({ path: join(FOLDER, "dashboard-phone.png") });
    expect(tab.trouble).toEqual([]);
  },
);
