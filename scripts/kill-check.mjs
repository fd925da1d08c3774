/** The checks of a kill round. They read only files, and share no code with the program. */
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { crc32 } from "node:zlib";

const hex = (number) => number.toString(16).padStart(8, "0");

/** Everything that is wrong after a round, in words. `told` are the events that somebody was shown before the end. */
export async function checkRound({ home, workspace, sessionId, told, tokens, folder }) {
  const log = join(home, "session-state", sessionId, "events.jsonl");
  const { events, problems } = readLog(log);
  problems.push(...lost(events, told), ...unpaired(events), ...messages(events), ...effects(events, workspace, tokens));
  problems.push(...litter({ home, workspace, sessionId }), ...(await leftRunning(folder)));
  return problems;
}

/** The events of a log; each line must hold its checksum and follow the one before. */
function readLog(path) {
  const problems = [];
  const events = [];
  let [seq, prev] = [0, "00000000"];
  const lines = readFileSync(path).toString("latin1").split("\n");
  if (lines.pop() !== "") problems.push("the log does not end with a whole line");
  for (const [index, line] of lines.entries()) {
    const bytes = Buffer.from(line, "latin1");
    const say = (what) => problems.push(`line ${index + 1} of the log: ${what}`);
    let event;
    try {
      event = JSON.parse(bytes.toString("utf8"));
    } catch {
      say("is no JSON");
      continue;
    }
    const { troupe } = event;
    const sum = hex(crc32(bytes.subarray(0, bytes.lastIndexOf(',"crc"'))));
    if (troupe?.crc !== sum) say(`checksum ${troupe?.crc}, should be ${sum}`);
    if (troupe?.seq !== seq + 1) say(`seq ${troupe?.seq} after ${seq}`);
    if (troupe?.prev !== prev) say(`prev ${troupe?.prev}, should be ${prev}`);
    if (event.ephemeral) say(`${event.type} is ephemeral and stored`);
    [seq, prev] = [troupe?.seq, troupe?.crc];
    events.push(event);
  }
  return { events, problems };
}

/** Events that were shown and are not in the log, or twice, or in another order. */
function lost(events, told) {
  const places = new Map();
  const problems = [];
  for (const [index, { id }] of events.entries()) {
    if (places.has(id)) problems.push(`event ${id} is twice in the log`);
    places.set(id, index);
  }
  for (const run of told) {
    let last = -1;
    for (const { id, type, ephemeral } of run) {
      if (ephemeral || id === undefined) continue;
      const place = places.get(id);
      if (place === undefined) problems.push(`${type} ${id} was shown and is not in the log`);
      else if (place < last) problems.push(`${type} ${id} was shown in another order`);
      last = place ?? last;
    }
  }
  return problems;
}

const pairs = [
  [
    "tool.execution_start",
    ["tool.execution_complete"],
    ({ agentId, data }) => `${agentId ?? "main"}/${data.toolCallId}`,
  ],
  ["subagent.started", ["subagent.completed", "subagent.failed"], ({ agentId }) => agentId],
  ["permission.requested", ["permission.completed"], ({ data }) => data.requestId],
  ["assistant.turn_start", ["assistant.turn_end"], ({ agentId }) => agentId ?? "main"],
];

function unpaired(events) {
  const problems = [];
  for (const [start, ends, keyOf] of pairs) {
    const open = new Map();
    for (const event of events) {
      const key = event.type === start || ends.includes(event.type) ? keyOf(event) : undefined;
      if (event.type === start) {
        if (open.get(key)) problems.push(`${start} of ${key} twice without an end between (seq ${event.troupe.seq})`);
        open.set(key, event);
      } else if (ends.includes(event.type)) {
        // A call that was never begun may be answered: with a denial, or as cut off.
        if (open.get(key) === null) problems.push(`${event.type} of ${key} twice (seq ${event.troupe.seq})`);
        open.set(key, null);
      }
    }
    for (const [key, event] of open)
      if (event) problems.push(`${start} of ${key} has no end (seq ${event.troupe.seq})`);
  }
  return problems;
}

/** A message between agents is delivered once at most, and only if it was accepted. */
function messages(events) {
  const counts = new Map();
  const problems = [];
  for (const { type, data } of events) {
    if (type === "troupe.task_message") counts.set(data.messageId, 0);
    if (type !== "troupe.task_message_delivered") continue;
    for (const id of data.messageIds) {
      if (!counts.has(id)) problems.push(`the message ${id} was delivered and never accepted`);
      counts.set(id, (counts.get(id) ?? 0) + 1);
    }
  }
  for (const [id, count] of counts) if (count > 1) problems.push(`the message ${id} was delivered ${count} times`);
  return problems;
}

/** No effect twice, none that the log does not know, and none missing whose call succeeded. */
function effects(events, workspace, tokens) {
  const problems = [];
  const ledger = existsSync(join(workspace, "ledger.txt")) ? readFileSync(join(workspace, "ledger.txt"), "utf8") : "";
  const written = ledger.split("\n").filter(Boolean);
  for (const name of readdirSync(workspace)) if (/^T\d+\.txt$/.test(name)) written.push(name.slice(0, -4));
  const starts = events.filter(
    ({ type, data }) => type === "tool.execution_start" && /bash|create/.test(data.toolName),
  );
  const succeeded = new Set(
    events
      .filter(({ type, data }) => type === "tool.execution_complete" && data.success)
      .map(({ data }) => data.toolCallId),
  );
  for (const token of tokens) {
    const count = written.filter((line) => line === token).length;
    const use = new RegExp(`\\b${token}(?: >>|\\.txt)`);
    const start = starts.find(({ data }) => use.test(JSON.stringify(data.arguments)));
    // A command in the background succeeds when it has begun.
    const isOver = start && start.data.arguments.mode !== "async" && succeeded.has(start.data.toolCallId);
    if (count > 1) problems.push(`the effect ${token} happened ${count} times`);
    if (count > 0 && !start) problems.push(`the effect ${token} happened and its call is not in the log`);
    if (count === 0 && isOver) problems.push(`the effect ${token} is missing`);
  }
  for (const line of written) if (!tokens.includes(line)) problems.push(`nobody asked for the effect ${line}`);
  return problems;
}

function litter({ home, workspace, sessionId }) {
  const own = /^(?:ledger|notes|T\d+)\.txt$/;
  const strange = readdirSync(workspace).filter((name) => !own.test(name));
  const left = readdirSync(join(home, "session-state", sessionId), { recursive: true }).filter((name) =>
    /\.tmp$/.test(name),
  );
  return [
    ...strange.map((name) => `${name} was left in the workspace`),
    ...left.map((name) => `${name} was left in the folder of the session`),
  ];
}

/** What still runs and belongs to the round, by its folder, variables or command line; it has ten seconds to end. */
export async function leftRunning(folder) {
  const until = performance.now() + 10_000;
  let found = processesOf(folder);
  while (found.length > 0 && performance.now() < until) {
    await sleep(100);
    found = processesOf(folder);
  }
  return found.map((what) => `left running: ${what}`);
}

function processesOf(folder) {
  if (!existsSync("/proc/self/environ")) return [];
  return readdirSync("/proc").flatMap((pid) => {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return [];
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replace(/[\0\s]+/g, " ");
      const places = [command, readlinkSync(`/proc/${pid}/cwd`), readFileSync(`/proc/${pid}/environ`, "utf8")];
      return command !== "" && places.some((text) => text.includes(folder)) ? [`${pid} ${command.slice(0, 200)}`] : [];
    } catch {
      return [];
    }
  });
}
