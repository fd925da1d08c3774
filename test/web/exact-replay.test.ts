/** Replay of a real run of many agents: every view and every file is as it was, at any event. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { expect, it } from "vitest";
import type { Moves } from "../../src/model/faux/faux-step.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import type { HttpStep } from "../../src/testing/http-reply.ts";
import { calls, forAgent, otherwise, says } from "../../src/testing/index.ts";
import { Replay } from "../../src/view/replay.ts";
import { SessionView } from "../../src/view/session-view.ts";
import { readStream } from "./events.ts";
import { webStage } from "./stage.ts";

const SLOW = process.env.TROUPE_SLOW !== undefined;
const AGENTS = SLOW ? 50 : 4;
const MOMENTS = SLOW ? 200 : 30;
const FORKS = SLOW ? 40 : 2;

/** A gate that one write at a time goes through: the next one waits until the files of the last one were read. */
function turnstile() {
  const open: (() => void)[] = [];
  const gates = Array.from({ length: AGENTS * 3 }, () => new Promise<void>((resolve) => open.push(resolve)));
  let next = 0;
  return {
    behind: (number: number, moves: Moves): Moves => [
      { type: "wait", until: gates[number] as Promise<void> },
      ...moves,
    ],
    letOn: () => open[next++]?.(),
  };
}

const name = (agent: number): string => `worker-${agent}`;
const task = (agent: number) =>
  [
    "task",
    {
      ...{ name: name(agent), agent_type: "general-purpose", description: `part ${agent}`, mode: "background" },
      prompt: `Do part ${agent}.`,
    },
  ] as const;

/** Each agent reads, writes a file of its own, changes one that all share, and runs a command. */
function script(gate: ReturnType<typeof turnstile>): HttpStep[] {
  const agents = Array.from({ length: AGENTS }, (_, agent) => {
    const write = { path: `part-${agent}.txt`, file_text: `${agent}\n`.repeat(agent % 7) };
    const edit = { path: "shared.txt", old_str: `line ${agent}\n`, new_str: `line ${agent} by ${name(agent)}\n` };
    const command = `echo "ünï ${agent}" >> log-${agent % 3}.txt; rm -f part-${agent - 1}.txt`;
    return forAgent(
      ({ messages }) => JSON.stringify(messages.filter(({ role }) => role === "user")).includes(`Do part ${agent}.`),
      calls(["view", { path: "shared.txt" }]),
      gate.behind(agent * 3, calls(["create", write])),
      gate.behind(agent * 3 + 1, calls(["edit", edit])),
      gate.behind(agent * 3 + 2, calls(["bash", { command, description: "log" }])),
      says(`Part **${agent}** is done.`),
    );
  });
  return [
    calls(...Array.from({ length: AGENTS }, (_, agent) => task(agent))),
    says("All are at work."),
    ...agents,
    otherwise(says("Good.")),
  ];
}

function tree(folder: string): Record<string, string> {
  const files: Record<string, string> = {};
  for (const path of readdirSync(folder, { recursive: true, encoding: "utf8" }).map((one) => join(folder, one)))
    if (!relative(folder, path).startsWith(".git") && statSync(path).isFile())
      files[relative(folder, path)] = readFileSync(path, "latin1");
  return files;
}

/** A live client is told these in passing; no log has them: words under way, size of the context, rest, last sign of life. */
const passing: ReadonlySet<string> = new Set(["streaming", "context", "lastAt", "isIdle", "isMainIdle"]);

/** A view as data, without the counter of changes and without what is only told in passing. */
function plain({ view }: SessionView): unknown {
  return JSON.parse(
    JSON.stringify({ ...view, revision: 0 }, (key, value: unknown) =>
      passing.has(key) ? undefined : value instanceof Map ? [...value] : value,
    ),
  );
}

const some = (count: number, below: number): Set<number> =>
  new Set(Array.from({ length: count }, () => 1 + Math.floor(Math.random() * below)));

it(`the page shows ${AGENTS} agents and their files at random events as they were`, { timeout: 300_000 }, async () => {
  const gate = turnstile();
  const shared = Array.from({ length: AGENTS }, (_, agent) => `line ${agent}\n`).join("");
  await using stage = await webStage({
    files: { "work/shared.txt": shared, "work/same.bin": "\u0000same" },
    steps: script(gate),
  });
  const git = (...args: string[]): void =>
    void execFileSync("git", ["-C", stage.cwd, "-c", "user.name=a", "-c", "user.email=a@example.com", ...args]);
  git("init", "-q");
  git("add", ".");
  git("commit", "-qm", "first");

  const client = await stage.other();
  const session = await client.createSession({
    streaming: true,
    onPermissionRequest: () => ({ kind: "approve-once" }),
  });
  const heard: SessionEvent[] = [];
  const files = new Map<string, Record<string, string>>();
  const writes = new Set<string>();
  let done = 0;
  const end = new Promise<void>((resolve) =>
    session.on((event) => {
      heard.push(structuredClone(event));
      if (event.type === "tool.execution_start" && event.data.toolName !== "view" && event.agentId)
        writes.add(event.data.toolCallId);
      if (event.type === "tool.execution_complete" && writes.has(event.data.toolCallId)) {
        files.set(event.id, tree(stage.cwd));
        gate.letOn();
      }
      if (event.type === "troupe.task_state" && event.data.to === "idle" && ++done === AGENTS) resolve();
    }),
  );
  gate.letOn();
  await session.sendAndWait("Do all of it");
  await end;
  await session.disconnect();
  expect(files.size).toBe(AGENTS * 3);

  await using stream = await readStream(stage, `session=${session.sessionId}&list=0`);
  await stream.until(({ all }) => all.some(({ kind }) => kind === "ready"));
  const stored = stream.events();
  // The client was not there yet when the session began.
  const before = stored.findIndex(({ id }) => id === heard.find(({ ephemeral }) => ephemeral !== true)?.id);
  const live = new SessionView();
  for (const event of stored.slice(0, before)) live.apply(event);
  const replay = new Replay(stored);
  const wanted = some(MOMENTS, stored.length);
  let sequence = before;
  for (const event of heard) {
    live.apply(event);
    if (event.ephemeral === true) continue;
    expect(stored[sequence++]?.id).toBe(event.id);
    if (!wanted.has(sequence)) continue;
    expect({ sequence, view: plain(replay.at(sequence)) }).toEqual({ sequence, view: plain(live) });
  }
  for (const eventId of [...files.keys()].sort(() => Math.random() - 0.5).slice(0, FORKS)) {
    const { cwd, notice } = await stage.call<{ cwd: string; notice?: string }>("web.fork", {
      sessionId: session.sessionId,
      toEventId: eventId,
    });
    expect(notice).toBeUndefined();
    expect(tree(cwd)).toEqual(files.get(eventId));
  }
});
