/** Texts of others in every field that reaches the page: no script runs, no policy is violated, nothing leaves. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nodeDisk } from "../../src/lib/node/disk.ts";
import { systemStamp } from "../../src/lib/stamp.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { jsonlStore } from "../../src/store/jsonl.ts";
import { htmlOf } from "../../src/web/export-html.ts";
import { noBrowser, openBrowser, openTab, webStage } from "./stage.ts";

const SLOW = process.env.TROUPE_SLOW !== undefined;
const STEPS = SLOW ? 25 : 4;

const everyText: readonly string[] = [
  "<script>window.hit = 1</script>",
  "<img src=x onerror='window.hit = 2'>",
  "<svg onload='window.hit = 3'></svg>",
  "[link](javascript:window.hit=4)",
  "[link](data:text/html,<script>window.hit=5</script>)",
  "[link](JaVaScRiPt:window.hit=6)",
  "![image](https://evil.example/pixel.png)",
  '![image](x" onerror="window.hit=7)',
  "<a href='javascript:window.hit=8'>click</a>",
  "<iframe src='https://evil.example'></iframe>",
  "<style>body{background:url(https://evil.example/x)}</style>",
  "<link rel=stylesheet href=https://evil.example/x.css>",
  "<meta http-equiv=refresh content='0;url=https://evil.example'>",
  "</script><script>window.hit = 9</script>",
  "`code` ```\n<script>window.hit = 10</script>\n```",
  "| a | <img src=x onerror=window.hit=11> |\n|---|---|\n| [x](javascript:window.hit=12) | b |",
  "- [ ] <details open ontoggle=window.hit=13>x</details>",
  "\u202Eevil\u202C \u200Bzero \u2066width\u2069",
  "\u001b]8;;javascript:window.hit=14\u0007link\u001b]8;;\u0007",
  "{{constructor.constructor('window.hit=15')()}}",
  "<math><mtext><table><mglyph><style><img src=x onerror=window.hit=16>",
  "&lt;script&gt;window.hit=17&lt;/script&gt; &#x3C;script&#x3E;",
  "[x]: javascript:window.hit=18\n\n[x]",
  "<https://evil.example> https://evil.example/auto",
  "x".repeat(200_000),
  "```".repeat(2_000),
  "[".repeat(5_000),
  "**".repeat(5_000),
  "|a".repeat(2_000),
  "> ".repeat(300),
];
/** The long ones are for `npm run test:web`. */
const texts = SLOW ? everyText : everyText.filter(({ length }) => length < 500);

/** A log with each text in every field that the page shows. */
function hostileEvents(sessionId: string): SessionEvent[] {
  const events: unknown[] = [];
  let number = 0;
  const add = (type: string, data: unknown, agentId?: string): void => {
    const id = `e${++number}`;
    const timestamp = new Date(1_700_000_000_000 + number * 1_000).toISOString();
    events.push({
      id,
      timestamp,
      parentId: number === 1 ? null : `e${number - 1}`,
      type,
      data,
      ...(agentId && { agentId }),
    });
  };
  add("session.start", {
    sessionId,
    version: 1,
    producer: "troupe",
    copilotVersion: "0",
    startTime: "2026-01-01T00:00:00.000Z",
    context: { cwd: "/tmp/<img src=x onerror=window.hit=50>", branch: "<script>window.hit=51</script>" },
  });
  for (const [index, text] of texts.entries()) {
    const call = `call-${index}`;
    add("user.message", { content: text, attachments: [] });
    add("troupe.session_named", { name: text.slice(0, 200) });
    add("assistant.turn_start", { turnId: `t${index}`, model: text.slice(0, 100) });
    add("assistant.message", {
      messageId: `m${index}`,
      content: text,
      toolRequests: [{ toolCallId: call, name: text.slice(0, 50), arguments: { command: text } }],
    });
    add("tool.execution_start", {
      toolCallId: call,
      toolName: text.slice(0, 50),
      arguments: { command: text, path: text },
    });
    const isGood = index % 2 === 0;
    add("tool.execution_complete", {
      toolCallId: call,
      success: isGood,
      ...(isGood
        ? { result: { content: text, detailedContent: `--- a\n+++ b\n@@ -1 +1 @@\n-${text}\n+${text}` } }
        : { error: { message: text } }),
    });
    add("session.warning", { warningType: text.slice(0, 60), message: text });
    add("session.error", { errorType: "x", message: text });
    const taskId = `agent-${index}`;
    add("troupe.task_created", {
      ...{ taskId, toolCallId: call, kind: "agent", agentName: text.slice(0, 40), agentDisplayName: text.slice(0, 60) },
      ...{ description: text.slice(0, 300), prompt: text, mode: "background", depth: 1, multiTurn: true, tools: null },
      worktree: text.slice(0, 80),
    });
    add("troupe.task_state", { taskId, from: "queued", to: "running" });
    add("troupe.task_state", { taskId, from: "running", to: "failed", response: text, error: text });
    add("troupe.usage", {
      ...{
        turnId: `t${index}`,
        provider: text.slice(0, 20),
        model: text.slice(0, 80),
        inputTokens: 1,
        outputTokens: 1,
      },
      ...{ cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0, costUsd: 0.001, durationMs: 5, attempts: 1 },
    });
    add("permission.requested", {
      requestId: `r${index}`,
      permissionRequest: {
        ...{ kind: "shell", toolCallId: call, fullCommandText: text, intention: text, commands: [], possiblePaths: [] },
        ...{ possibleUrls: [], hasWriteFileRedirection: false, canOfferSessionApproval: true },
      },
    });
  }
  return events as SessionEvent[];
}

describe.skipIf(noBrowser !== undefined)(`hostile texts${noBrowser ? ` (skipped: ${noBrowser})` : ""}`, () => {
  let browser: Awaited<ReturnType<typeof openBrowser>>;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser?.[Symbol.asyncDispose]());

  it("hostile texts have no effect in any view", async () => {
    await using stage = await webStage();
    const store = jsonlStore({ root: stage.home, disk: nodeDisk, stamp: systemStamp });
    const log = await store.create("hostile");
    for (const event of hostileEvents("hostile")) await log.append(event, { barrier: false });
    await using tab = await openTab(browser.browser, stage);
    const { page } = tab;
    // The log stays open meanwhile: its requests count as open then.
    for (const hash of [
      "#/",
      "#/attention",
      "#/s/hostile",
      "#/s/hostile/changes",
      "#/s/hostile/cost",
      "#/compare?ids=hostile,hostile",
      "#/s/hostile",
    ]) {
      await page.goto(`${stage.origin}/${hash}`);
      await page.waitForSelector("main");
      await page.waitForTimeout(SLOW ? 1_000 : 60);
    }
    const list = page.locator(".blocks");
    for (let step = 0; step < STEPS; step++) {
      await list.evaluate((element, at) => element.scrollTo(0, element.scrollHeight * at), step / STEPS);
      await page.waitForTimeout(40);
      expect(await page.locator("[data-key]").count()).toBeLessThanOrEqual(300);
    }
    for (const index of SLOW ? [0, 3, 7, 20] : [0, 20]) {
      await page.goto(`${stage.origin}/#/s/hostile?agent=agent-${index}`);
      await page.waitForSelector(".panel h2");
    }
    // Every link is inert or leads to http, and none was followed.
    const targets = await page.evaluate<string[]>(
      `[...document.querySelectorAll("a")].map((link) => link.getAttribute("href") ?? "")`,
    );
    expect(targets.filter((href) => !/^(https?:\/\/|#)/.test(href))).toEqual([]);
    expect(await page.evaluate("window.hit")).toBeUndefined();
    expect(
      await page.evaluate(
        `document.querySelectorAll("main script, main iframe, main style, main img, main svg, main meta").length`,
      ),
    ).toBe(0);
    expect(tab.trouble).toEqual([]);
    // The control: the browser refuses to make HTML from text here, and the refusal is noticed.
    await expect(page.evaluate("document.body.innerHTML = '<b>x</b>'")).rejects.toThrow(/TrustedHTML/);
    await expect.poll(() => tab.trouble.length).toBeGreaterThan(0);
    await log.close();
  });

  it.runIf(SLOW)("hostile texts have no effect in an exported file, which replays offline", async () => {
    await using stage = await webStage();
    const events = hostileEvents("hostile");
    let html = "";
    const all = (async function* () {
      yield* events;
    })();
    const assets = join(import.meta.dirname, "../../dist/web");
    const secret = "hunter2-very-secret-value-9981";
    const title = "</title><script>window.hit = 60</script>";
    events.push({
      ...(events[1] as SessionEvent),
      id: "last",
      data: { content: `key ${secret}`, attachments: [] },
    } as SessionEvent);
    for await (const piece of htmlOf({ title, events: all, assets, environment: { MY_API_KEY: secret } }))
      html += piece;
    expect(html).not.toContain(secret);
    const path = join(stage.cwd, "run.html");
    writeFileSync(path, html);
    expect(readFileSync(path).length).toBeGreaterThan(100_000);
    const page = await browser.browser.newPage();
    const asked: string[] = [];
    const trouble: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    page.on("pageerror", (error) => trouble.push(error.message));
    page.on("console", (message) => {
      if (message.type() === "error") trouble.push(message.text());
    });
    await page.goto(`file://${path}`);
    await page.waitForSelector(".replay");
    await page.waitForSelector(".agent-row");
    await page.keyboard.press("[");
    await page.waitForSelector('.replay button:has-text("End")');
    await page.keyboard.press("3");
    await page.waitForSelector("text=By agent");
    expect(await page.evaluate("window.hit")).toBeUndefined();
    expect(asked.filter((url) => !url.startsWith("file:"))).toEqual([]);
    expect(trouble).toEqual([]);
    await page.close();
  });
});
