// From the event of an approval that an agent at depth 3 asks for to the frame of each client that shows it.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { quantile } from "./statistics.mjs";
import { pause } from "./terminal-stage.mjs";

const library = new URL("../dist/lib/sdk.js", import.meta.url).href;
const FOCUS = "\u0001";
const OPEN = /interactive · [^\n]*Esc (?:Esc rewinds|interrupts)/;
const LIMIT = { kind: "most", limit: 250 };

/** `open` starts the program on a pseudo terminal with these arguments. */
export async function deepApproval({ open, home, rounds }) {
  const model = await deepModel();
  const more = { TROUPE_BASE_URL: model.baseUrl, TROUPE_MODEL: "deep", TROUPE_API_KEY: "x" };
  const first = open({ args: ["--name", "deep"], more });
  await first.until(OPEN);
  const second = open({ args: ["--attach", "deep"], more });
  await second.until("open in another terminal");
  await second.until(OPEN);
  const program = await joinWithSdk(home, first.pid);
  const times = { terminal: [], attached: [], sdk: [] };
  for (let round = 0; round < rounds; round++) {
    const asked = program.nextRequest();
    const card = `Permission · deep${round}`;
    const seen = [first, second].map((terminal) => terminal.until(card, { timeoutMs: 60_000 }).then(() => Date.now()));
    first.write(`round ${round}\r`);
    const [{ at, heardAt }, ownAt, attachedAt] = await Promise.all([asked, ...seen]);
    times.sdk.push(heardAt - at);
    times.terminal.push(ownAt - at);
    times.attached.push(attachedAt - at);
    first.write(FOCUS);
    await pause(100);
    first.clear();
    first.write("y");
    await first.until(OPEN, { timeoutMs: 60_000 });
    await pause(300);
  }
  await program.stop();
  for (const terminal of [second, first]) terminal.kill();
  await Promise.all([first.ended, second.ended]);
  model.close();
  return Object.entries({
    "the terminal": times.terminal,
    "an attached terminal": times.attached,
    "an SDK client": times.sdk,
  }).map(([who, values]) => ({
    name: `approval at depth 3, event to ${who}, p90 / most`,
    unit: "ms",
    troupe: { p50: quantile(values, 0.9), p90: quantile(values, 1) },
    target: LIMIT,
  }));
}

async function joinWithSdk(home, pid) {
  const { createClient } = await import(library);
  const file = join(home, "server", `${pid}.json`);
  for (let look = 0; look < 100 && !existsSync(file); look++) await pause(100);
  const { port, token } = JSON.parse(readFileSync(file, "utf8"));
  const client = await createClient({ connection: { kind: "tcp", host: "127.0.0.1", port, token } });
  const [sessionId = ""] = readdirSync(join(home, "session-state")).filter((name) => /^[0-9a-f-]{36}$/.test(name));
  let hear = () => undefined;
  await client.resumeSession(sessionId, {
    onEvent: (event) => {
      if (event.type === "permission.requested") hear({ at: Date.parse(event.timestamp), heardAt: Date.now() });
    },
  });
  return {
    nextRequest: () =>
      new Promise((resolve) => {
        hear = resolve;
      }),
    stop: () => client.stop(),
  };
}

/** Each agent starts the next one and waits for it; the third asks to write a file. A result ends the turn. */
export async function deepModel() {
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const { messages } = JSON.parse(body);
      const last = messages.at(-1);
      const asked = JSON.stringify(messages.filter(({ role }) => role === "user").at(-1) ?? "");
      const [, round = "0", level = "0"] = /round (\d+)(?: level (\d))?/.exec(asked) ?? [];
      const call = last.role === "tool" ? undefined : nextCall(Number(round), Number(level));
      const delta = call
        ? {
            role: "assistant",
            tool_calls: [{ index: 0, id: `call_${round}_${level}`, type: "function", function: call }],
          }
        : { role: "assistant", content: "done" };
      const choice = (part, finish = null) => ({ index: 0, delta: part, finish_reason: finish });
      for (const one of [choice(delta), choice({}, call ? "tool_calls" : "stop")]) {
        response.write(`data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", choices: [one] })}\n\n`);
      }
      response.end("data: [DONE]\n\n");
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    baseUrl: `http://127.0.0.1:${server.address().port}/v1`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function nextCall(round, level) {
  if (level === 3) {
    const given = { path: `deep-${round}.txt`, file_text: "deep\n" };
    return { name: "create", arguments: JSON.stringify(given) };
  }
  const task = {
    agent_type: "general-purpose",
    name: level === 2 ? `deep${round}` : `level${level + 1}round${round}`,
    description: "go deeper",
    prompt: `round ${round} level ${level + 1}`,
    mode: "sync",
  };
  return { name: "task", arguments: JSON.stringify(task) };
}
