// The dashboard as a child process, a browser, logs of long sessions, and a model whose agents stream, for the web scenario.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const bin = fileURLToPath(new URL("../bin/troupe.js", import.meta.url));
const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find((path) => existsSync(path));

/** Why nothing is measured in a browser here; undefined where it is. */
export const noBrowser = CHROMIUM === undefined ? "chromium is not installed" : undefined;

/** Starts `troupe web`. `login` returns the headers of a page; `call` calls a method as the page does. */
export async function startDashboard({ stage, name, more = {} }) {
  const home = join(stage.home, `web-${name}`);
  mkdirSync(home, { recursive: true });
  const env = {
    ...{ PATH: process.env.PATH, HOME: home, TROUPE_HOME: home, TROUPE_NO_DISCOVERY: "1", TROUPE_SANDBOX: "off" },
    ...more,
  };
  const argv = [bin, "web", "--no-open"];
  const child = spawn(process.execPath, argv, { cwd: stage.workspace, env, stdio: ["pipe", "pipe", "ignore"] });
  const printed = lines(child.stdout);
  const ended = new Promise((resolve) => child.once("exit", resolve));
  void ended.then(() => printed.end());
  const newAddress = async () => /http:\S+/.exec(await printed.next())?.[0] ?? "";
  const first = await newAddress();
  if (first === "") throw new Error("troupe web ended at once");
  const { origin } = new URL(first);
  const address = async () => {
    child.stdin.write("\n");
    return newAddress();
  };
  const login = async () => {
    const { headers } = await fetch(await address(), { redirect: "manual" });
    return {
      cookie: (headers.get("set-cookie") ?? "").split(";")[0],
      "x-troupe-token": (headers.get("location") ?? "").replace("/#token=", ""),
    };
  };
  const known = await login();
  return {
    ...{ origin, home, pid: child.pid, address, known },
    async call(method, params = {}) {
      const response = await fetch(`${origin}/rpc`, {
        method: "POST",
        headers: { "content-type": "application/json", origin, ...known },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
      });
      const { result, error } = await response.json();
      if (error) throw new Error(error.message);
      return result;
    },
    async stop() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}

function lines(stream) {
  let text = "";
  const waiting = [];
  stream.setEncoding("utf8").on("data", (chunk) => {
    text += chunk;
    while (waiting.length > 0 && text.includes("\n")) waiting.shift()(take());
  });
  const take = () => {
    const line = text.slice(0, text.indexOf("\n"));
    text = text.slice(line.length + 1);
    return line;
  };
  return {
    end() {
      for (const resolve of waiting.splice(0)) resolve("");
    },
    next: () => (text.includes("\n") ? Promise.resolve(take()) : new Promise((resolve) => waiting.push(resolve))),
  };
}

/** A browser with an empty profile. */
export async function startBrowser() {
  const { chromium } = await import("playwright-core");
  const profile = mkdtempSync(join(tmpdir(), "troupe-bench-browser-"));
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"],
    env: { ...process.env, HOME: profile },
  });
  return {
    async page(dashboard) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
      const page = await context.newPage();
      page.setDefaultTimeout(120_000);
      await page.goto(await dashboard.address());
      await page.waitForSelector(".link-state.open");
      return page;
    },
    async stop() {
      await browser.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}

/** Writes the log of a session with so many events of 30 agents. */
export function writeLong(home, sessionId, count) {
  const folder = join(home, "session-state", sessionId);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "events.jsonl"), `${longRun(sessionId, count).join("\n")}\n`);
}

const AGENTS = 30;

function longRun(sessionId, count) {
  const events = [];
  const add = (type, data, agentId) => {
    const number = events.length + 1;
    const timestamp = new Date(1_700_000_000_000 + number * 250).toISOString();
    const parentId = number === 1 ? null : `e${number - 1}`;
    events.push(JSON.stringify({ id: `e${number}`, timestamp, parentId, type, data, ...(agentId && { agentId }) }));
  };
  const start = { sessionId, version: 1, producer: "troupe", copilotVersion: "0" };
  add("session.start", { ...start, startTime: "2026-01-01T00:00:00.000Z", context: { cwd: "/work" } });
  add("user.message", { content: "Do all of it", attachments: [] });
  for (let index = 0; index < AGENTS; index++) {
    const taskId = `worker-${index}`;
    const about = { taskId, toolCallId: `c${index}`, kind: "agent", agentName: "task", agentDisplayName: "Task" };
    const more = { description: `part ${index}`, prompt: `Do part ${index}`, mode: "background", depth: 1 };
    add("troupe.task_created", { ...about, ...more, multiTurn: true, tools: null });
    add("troupe.task_state", { taskId, from: "queued", to: "running" });
  }
  for (let turn = 0; events.length < count; turn++) addTurn(add, turn);
  return events.slice(0, count);
}

function addTurn(add, turn) {
  const agentId = `worker-${turn % AGENTS}`;
  const call = `t${turn}`;
  const given = { path: `src/file-${turn}.ts` };
  const tokens = { inputTokens: 1_000 + turn, outputTokens: 50, cacheReadTokens: 900, cacheWriteTokens: 0 };
  const price = { reasoningTokens: 0, costUsd: 0.001, durationMs: 900, attempts: 1 };
  add("assistant.turn_start", { turnId: call, model: "scripted" }, agentId);
  add("troupe.usage", { ...tokens, ...price, turnId: call, provider: "p", model: "m" }, agentId);
  const toolRequests = [{ toolCallId: call, name: "view", arguments: given }];
  add("assistant.message", { messageId: `m${turn}`, content: `I look at file ${turn}.`, toolRequests }, agentId);
  add("tool.execution_start", { toolCallId: call, toolName: "view", arguments: given }, agentId);
  const result = { content: `line one of ${turn}\n${"text ".repeat(40)}` };
  add("tool.execution_complete", { toolCallId: call, success: turn % 17 !== 0, result }, agentId);
  add("assistant.turn_end", { turnId: call }, agentId);
  if (turn % 40 === 0) add("user.message", { content: `Message ${turn}`, attachments: [] });
}

const PACE_MS = 50;
const DRIP_MS = 10;
const DRIPS = 40;

/**
 * A model. "start agents" starts 30 agents, each of which writes a word every 50 ms for so many seconds. "turns N" calls
 * `view` N times, and writes 40 words in 400 ms before each call.
 */
export async function pacedModel({ seconds }) {
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const { messages } = JSON.parse(body);
      const asked = JSON.stringify(messages.filter(({ role }) => role === "user"));
      const done = messages.filter(({ role }) => role === "tool").length;
      const [, turns] = /turns (\d+)/.exec(asked) ?? [];
      if (turns !== undefined) void turn(response, done < Number(turns) ? done : undefined);
      else if (asked.includes("agent work")) void words(response, (seconds * 1000) / PACE_MS);
      else if (done === 0) end(response, taskCalls());
      else end(response);
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    environment: { TROUPE_BASE_URL: `http://127.0.0.1:${server.address().port}/v1`, TROUPE_MODEL: "paced" },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

const send = (response, delta, finish = null) => {
  const choices = [{ index: 0, delta, finish_reason: finish }];
  response.write(`data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", choices })}\n\n`);
};

function end(response, calls) {
  if (calls) send(response, { role: "assistant", tool_calls: calls });
  else send(response, { role: "assistant", content: "done" });
  send(response, {}, calls ? "tool_calls" : "stop");
  response.end("data: [DONE]\n\n");
}

const call = (index, name, given) => ({
  ...{ index, id: `call_${Math.random().toString(36).slice(2)}`, type: "function" },
  function: { name, arguments: JSON.stringify(given) },
});

function taskCalls() {
  return Array.from({ length: AGENTS }, (_, index) => {
    const about = { agent_type: "explore", name: `agent${index}`, description: "look around" };
    return call(index, "task", { ...about, prompt: "agent work", mode: "background" });
  });
}

async function words(response, count) {
  for (let index = 0; index < count && !response.destroyed; index++) {
    send(response, { content: index % 12 === 11 ? "words.\n\n" : "some words of an answer, " });
    await new Promise((resolve) => setTimeout(resolve, PACE_MS));
  }
  end(response);
}

async function turn(response, number) {
  for (let index = 0; index < DRIPS; index++) {
    send(response, { content: "word " });
    await new Promise((resolve) => setTimeout(resolve, DRIP_MS));
  }
  end(response, number === undefined ? undefined : [call(0, "view", { path: `f${number % 100}.txt` })]);
}
