/** Requests of MCP servers in the page: a form to fill in, and a sign-in. */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { calls, says } from "../../src/testing/index.ts";
import { oauthServer } from "../mcp/oauth-server.ts";
import { noBrowser, openBrowser, openTab, webStage } from "./stage.ts";

const program = fileURLToPath(new URL("../mcp/servers/version-one.mjs", import.meta.url));

const configured = (server: object): Readonly<Record<string, string>> => ({
  "home/mcp-config.json": JSON.stringify({ mcpServers: { one: server } }),
});

describe.skipIf(noBrowser !== undefined)(
  `MCP servers in the page${noBrowser ? ` (skipped: ${noBrowser})` : ""}`,
  () => {
    let browser: Awaited<ReturnType<typeof openBrowser>>;
    beforeAll(async () => {
      browser = await openBrowser();
    });
    afterAll(() => browser?.[Symbol.asyncDispose]());

    it("an MCP server gets the page's form with its defaults and the user's input", async () => {
      const files = configured({ command: process.execPath, args: [program] });
      await using stage = await webStage({ files, steps: [calls(["one-prefilled", {}]), says("thanks")] });
      const { sessionId } = await stage.call<{ sessionId: string }>("web.create", { prompt: "ask me" });
      await using tab = await openTab(browser.browser, stage, { hash: `#/s/${sessionId}` });
      const { page } = tab;
      await page.click("[data-answer=yes]");
      await page.waitForSelector('.ask:has-text("Which part?")');
      await page.click("text=/^Attention 1$/");
      expect(await page.inputValue('[aria-label="part"]')).toBe("Hamlet");
      await page.fill('[aria-label="acts"]', "3");
      await page.uncheck('[aria-label="verse"]');
      await page.click('.ask button:has-text("Send")');
      await page.waitForSelector("text=Nothing waits for you.");
      await page.goBack();
      await page.waitForSelector(".line.assistant:has-text('thanks')");
      await page.click(".card.tool-done >> nth=0");
      const answer = { action: "accept", content: { part: "Hamlet", acts: 3, verse: false } };
      await expect.poll(() => page.innerText(".card.tool-done")).toContain(JSON.stringify(answer));
      expect(tab.trouble).toEqual([]);
    });

    it("MCP servers that need a sign-in are listed in the page, and reconnect when the user returns", async () => {
      const server = await oauthServer();
      await using stage = await webStage({
        files: configured({ type: "http", url: server.url }),
        steps: [says("hello")],
      });
      await using tab = await openTab(browser.browser, stage);
      const { page } = tab;
      await page.fill("#prompt", "go");
      await page.keyboard.press("Enter");
      await page.click("text=/^Attention 1$/");
      await page.waitForSelector('.ask:has-text("Sign in to one")');
      await page.keyboard.press("y");
      const link = page.locator(".ask a.outside");
      const address = (await link.getAttribute("href")) ?? "";
      expect(address).toContain(`${server.origin}/authorize`);
      expect(await link.innerText()).toBe(`Open ${address}`);
      expect(server.asked).not.toContain("token authorization_code");
      // The person follows the link in another tab.
      const other = await tab.context.newPage();
      await other.goto(address);
      await page.waitForSelector("text=Nothing waits for you.");
      expect(server.asked).toContain("token authorization_code");
      expect(tab.trouble).toEqual([]);
    });
  },
);
