/** The page without a mouse: every key does what its list says, and Tab reaches everything else. */
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Moves } from "../../src/model/faux/faux-step.ts";
import { calls, forAgent, otherwise, says, stalls } from "../../src/testing/index.ts";
import type { SessionRow } from "../../src/web/api.ts";
import { noBrowser, openBrowser, openTab, type WebStage, webStage } from "./stage.ts";
import { files, prompt, tour } from "./tour.ts";
import { walkByTab } from "./walk.ts";

const SLOW = process.env.TROUPE_SLOW !== undefined;

const task = (name: string, words: string, mode: string) =>
  ["task", { name, agent_type: "general-purpose", description: name, prompt: words, mode }] as const;

const agent = (words: string, ...moves: Moves[]) =>
  forAgent(({ messages }) => JSON.stringify(messages.filter(({ role }) => role === "user")).includes(words), ...moves);

const steps = () => [
  calls(["bash", { command: "echo two > a.txt", description: "change" }]),
  calls(["bash", { command: "mkdir made", description: "make" }]),
  calls(["create", { path: "b.txt", file_text: "b\n" }]),
  calls(task("worker", "Work.", "background"), task("helper", "Help me.", "sync")),
  agent("Help me.", stalls()),
  agent("Work.", says("The first part."), says("Resumed.")),
  otherwise(says("Good.")),
];

function commitAll(folder: string): void {
  const git = (...args: string[]): void => void execFileSync("git", ["-C", folder, ...args]);
  git("init", "-q");
  git("add", ".");
  git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "first");
}

/** The row of an agent. Other rows may mention it. */
const row = (name: string): string => `button.agent-row:has(.name:text-is("${name}"))`;

describe.skipIf(!SLOW || noBrowser !== undefined)(
  `the page by keyboard${noBrowser ? ` (skipped: ${noBrowser})` : ""}`,
  () => {
    let browser: Awaited<ReturnType<typeof openBrowser>>;
    beforeAll(async () => {
      browser = await openBrowser();
    });
    afterAll(() => browser?.[Symbol.asyncDispose]());

    it("the Tab key reaches every field and button of all eight views, with visible focus", async () => {
      await using stage = await webStage({ files, steps: tour() });
      execFileSync("git", ["init", "-q", stage.cwd]);
      await using tab = await openTab(browser.browser, stage, { size: { width: 1400, height: 900 } });
      const { page } = tab;
      await page.fill("#prompt", prompt);
      await page.keyboard.press("Enter");
      await page.waitForSelector(".ask");
      await page.click("[data-answer=yes]");
      await page.waitForSelector(`${row("write-tests")}:has-text("approval")`);
      await page.click(row("write-tests"));
      await page.waitForSelector(".ask");
      const session = page.url();
      const id = new URL(session).hash.split("/")[2]?.split("?")[0];
      const views = ["#/", "#/attention", "#/memory", `#/compare?ids=${id},${id}`];
      const ready = [".session-row", ".ask", ".tab", "tbody"];
      const tabs = ["", "/changes", "/cost", "/memory"].map((name) => `#/s/${id}${name}`);
      const tabsReady = [".agent-row", ".dl.add", ".chart canvas", ".tab h2"];
      const found: Record<string, object> = {};
      for (const [index, hash] of [...views, ...tabs].entries()) {
        await page.goto(`${stage.origin}/${hash}`);
        await page.waitForSelector([...ready, ...tabsReady][index] ?? "main");
        await page.waitForTimeout(200);
        const { count, ...wrong } = await walkByTab(page);
        expect({ hash, count }).toEqual({ hash, count: expect.toSatisfy((number: number) => number >= 5) });
        if (wrong.missed.length + wrong.unseen.length > 0) found[hash] = wrong;
      }
      expect(found).toEqual({});
      expect(tab.trouble).toEqual([]);
    });

    it("each key in the page's list has an effect", async () => {
      await using stage = await webStage({ files: { "work/a.txt": "one\n" }, steps: steps() });
      commitAll(stage.cwd);
      await using tab = await openTab(browser.browser, stage);
      const { page } = tab;
      const used = new Set<string>();
      const press = async (key: string): Promise<void> => {
        used.add(key);
        await page.keyboard.press(key);
      };
      await page.waitForSelector(".link-state.open");
      await press("?");
      await page.waitForSelector("dialog[open]");
      const listed = (await page.locator("dialog kbd").allInnerTexts()).map((key) =>
        key.replace(/^(Down|Up)$/, "Arrow$1"),
      );
      await page.keyboard.press("g");
      expect(await page.locator("dialog[open]").count()).toBe(1);
      await page.keyboard.press("?");
      await page.waitForSelector("dialog[open]", { state: "detached" });

      await pages(page, press);
      await requests(page, press);
      await agents(page, press);
      await replay(page, press);
      await changes({ page, stage, press });
      await compare(page, press);
      expect([...used].sort()).toEqual([...new Set(listed)].sort());
      expect(tab.trouble).toEqual([]);
    });
  },
);

type Press = (key: string) => Promise<void>;

const focused = (page: Page): Promise<string> => page.evaluate<string>("document.activeElement?.id ?? ''");

async function pages(page: Page, press: Press): Promise<void> {
  await press("a");
  await page.waitForSelector("h1:has-text('Attention')");
  await press("m");
  await page.waitForSelector("h1:has-text('Memory and board')");
  await press("/");
  await expect.poll(() => focused(page)).toBe("search");
  await page.keyboard.press("Escape");
  await press("g");
  await page.waitForSelector("h1:has-text('Sessions')");
  await press("n");
  await expect.poll(() => focused(page)).toBe("prompt");
  await page.keyboard.type("change");
  await page.keyboard.press("Enter");
}

async function requests(page: Page, press: Press): Promise<void> {
  await page.waitForSelector('.ask:has-text("echo two")');
  await page.keyboard.press("g");
  await page.waitForSelector(".session-row:has-text('needs you')");
  await press("o");
  await page.waitForSelector('.ask:has-text("echo two")');
  await press("y");
  await page.waitForSelector('.ask:has-text("mkdir made")');
  await press("Y");
  await page.waitForSelector('.ask:has-text("b.txt")');
  await press("N");
  await page.waitForSelector(`${row("main agent")}:has-text("idle")`);
}

async function agents(page: Page, press: Press): Promise<void> {
  await press("i");
  await expect.poll(() => focused(page)).toBe("composer");
  await page.keyboard.type("ask a helper");
  await page.keyboard.press("Enter");
  await page.waitForSelector(`${row("helper")}:has-text("working")`);
  await page.keyboard.press("Escape");
  const isSelected = (name: string) => page.waitForSelector(`${row(name)}.selected`);
  await press("j");
  await isSelected("worker");
  await press("ArrowDown");
  await isSelected("helper");
  await press("ArrowUp");
  await isSelected("worker");
  await press("k");
  await isSelected("main agent");
  await page.click(row("helper"));
  await page.waitForSelector("[data-action=background]");
  await press("b");
  await page.waitForSelector(`${row("main agent")}:has-text("idle")`);
  await press("X");
  await page.waitForSelector(`${row("helper")}:has-text("stopped")`);
  expect(await page.locator("[data-action=resume]").count()).toBe(0);
  await page.waitForSelector(`${row("worker")}:has-text("idle")`);
  await page.keyboard.press("k");
  await isSelected("worker");
  await press("r");
  await page.waitForSelector(".line.assistant:has-text('Resumed.')");
  await page.waitForSelector(`${row("worker")}:has-text("idle")`);
  await page.keyboard.press("k");
}

async function replay(page: Page, press: Press): Promise<void> {
  const where = async (): Promise<number> =>
    Number((await page.innerText(".replay .where")).split("/")[0]?.replaceAll(/\D/g, ""));
  const isAt = async (position: number): Promise<void> => expect.poll(where).toBe(position);
  const last = await where();
  await press("[");
  await isAt(last - 1);
  await page.keyboard.press("[");
  await press("]");
  await isAt(last - 1);
  await press("{");
  await isAt(Math.max(0, last - 101));
  await press("}");
  await isAt(Math.min(last, Math.max(0, last - 101) + 100));
  await press(",");
  const before = await where();
  expect(before).toBeLessThan(last - 1);
  await page.keyboard.press(",");
  await expect.poll(where).toBeLessThan(before);
  await press(".");
  await isAt(before);
  await press("e");
  await page.waitForSelector(".replay .state:has-text('live')");
  await press("p");
  await page.waitForSelector(".replay button:has-text('Pause')");
  await page.keyboard.press("p");
  await page.waitForSelector(".replay button:has-text('Play')");
  await page.keyboard.press("e");
}

async function changes({ page, stage, press }: { page: Page; stage: WebStage; press: Press }): Promise<void> {
  await press("3");
  await page.waitForSelector("h2:has-text('By agent')");
  await press("4");
  await page.waitForSelector("h2:has-text('Facts')");
  await press("1");
  await page.waitForSelector(".agent-row");
  await press("2");
  await page.waitForSelector(".change:has-text('a.txt')");
  await page.keyboard.press("j");
  await press("u");
  await page.waitForSelector("text=Restored 1 file.");
  expect(readFileSync(join(stage.cwd, "a.txt"), "utf8")).toBe("one\n");

  await page.keyboard.press("[");
  await page.waitForSelector("[data-replay=fork]");
  await press("f");
  await page.waitForSelector("text=Forked.");
  let folder = "";
  await expect
    .poll(async () => {
      const rows = await stage.call<readonly SessionRow[]>("web.sessions");
      folder = rows.find(({ cwd }) => cwd.includes("forks"))?.cwd ?? "";
      return folder;
    })
    .not.toBe("");
  await page.waitForSelector(".replay .state:has-text('live')");
  writeFileSync(join(folder, "new.txt"), "new\n");
  await page.keyboard.press("2");
  await page.waitForSelector(".change:has-text('1 file to merge')");
  await page.keyboard.press("j");
  await press("M");
  await page.waitForSelector("text=Merged.");
  expect(readFileSync(join(stage.cwd, "new.txt"), "utf8")).toBe("new\n");
  // While the list is read again after the merge, a key reaches no worktree.
  const discarded = async (): Promise<number> => {
    await press("D");
    return page.locator("text=Discarded.").count();
  };
  await expect.poll(discarded, { interval: 2000 }).toBe(1);
}

async function compare(page: Page, press: Press): Promise<void> {
  await page.keyboard.press("g");
  await page.waitForSelector(".session-row >> nth=1");
  await page.keyboard.press("j");
  await press("x");
  await page.keyboard.press("j");
  await page.keyboard.press("x");
  await page.waitForSelector("text=Compare 2");
  await press("c");
  await page.waitForSelector("tbody tr >> nth=1");
}
