import { createHash } from "node:crypto";
import { expect, it } from "vitest";
import { progress } from "../../src/cli/output/progress.ts";
import type { Terminal } from "../../src/cli/output/screen.ts";
import type { ModelRequest } from "../../src/model/provider.ts";
import { readTasks } from "../../src/runtime/agents/stored-tasks.ts";
import { createRuntime } from "../../src/runtime/runtime.ts";
import type { Client } from "../../src/sdk/client.ts";
import { createClient } from "../../src/sdk/sdk.ts";
import { inProcess } from "../../src/server/in-process.ts";
import { joinableServer } from "../../src/server/joinable.ts";
import { TaskFold } from "../../src/tasks/task-fold.ts";
import { TerminalSession } from "../../src/terminal/session.ts";
import { calls, otherwise, says, type WantedCall } from "../../src/testing/index.ts";
import { modelServer } from "../../src/testing/model-server.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { SessionView } from "../../src/view/session-view.ts";
import type { View } from "../../src/view/view.ts";
import { storedView } from "../view/stored-view.ts";

const AGENTS = 50;

const statesOf = (agents: readonly { readonly id: string; readonly status: string }[]): readonly string[] =>
  agents.map(({ id, status }) => `${id} ${status}`).sort();

/** The view of a watcher at every sequence number that it has seen. */
function notes() {
  const seen = new Map<number, string>();
  /** Agents and their states. */
  const states = new Map<number, readonly string[]>();
  return {
    seen,
    states,
    note(view: View): void {
      if (seen.has(view.sequence)) return;
      states.set(view.sequence, statesOf([...view.agents.values()]));
      const text = JSON.stringify(storedView(view), (_, value: unknown) =>
        value instanceof Map ? [...value.entries()] : value instanceof Set ? [...value] : value,
      );
      seen.set(view.sequence, createHash("sha256").update(text).digest("hex"));
    },
  };
}

async function watchWithTerminal(client: Client, resumeId: string | undefined, cwd: string) {
  const { seen, note } = notes();
  const session = await TerminalSession.open({
    client,
    cwd: resumeId === undefined ? cwd : undefined,
    resumeId,
    onChange: ({ view }) => note(view),
  });
  note(session.view);
  return { session, seen };
}

/** A program that folds the events by itself, from the first on. */
async function watchWithSdk(client: Client, sessionId: string) {
  const { seen, states, note } = notes();
  const fold = new SessionView();
  const lines: string[] = [];
  const promptMode = progress({
    ...{ live: false, colour: false, silent: false, level: "info", waitMs: 0, now: () => Date.now() },
    stderr: { write: (text: string) => lines.push(text) > 0 } as unknown as Terminal,
  });
  const known = new Set<string>();
  const early: Parameters<SessionView["apply"]>[0][] = [];
  let isReading = true;
  const take = (event: Parameters<SessionView["apply"]>[0]): void => {
    if (!event.ephemeral && known.has(event.id)) return;
    known.add(event.id);
    fold.apply(event);
    promptMode.show(event);
    note(fold.view);
  };
  const session = await client.resumeSession(sessionId, {
    onEvent: (event) => (isReading ? void early.push(event) : take(event)),
  });
  for (const event of await session.getEvents()) take(event);
  isReading = false;
  for (const event of early) take(event);
  return { session, seen, states, fold, lines };
}

it("all watchers show the same at every event of a run with 50 agents, and a late one has no gap", async () => {
  await using folder = await tempFolder({ "work/a.txt": "a\n" });
  const start = (index: number): WantedCall => [
    "task",
    {
      description: "look",
      prompt: `agent work ${index}`,
      agent_type: "explore",
      name: `agent${index}`,
      mode: "background",
    },
  ];
  const isAgent = ({ messages }: ModelRequest): boolean =>
    JSON.stringify(messages.find(({ role }) => role === "user") ?? "").includes("agent work");
  const reply = otherwise((request) => {
    if (!isAgent(request)) return says("They are at work.");
    return request.messages.some(({ role }) => role === "tool")
      ? says("Found it.")
      : calls(["view", { path: "a.txt" }]);
  });
  await using model = await modelServer({
    steps: [calls(...Array.from({ length: AGENTS }, (_, index) => start(index))), reply],
  });
  const home = folder.at("home");
  const environment = {
    PATH: process.env.PATH ?? "",
    TROUPE_HOME: home,
    TROUPE_BASE_URL: model.baseUrl,
    TROUPE_MODEL: "scripted",
    TROUPE_NO_DISCOVERY: "1",
    TROUPE_SANDBOX: "off",
  };
  const place = { environment, cwd: folder.at("work") };
  await using own = await createClient({ connection: inProcess({ ...place, isJoinable: true }) });
  const first = await watchWithTerminal(own, undefined, place.cwd);
  const join = async (): Promise<Client> => {
    await expect.poll(() => joinableServer(home, process.pid)).toBeDefined();
    const server = await joinableServer(home, process.pid);
    return createClient({ connection: { kind: "tcp", host: "127.0.0.1", port: 0, ...server } });
  };
  await using one = await join();
  const program = await watchWithSdk(one, first.session.id);
  await first.session.send("start them", "steer");
  await expect.poll(() => first.session.view.agents.size).toBeGreaterThan(5);
  await using two = await join();
  const late = await watchWithTerminal(two, first.session.id, place.cwd);
  await using three = await join();
  const second = await watchWithSdk(three, first.session.id);
  const isOver = ({ agents, main }: View): boolean =>
    agents.size === AGENTS &&
    main.status !== "running" &&
    [...agents.values()].every(({ status }) => status === "idle");
  // Notices of ended agents wake the main agent again: the run is over when nothing has changed for a while.
  const sequences = (): number[] =>
    [first.session.view, late.session.view, program.fold.view, second.fold.view].map(({ sequence }) => sequence);
  let before: number[] = [];
  const isQuiet = (): boolean => {
    const now = sequences();
    const same = new Set([...before, ...now]).size === 1;
    before = now;
    return same && isOver(first.session.view) && isOver(late.session.view);
  };
  await expect.poll(isQuiet, { timeout: 90_000, interval: 1_000 }).toBe(true);
  const end = first.session.view.sequence;
  const reference = program.seen;
  for (const { seen } of [first, late, second]) {
    const last = Math.max(...seen.keys());
    expect(last).toBe(end);
    const different = [...seen].filter(([at, hash]) => reference.has(at) && reference.get(at) !== hash);
    expect(different.map(([at]) => at)).toEqual([]);
    // From its first number on, each one is there.
    const from = Math.min(...seen.keys());
    expect(seen.size).toBe(end - from + 1);
  }
  // `troupe tasks` folds the log by itself: at every event, and at the end through its own reader.
  const stored = (await program.session.getEvents()).filter(({ ephemeral }) => !ephemeral);
  const tasks = new TaskFold([]);
  const differing: number[] = [];
  stored.forEach((event, index) => {
    tasks.apply(event);
    const wanted = program.states.get(index + 1);
    if (wanted && String(statesOf([...tasks.all()])) !== String(wanted)) differing.push(index + 1);
  });
  expect(differing).toEqual([]);
  const kept = await readTasks(createRuntime({ environment }).store, first.session.id);
  const agents = statesOf([...first.session.view.agents.values()]);
  expect(statesOf(kept.tasks)).toEqual(agents);
  expect(statesOf([...program.session.agents.all])).toEqual(agents);
  // The progress of prompt mode names every agent.
  const printed = program.lines.join("");
  expect([...first.session.view.agents.keys()].filter((id) => !printed.includes(id))).toEqual([]);
});
