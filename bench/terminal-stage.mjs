// A terminal program on a pseudo terminal, and a model that streams at a steady pace, for the terminal scenario.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { now } from "./run-child.mjs";

/** Undefined where the optional package is not installed. */
export function loadPty() {
  try {
    return createRequire(import.meta.url)("@lydell/node-pty");
  } catch {
    return undefined;
  }
}

export function startProgram(pty, { file, args, cwd, env, columns = 100, rows = 30 }) {
  const began = now();
  const child = pty.spawn(file, args, { cols: columns, rows, cwd, env });
  let text = "";
  let writes = 0;
  const waiting = new Set();
  child.onData((data) => {
    writes++;
    text = (text + data).slice(-200_000);
    for (const check of [...waiting]) check();
  });
  const ended = new Promise((resolve) => child.onExit(resolve));
  return {
    pid: child.pid,
    ended,
    get writes() {
      return writes;
    },
    write: (data) => child.write(data),
    kill: (signal = "SIGKILL") => {
      try {
        child.kill(signal);
      } catch {
        // It has ended by itself.
      }
    },
    /** Forgets what was written so far. */
    clear() {
      text = "";
    },
    /** Milliseconds since the start, or since `from`, until the output holds this. */
    until(wanted, { from = began, timeoutMs = 30_000 } = {}) {
      return new Promise((resolve, reject) => {
        const timer = setTimeout(() => {
          waiting.delete(check);
          reject(new Error(`the terminal never showed ${wanted}: ${JSON.stringify(text.slice(-300))}`));
        }, timeoutMs);
        const check = () => {
          const isThere = typeof wanted === "string" ? text.includes(wanted) : wanted.test(text);
          if (!isThere) return;
          waiting.delete(check);
          clearTimeout(timer);
          resolve(now() - from);
        };
        waiting.add(check);
        check();
      });
    },
  };
}

export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

const CLEAR_LINE = "\u0015";

/** Milliseconds from pressing a key to its paint, one after the other. */
export async function keyTimes(program, count) {
  const times = [];
  for (let index = 0; index < count; index++) {
    const key = String.fromCharCode(97 + (index % 26));
    // A short line, so that it never wraps.
    if (key === "a") program.write(CLEAR_LINE);
    if (key === "a") await pause(100);
    program.clear();
    const from = now();
    program.write(key);
    times.push(await program.until(new RegExp(`› [a-z]*${key}(?![a-z])`), { from }));
    await pause(15);
  }
  return times;
}

const AGENTS = 30;
const STREAM_BYTES = 2 * 1024 * 1024;
const PIECE = 1024;
const PACE_MS = 5;

/** The first request starts agents, which never answer; the second is answered with a long stream. */
export async function streamingModel() {
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => {
      body += chunk;
    });
    request.on("end", () => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      const { messages } = JSON.parse(body);
      const asked = JSON.stringify(messages.find(({ role }) => role === "user") ?? "");
      if (asked.includes("agent work")) return;
      if (messages.some(({ role }) => role === "tool")) void stream(response);
      else startAgents(response);
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

const send = (response, delta, finish = null) =>
  response.write(
    `data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`,
  );

function startAgents(response) {
  const calls = Array.from({ length: AGENTS }, (_, index) => ({
    index,
    id: `call_${index}`,
    type: "function",
    function: {
      name: "task",
      arguments: JSON.stringify({
        agent_type: "explore",
        name: `agent${index}`,
        description: "look around",
        prompt: "agent work",
        mode: "background",
      }),
    },
  }));
  send(response, { role: "assistant", tool_calls: calls });
  send(response, {}, "tool_calls");
  response.end("data: [DONE]\n\n");
}

async function stream(response) {
  const line = `${"some words of an answer that goes on ".repeat(3)}\n\n`;
  const piece = line.repeat(Math.ceil(PIECE / line.length)).slice(0, PIECE);
  for (let sent = 0; sent < STREAM_BYTES && !response.destroyed; sent += PIECE) {
    send(response, { content: piece });
    await pause(PACE_MS);
  }
  send(response, {}, "stop");
  response.end("data: [DONE]\n\n");
}
