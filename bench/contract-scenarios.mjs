// What the contract costs: the built program as a server, driven by the SDK of this package. `serve` starts one.
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { now, startChild } from "./run-child.mjs";
import { ask, clientAt, clientOf, cpuOf, memoryOf, portOf } from "./serve.mjs";
import { SLOW_CLIENTS, slowClients } from "./slow-clients.mjs";
import { median, quantile, spread } from "./statistics.mjs";

const RATE = 1000;
const ROUNDS = 3;
const IDLE_SESSIONS = 50;
const SESSIONS = 200;
/** The first ones of a process load what they need. */
const COLD_SESSIONS = 5;
const floorEvents = fileURLToPath(new URL("./floor-events.mjs", import.meta.url));

export const contractScenarios = [
  { name: "events", figures: eventFigures },
  { name: "clients", figures: clientFigures },
  { name: "sessions", figures: sessionFigures },
];

async function eventFigures({ serve, stage, full }) {
  const seconds = full ? 10 : 2;
  const rounds = { floor: [], troupe: [] };
  const server = serve({ flags: ["--stdio"], times: true });
  const client = await clientOf(server);
  try {
    await heardOf(client, 0.2); // fills the caches
    for (let round = 0; round < ROUNDS; round++) {
      const troupe = async () => rounds.troupe.push(await heardOf(client, seconds));
      const floor = async () => rounds.floor.push({ emitted: await floorWaits(stage, seconds * RATE) });
      for (const peer of round % 2 === 0 ? [floor, troupe] : [troupe, floor]) await peer();
    }
  } finally {
    await client.stop();
  }
  const row = (name, pick, share, target) => ({
    name,
    unit: "ms",
    ...(rounds.floor[0][pick] && { floor: spread(rounds.floor.map((round) => quantile(round[pick], share))) }),
    troupe: spread(rounds.troupe.map((round) => quantile(round[pick], share))),
    ...(target && { target }),
  });
  const rate = {
    name: "events per second, over stdio",
    unit: "/s",
    troupe: spread(rounds.troupe.map((round) => round.rate)),
    target: { kind: "least", limit: RATE * 0.98 },
  };
  return [
    rate,
    row("event to client callback, p50", "emitted", 0.5, { kind: "most", limit: 0.3 }),
    row("the same, p99", "emitted", 0.99),
    row("sent by the model to client callback, p50", "sent", 0.5),
  ];
}

/** Events at the rate: how long after each was made, and after the model sent it, the callback heard of it. */
async function heardOf(client, seconds, before = async () => undefined) {
  const session = await client.createSession({ streaming: true });
  await before(session);
  const [emitted, sent, moments] = [[], [], []];
  const hear = ({ timestamp, data }) => {
    const heardAt = process.hrtime.bigint();
    emitted.push(since(heardAt, timestamp.slice(-19, -1)));
    for (const [, moment] of data.deltaContent.matchAll(/@(\d+);/g)) sent.push(since(heardAt, moment));
    moments.push(now());
  };
  session.on("assistant.message_delta", hear);
  session.on("assistant.reasoning_delta", hear);
  const count = seconds * RATE;
  await ask(session, `Talk. [[bench:drip:${count}]]`);
  await session.disconnect();
  if (sent.length !== count) throw new Error(`${sent.length} of ${count} parts were heard`);
  return { emitted, sent, rate: ((emitted.length - 1) * 1000) / (moments.at(-1) - moments[0]) };
}

const since = (moment, earlier) => Number(moment - BigInt(earlier)) / 1e6;

/** The same from a program that does nothing else, to a reader that does nothing else. */
async function floorWaits(stage, count) {
  const { child, ended } = startChild({
    argv: [floorEvents, count, RATE].map(String),
    environment: {},
    cwd: stage.workspace,
    scratch: stage.scratch,
  });
  const waits = [];
  let rest = "";
  child.stdout.setEncoding("latin1").on("data", (chunk) => {
    const frames = (rest + chunk).split(/Content-Length: \d+\r\n\r\n/);
    rest = frames.pop() ?? "";
    for (const frame of [...frames, ...(rest.endsWith("}}}}") ? [rest] : [])]) {
      if (frame === "") continue;
      const { timestamp } = JSON.parse(frame).params.event;
      waits.push(since(process.hrtime.bigint(), timestamp.slice(-19, -1)));
    }
    if (rest.endsWith("}}}}")) rest = "";
  });
  await ended;
  if (waits.length !== count) throw new Error(`${waits.length} of ${count} events of the floor were heard`);
  return waits;
}

/** One client alone, and beside others that read a little now and then: bytes for them wait in the server all the time. */
async function clientFigures({ serve, full }) {
  const seconds = full ? 10 : 2;
  const server = serve({ flags: ["--no-connection-token"], times: true });
  const rounds = { alone: [], crowded: [] };
  try {
    const port = await portOf(server);
    const client = await clientAt(port);
    await heardOf(client, 0.2);
    for (let round = 0; round < ROUNDS; round++) {
      const alone = async () => rounds.alone.push((await heardOf(client, seconds)).emitted);
      const crowded = async () => {
        let slow;
        const heard = await heardOf(client, seconds, async (session) => {
          slow = await slowClients(port, session);
        });
        slow.leave();
        rounds.crowded.push(heard.emitted);
      };
      for (const part of round % 2 === 0 ? [alone, crowded] : [crowded, alone]) await part();
    }
    await client.stop();
  } finally {
    await server.stop("SIGTERM");
  }
  const row = (name, share, target) => ({
    name,
    unit: "ms",
    floor: spread(rounds.alone.map((waits) => quantile(waits, share))),
    troupe: spread(rounds.crowded.map((waits) => quantile(waits, share))),
    ...(target && { target }),
  });
  return [
    row(`event to a client beside ${SLOW_CLIENTS} slow ones against alone, p50`, 0.5, { kind: "ratio", limit: 2 }),
    row("the same, p99", 0.99),
  ];
}

async function sessionFigures({ serve, full }) {
  const server = serve({ flags: ["--stdio"] });
  const client = await clientOf(server);
  try {
    const creates = [];
    for (let count = 0; count < IDLE_SESSIONS; count++) creates.push(await openSession(client, server));
    const atFifty = memoryOf(server, "VmRSS");
    const idle = await idleShare(server, full ? 30_000 : 8_000);
    for (let count = IDLE_SESSIONS; count < SESSIONS; count++) creates.push(await openSession(client, server));
    const warm = creates.slice(COLD_SESSIONS);
    const cpu = warm.map(({ cpuMs }) => cpuMs);
    const mebibytes = (bytes) => ({ p50: bytes / 2 ** 20 });
    return [
      {
        name: "`session.create`, warm",
        unit: "ms",
        troupe: spread(warm.map(({ tookMs }) => tookMs)),
        target: { kind: "most", limit: 25 },
      },
      { name: "CPU time of that", unit: "ms", troupe: spread(cpu) },
      {
        name: `growth: the last ${IDLE_SESSIONS} of ${SESSIONS} over the first`,
        unit: "×",
        troupe: { p50: median(cpu.slice(-IDLE_SESSIONS)) / median(cpu.slice(0, IDLE_SESSIONS)) },
      },
      {
        name: `memory with ${SESSIONS} sessions open, a turn in each`,
        unit: "MiB",
        troupe: mebibytes(memoryOf(server, "VmRSS")),
        target: { kind: "most", limit: 400 },
      },
      { name: `the same with ${IDLE_SESSIONS}`, unit: "MiB", troupe: mebibytes(atFifty) },
      { name: "the same, at its most", unit: "MiB", troupe: mebibytes(memoryOf(server, "VmHWM")) },
      {
        name: `CPU while ${IDLE_SESSIONS} open sessions have nothing to do`,
        unit: "%",
        troupe: idle,
        target: { kind: "most", limit: 0.5 },
      },
    ];
  } finally {
    await client.stop();
  }
}

/** Opens a session and has it answer once; what the opening took. */
async function openSession(client, server) {
  const [from, used] = [now(), cpuOf(server)];
  const session = await client.createSession({ streaming: true });
  const took = { tookMs: now() - from, cpuMs: cpuOf(server) - used };
  await ask(session, "Say so. [[bench:turns:0]]");
  return took;
}

/** Share of one core, second by second, after a moment to come to rest. */
async function idleShare(server, forMs) {
  await sleep(1500);
  const shares = [];
  for (let part = 0; part < forMs / 1000; part++) {
    const [from, used] = [now(), cpuOf(server)];
    await sleep(1000);
    shares.push((100 * (cpuOf(server) - used)) / (now() - from));
  }
  return { p50: shares.reduce((sum, one) => sum + one, 0) / shares.length, p90: quantile(shares, 0.9) };
}
