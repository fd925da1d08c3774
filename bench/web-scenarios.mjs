// The dashboard in a browser: opening and seeking long sessions, streaming agents, many tabs, and rest.
import { fork } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { now } from "./run-child.mjs";
import { quantile, spread } from "./statistics.mjs";
import { deepModel } from "./terminal-approval.mjs";
import { noBrowser, pacedModel, startBrowser, startDashboard, writeLong } from "./web-stage.mjs";

const page = fileURLToPath(new URL("../dist/web", import.meta.url));
const reader = fileURLToPath(new URL("./web-readers.mjs", import.meta.url));
const most = (limit) => ({ kind: "most", limit });
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const worst = (values) => ({ p50: Math.max(...values) });

/** Separate entries of one name, so that one that fails leaves the figures of the others. */
export const webScenarios = [
  { name: "web", figures: async () => [firstLoad()] },
  part(({ stage, full }) =>
    longSessions({ stage, sizes: full ? [20_000, 200_000] : [20_000], seeks: full ? 100 : 30 }),
  ),
  part(({ stage, full }) => streaming({ stage, seconds: full ? 30 : 10 })),
  { name: "web", figures: ({ stage, full }) => tabs({ stage, turns: full ? 40 : 15 }) },
  part(({ stage, full }) => approvals({ stage, rounds: full ? 30 : 10 })),
  part(({ stage, full }) => rest({ stage, seconds: full ? 60 : 30 })),
];

function part(figures) {
  return {
    name: "web",
    async figures(where) {
      if (noBrowser === undefined) return figures(where);
      process.stderr.write(`web: skipped in a browser: ${noBrowser}\n`);
      return [];
    },
  };
}

/** Everything that the page loads before a lazy view is opened. */
function firstLoad() {
  const loaded = new Set(["index.html", "style.css", "main.js"]);
  for (const name of loaded) {
    const text = readFileSync(join(page, name), "utf8");
    for (const [, chunk] of text.matchAll(/(?:from|import)\s?"\.\/(chunk-\w+\.js)"/g)) loaded.add(chunk);
  }
  const bytes = [...loaded].reduce((sum, name) => sum + gzipSync(readFileSync(join(page, name))).length, 0);
  return { name: "first load, gzipped", unit: "kB", troupe: { p50: bytes / 1000 }, target: most(80) };
}

const SEEK_EVENTS = 100_000;

/** Moves the slider to random events and waits until each is painted. Returns the times. */
const seeking = `async (count) => {
  const slider = document.querySelector(".replay input[type=range]");
  const times = [];
  for (let index = 0; index < count; index++) {
    const from = performance.now();
    slider.value = String(Math.floor(Number(slider.max) * Math.random()));
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    times.push(performance.now() - from);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return times;
}`;

async function longSessions({ stage, sizes, seeks }) {
  const dashboard = await startDashboard({ stage, name: "long" });
  const browser = await startBrowser();
  try {
    const figures = [];
    for (const size of new Set([...sizes, SEEK_EVENTS])) writeLong(dashboard.home, `long-${size}`, size);
    const tab = await browser.page(dashboard);
    await tab.waitForSelector(".session-row");
    const open = async (size) => {
      const from = now();
      await tab.goto(`${dashboard.origin}/#/s/long-${size}`);
      await tab.waitForSelector(".agent-row");
      return now() - from;
    };
    for (const size of sizes) {
      const name = `open a session of ${size.toLocaleString("en")} events`;
      const limit = size > 100_000 ? 3000 : 1000;
      figures.push({ name, unit: "ms", troupe: spread([await open(size)]), target: most(limit) });
    }
    await open(SEEK_EVENTS);
    const times = await tab.evaluate(`(${seeking})(${seeks})`);
    const rows = await tab.locator("[data-key]").count();
    const among = `slowest of ${seeks} seeks in ${SEEK_EVENTS.toLocaleString("en")} events`;
    figures.push({
      name: `${among} (median ${Math.round(quantile(times, 0.5))} ms)`,
      unit: "ms",
      troupe: worst(times),
      target: most(100),
    });
    figures.push({ name: "rows in the document", unit: "rows", troupe: { p50: rows }, target: most(300) });
    return figures;
  } finally {
    await browser.stop();
    await dashboard.stop();
  }
}

/** Notes all tasks of more than 50 ms from now on. */
const watching = `() => {
  window.longTasks = [];
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.longTasks.push(entry.duration);
  }).observe({ entryTypes: ["longtask"] });
}`;

async function streaming({ stage, seconds }) {
  const model = await pacedModel({ seconds: seconds + 10 });
  const dashboard = await startDashboard({ stage, name: "stream", more: model.environment });
  const browser = await startBrowser();
  try {
    const tab = await browser.page(dashboard);
    const { sessionId } = await dashboard.call("web.create", { prompt: "start agents" });
    await tab.goto(`${dashboard.origin}/#/s/${sessionId}`);
    await tab.waitForFunction(() => document.querySelectorAll(".agent-row .state-running").length >= 8);
    await tab.click('.agent-row:has-text("agent0")');
    await tab.waitForSelector(".now .line.assistant");
    await pause(1_000);
    await tab.evaluate(`(${watching})()`);
    const text = () => tab.evaluate(() => document.querySelector(".now")?.textContent?.length ?? 0);
    const before = await text();
    await pause(seconds * 1000);
    const tasks = await tab.evaluate(() => window.longTasks);
    if ((await text()) <= before) throw new Error("nothing was streamed");
    const { busyAgents: busy } = (await dashboard.call("web.sessions")).find(({ id }) => id === sessionId);
    const name = `tasks over 50 ms in ${seconds} s while ${busy} agents stream`;
    return [
      { name, unit: "tasks", troupe: { p50: tasks.length }, target: most(0) },
      { name: "longest of them", unit: "ms", troupe: { p50: Math.max(0, ...tasks) } },
    ];
  } finally {
    await browser.stop();
    await dashboard.stop();
    model.close();
  }
}

const TABS = 50;

/** Turn times of a streaming session with and without tabs, which read in a process of their own. */
async function tabs({ stage, turns }) {
  const model = await pacedModel({ seconds: 0 });
  const dashboard = await startDashboard({ stage, name: "tabs", more: model.environment });
  try {
    const alone = await turnTimes(dashboard, { turns, count: 0 });
    const watched = await turnTimes(dashboard, { turns, count: TABS });
    const again = await turnTimes(dashboard, { turns, count: 0 });
    const name = `turn with ${TABS} tabs, without as floor`;
    const target = { kind: "ratio", limit: 1.1 };
    return [{ name, unit: "ms", floor: spread([...alone, ...again]), troupe: spread(watched), target }];
  } finally {
    await dashboard.stop();
    model.close();
  }
}

async function turnTimes(dashboard, { turns, count }) {
  const { sessionId } = await dashboard.call("web.create", { prompt: `turns ${turns}` });
  const readers = fork(reader, [dashboard.origin, JSON.stringify(dashboard.known), sessionId, String(count)]);
  try {
    for (;;) {
      await pause(500);
      const events = await dashboard.call("web.events", { sessionId });
      const starts = events.filter(({ type }) => type === "assistant.turn_start");
      if (starts.length <= turns || events.at(-1).type !== "assistant.turn_end") continue;
      const times = starts.map(({ timestamp }) => Date.parse(timestamp));
      // The tabs connect during the first turns.
      return times
        .slice(1)
        .map((at, index) => at - times[index])
        .slice(3);
    }
  } finally {
    readers.kill("SIGKILL");
  }
}

/** Resolves with the time at which the page has painted a request that names this file. */
const seeing = `(name) => new Promise((resolve) => {
  const look = () => {
    if (![...document.querySelectorAll(".ask")].some((one) => one.textContent.includes(name))) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => resolve(Date.now())));
  };
  const observer = new MutationObserver(look);
  observer.observe(document.body, { subtree: true, childList: true, characterData: true });
  look();
})`;

/** From the event of an approval that an agent at depth 3 asks for to the frame that shows it, in two views. */
async function approvals({ stage, rounds }) {
  const model = await deepModel();
  const more = { TROUPE_BASE_URL: model.baseUrl, TROUPE_MODEL: "deep", TROUPE_API_KEY: "x" };
  const dashboard = await startDashboard({ stage, name: "approvals", more });
  const browser = await startBrowser();
  try {
    const { sessionId } = await dashboard.call("web.create", { prompt: "round 0" });
    const [everything, one] = [await browser.page(dashboard), await browser.page(dashboard)];
    await everything.goto(`${dashboard.origin}/#/attention`);
    const times = { attention: [], session: [] };
    // The first round warms up.
    for (let round = 0; round <= rounds; round++) {
      await one.goto(`${dashboard.origin}/#/s/${sessionId}?agent=deep${round}`);
      await one.waitForSelector(".agent-row");
      const look = `(${seeing})("deep-${round}.txt")`;
      const shown = { attention: everything.evaluate(look), session: one.evaluate(look) };
      if (round > 0) await dashboard.call("session.send", { sessionId, prompt: `round ${round}` });
      const at = { attention: await shown.attention, session: await shown.session };
      const events = await dashboard.call("web.events", { sessionId });
      const asked = events.findLast(({ type }) => type === "permission.requested");
      for (const view of Object.keys(times)) if (round > 0) times[view].push(at[view] - Date.parse(asked.timestamp));
      await everything.keyboard.press("y");
      await everything.waitForSelector(".ask", { state: "detached" });
    }
    return Object.entries(times).map(([view, values]) => ({
      name: `approval at depth 3, event to the ${view} view, p90 / most`,
      unit: "ms",
      troupe: { p50: quantile(values, 0.9), p90: quantile(values, 1) },
      target: most(250),
    }));
  } finally {
    await browser.stop();
    await dashboard.stop();
    model.close();
  }
}

/** Requests of a tab, and the processor time of the server, while nothing happens. */
async function rest({ stage, seconds }) {
  const dashboard = await startDashboard({ stage, name: "rest" });
  const browser = await startBrowser();
  try {
    writeLong(dashboard.home, "quiet", 2_000);
    const tab = await browser.page(dashboard);
    await tab.goto(`${dashboard.origin}/#/s/quiet`);
    await tab.waitForSelector(".agent-row");
    await pause(6_000);
    let requests = 0;
    tab.on("request", () => requests++);
    const before = processorMs(dashboard.pid);
    await pause(seconds * 1000);
    const share = (processorMs(dashboard.pid) - before) / (seconds * 10);
    return [
      {
        name: `requests of a tab in ${seconds} s of rest`,
        unit: "requests",
        troupe: { p50: requests },
        target: most(0),
      },
      {
        name: `processor time of the server in ${seconds} s of rest`,
        unit: "%",
        troupe: { p50: share },
        target: most(0.5),
      },
    ];
  } finally {
    await browser.stop();
    await dashboard.stop();
  }
}

const TICK_MS = 10;

function processorMs(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}
