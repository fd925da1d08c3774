import { expect, test } from "vitest";
import { ModelError } from "../../src/model/model-error.ts";
import type { ModelEvent } from "../../src/model/provider.ts";
import { type Recording, recordings } from "./recordings.ts";
import { collect, placeSaying } from "./support.ts";

const mutationCount = process.env.TROUPE_SLOW ? 20_000 : 1_500;
const seed = Number(process.env.TROUPE_SEED ?? Date.now() % 2 ** 31);

test(`${mutationCount} damaged streams each end in a result or a typed error (TROUPE_SEED=${seed})`, async () => {
  const random = randomFrom(seed);
  const kinds: Record<string, number> = {};
  for (let count = 0; count < mutationCount; count++) {
    const recording = pick(recordings, random);
    const pieces = damaged(recording, random);
    const events = await ended(recording, pieces);
    const problem = complaint(events);
    const said = Buffer.concat(pieces).toString();
    expect(problem, `seed ${seed}, mutation ${count} of ${recording.wire}:\n${said}`).toBeUndefined();
    const end = events.at(-1);
    const outcome = end?.type === "end" ? (end.error?.kind ?? end.stop) : "none";
    kinds[outcome] = (kinds[outcome] ?? 0) + 1;
  }
  console.log(`seed ${seed}: ${JSON.stringify(kinds)}`);
  expect(kinds.tools ?? 0).toBeGreaterThan(mutationCount / 20);
  expect(kinds.protocol ?? 0).toBeGreaterThan(mutationCount / 20);
});

async function ended(recording: Recording, pieces: Uint8Array[]): Promise<ModelEvent[]> {
  let timer: NodeJS.Timeout | undefined;
  const hang = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`seed ${seed}: no end within 10 s`)), 10_000);
  });
  const bounds = { connectMs: 60_000, idleMs: 60_000, totalMs: 60_000 };
  try {
    return await Promise.race([collect(recording.provider(placeSaying(pieces, { bounds }))), hang]);
  } finally {
    clearTimeout(timer);
  }
}

function complaint(events: readonly ModelEvent[]): string | undefined {
  const ends = events.filter((event) => event.type === "end");
  const [end] = ends;
  if (!end || ends.length !== 1 || events.at(-1) !== end) return `${ends.length} ends`;
  if (end.stop === "aborted") return "aborted by itself";
  if (end.stop !== "error") return end.error ? "an error that is none" : undefined;
  if (!(end.error instanceof ModelError)) return "no typed error";
  if (end.error.kind === "internal") return `internal: ${end.error.stack}`;
  return events.some((event) => event.type === "call") ? "a call from a broken reply" : undefined;
}

type Random = () => number;

/** Small and repeatable (mulberry32). */
function randomFrom(start: number): Random {
  let state = start >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function pick<T>(list: readonly T[], random: Random): T {
  const item = list[Math.floor(random() * list.length)];
  if (item === undefined) throw new Error("empty list");
  return item;
}

/** The recording after one to three kinds of harm, cut into pieces at random. */
function damaged(recording: Recording, random: Random): Uint8Array[] {
  let events = recording.stream.split("\n\n").slice(0, -1);
  const harms = 1 + Math.floor(random() * 3);
  for (let harm = 0; harm < harms; harm++) events = pick(eventHarms, random)(events, random);
  const text = pick(lineEnds, random)(`${events.join("\n\n")}\n\n`);
  let bytes: Uint8Array = new TextEncoder().encode(text);
  for (const harm of byteHarms) if (random() < 0.15) bytes = harm(bytes, random);
  return piecesOf(bytes, random);
}

type EventHarm = (events: readonly string[], random: Random) => string[];
const place = (events: readonly string[], random: Random): number => Math.floor(random() * events.length);

const eventHarms: readonly EventHarm[] = [
  (events) => [...events],
  (events, random) => events.toSpliced(place(events, random), 1),
  (events, random) => {
    const at = place(events, random);
    return events.toSpliced(at, 0, events[at] ?? "");
  },
  (events, random) => {
    const [a, b] = [place(events, random), place(events, random)];
    return events.with(a, events[b] ?? "").with(b, events[a] ?? "");
  },
  (events, random) => events.toSpliced(place(events, random), 0, pick(strangers, random)),
  (events, random) => {
    const at = place(events, random);
    return events.with(
      at,
      (events[at] ?? "").replace(/"(?:output_)?index":\d/g, `"index":${Math.floor(random() * 4)}`),
    );
  },
  (events, random) => {
    const at = place(events, random);
    const event = events[at] ?? "";
    return events.with(at, event.slice(0, Math.floor(random() * event.length)));
  },
  (events, random) => {
    const at = place(events, random);
    return events.with(
      at,
      (events[at] ?? "").replace(/"(\w+)":("[^"]*"|\d+|null)/, (all, key) =>
        random() < 0.5 ? `"${key}":${pick(oddValues, random)}` : all,
      ),
    );
  },
  (events) => events.toReversed(),
];

const strangers = [
  'event: surprise\ndata: {"type":"surprise","index":0}',
  "event: ping\ndata: {}",
  "data:",
  "data: null",
  "data: 7",
  "data: [[]]",
  'data: {"choices":[null,{"delta":null},{"delta":{"tool_calls":[null]}}]}',
  'data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":5}}]}}]}',
  'data: {"type":"content_block_delta","index":99,"delta":{"type":"text_delta","text":"?"}}',
  'data: {"type":"response.output_item.done","output_index":0,"item":{"type":"function_call"}}',
  'data: {"error":{"message":"boom"}}',
  'data: {"type":"error","error":null}',
  'data: {"__proto__":{"choices":1},"type":"__proto__"}',
  ": only a comment",
  "id: 1\nretry: soon\nnonsense",
  "data: [DONE]",
];
const oddValues = ["null", "{}", "[]", '""', "-1", "1e400", "true", '"\\ud800"'];

const lineEnds: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => text,
  (text) => text.replaceAll("\n", "\r\n"),
  (text) => text.replaceAll("\n", "\r"),
  (text) => `\ufeff${text}`,
];

const byteHarms: readonly ((bytes: Uint8Array, random: Random) => Uint8Array)[] = [
  (bytes, random) => bytes.slice(0, Math.floor(random() * bytes.length)),
  (bytes, random) => bytes.slice(Math.floor(random() * bytes.length)),
  (bytes, random) => {
    for (let flips = 0; flips < 4; flips++) {
      const at = Math.floor(random() * bytes.length);
      bytes[at] = (bytes[at] ?? 0) ^ (1 << Math.floor(random() * 8));
    }
    return bytes;
  },
];

function piecesOf(bytes: Uint8Array, random: Random): Uint8Array[] {
  const size = pick([bytes.length || 1, 1_000, 100, 13], random);
  const pieces: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size));
  return pieces;
}
