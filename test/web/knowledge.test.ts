/** Facts and notes in the page: as they are now, with proposals to accept and changes to undo, and as they were before. */
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openBoardAdministration } from "../../src/runtime/knowledge/board-admin.ts";
import { says } from "../../src/testing/index.ts";
import type { KnowledgeView } from "../../src/web/api.ts";
import { draft, localAt } from "../memory/support.ts";
import { noBrowser, openBrowser, openTab, type WebStage, webStage } from "./stage.ts";

interface Hands extends AsyncDisposable {
  fact(text: string): Promise<unknown>;
  note(name: string, content: string): Promise<unknown>;
  /** Drops a note and writes another in one change. */
  consolidate(drop: string, name: string): Promise<unknown>;
}

/** Changes memory and board as agents do. No two changes have the same time. */
function hands({ home, cwd, environment }: WebStage): Hands {
  const memory = localAt(home, cwd, { isTrusted: true });
  const { board, close } = openBoardAdministration({ cwd, environment, onNotice: () => undefined });
  const by = { action: "add", actor: "scribe" } as const;
  const later = async <T>(work: Promise<T>): Promise<T> => {
    const result = await work;
    await pause(5);
    return result;
  };
  return {
    fact: (text) => later(memory.store(draft(text))),
    note: (name, content) => later(board.add("agent", { name, description: `about ${name}`, content }, by)),
    consolidate: (drop, name) =>
      later(
        board.change({ action: "consolidate", actor: "scribe" }, (rows) => [
          ...rows.filter((row) => row.name !== drop),
          {
            ...{ src: "agent", name, description: "merged", content: "merged", readCount: 0, count: 0 },
            ...{ createdAt: "2026-01-01T00:00:00.000Z", updatedAt: "2026-01-01T00:00:00.000Z" },
          },
        ]),
      ),
    [Symbol.asyncDispose]: close,
  };
}

const seen = ({ facts, notes, changes }: KnowledgeView): object => ({
  facts: facts.map(({ uses: _, ...fact }) => fact),
  notes,
  changes,
});

it("facts and notes of an earlier event are given as they were then", async () => {
  await using stage = await webStage();
  await using agent = hands(stage);
  const moments: { readonly at: string; readonly known: object }[] = [];
  const read = (until?: string): Promise<KnowledgeView> => stage.call("web.knowledge", until ? { until } : {});
  const note = async (): Promise<KnowledgeView> => {
    const known = await read();
    moments.push({ at: new Date().toISOString(), known: seen(known) });
    await pause(5);
    return known;
  };
  await note();
  await agent.fact("Tests run with npm test");
  await agent.note("build", "npm run build");
  await note();
  await agent.note("build", "node scripts/build.mjs");
  await agent.note("style", "biome");
  const [{ id } = { id: "" }] = (await note()).facts;
  await stage.call("web.acceptFact", { id });
  await agent.consolidate("style", "merged");
  const { changes } = await note();
  await stage.call("web.restoreBoard", { change: changes[0]?.id });
  await stage.call("web.removeFact", { id });
  const last = await note();
  expect(last.notes.map(({ name }) => name)).toEqual(["build", "style"]);
  for (const { at, known } of moments) expect({ at, known: seen(await read(at)) }).toEqual({ at, known });
  expect(last.moments.length).toBeGreaterThanOrEqual(7);
});

describe.skipIf(noBrowser !== undefined)(`the page's memory${noBrowser ? ` (skipped: ${noBrowser})` : ""}`, () => {
  let browser: Awaited<ReturnType<typeof openBrowser>>;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser?.[Symbol.asyncDispose]());

  it("the page accepts a proposal, undoes a consolidation, and shows what was known at an event", async () => {
    await using stage = await webStage({ steps: [says("one"), says("two")] });
    await using agent = hands(stage);
    const { sessionId } = await stage.call<{ sessionId: string }>("web.create", { prompt: "first" });
    await using tab = await openTab(browser.browser, stage, { hash: `#/s/${sessionId}` });
    const { page } = tab;
    await page.waitForSelector(".line.assistant:has-text('one')");
    await agent.fact("Tests run with npm test");
    await agent.note("build", "npm run build");
    await agent.note("style", "biome");
    await stage.call("session.send", { sessionId, prompt: "second" });
    await page.waitForSelector(".line.assistant:has-text('two')");
    await agent.consolidate("style", "merged");

    await page.keyboard.press("4");
    await page.waitForSelector('.fact-card:has-text("Tests run with npm test"):has-text("proposed")');
    await page.keyboard.press("y");
    await page.waitForSelector('.fact-card:has-text("Tests run with npm test"):has-text("accepted")');
    await page.waitForSelector('.fact-card:has-text("merged")');
    await page.click('.board-change:has-text("consolidate") >> text=undo');
    await page.waitForSelector('.fact-card strong:has-text("style")');
    expect(await page.locator('.fact-card strong:has-text("merged")').count()).toBe(0);

    // The last event is before the acceptance: the fact is a proposal again, and nothing can be decided there.
    const before = tab.requests.length;
    await page.keyboard.press("[");
    await page.waitForSelector('.fact-card:has-text("proposed")');
    expect(await page.locator(".fact-card button, .board-change button").count()).toBe(0);
    await page.keyboard.press("[");
    await page.waitForSelector("text=As it was at");
    // Between two changes nothing more is asked for.
    expect(tab.requests.slice(before).filter((url) => url.endsWith("/rpc"))).toHaveLength(1);
    await page.locator(".replay input[type=range]").fill("2");
    await page.waitForSelector("text=Nothing is remembered for this folder.");
    await page.waitForSelector("text=The board of this folder is empty.");
    await page.keyboard.press("Escape");
    await page.keyboard.press("e");
    await page.waitForSelector('.fact-card:has-text("accepted")');
    expect(tab.trouble).toEqual([]);
  });
});
