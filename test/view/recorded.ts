/** Logs of real sessions, ephemeral events included, in the order in which a listener hears them. */

import { setTimeout as pause } from "node:timers/promises";
import { deferred } from "../../src/lib/deferred.ts";
import { fauxModel } from "../../src/model/faux/faux-model.ts";
import { forAgent, otherwise } from "../../src/model/faux/faux-plan.ts";
import {
  breaksOff,
  calls,
  rateLimited,
  says,
  stalls,
  thinks,
  together,
  type WantedCall,
} from "../../src/model/faux/faux-step.ts";
import type { ModelRequest } from "../../src/model/provider.ts";
import { withRetry } from "../../src/model/retry.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import type { Session } from "../../src/session/session.ts";
import { fauxStamp } from "../../src/testing/faux-stamp.ts";
import { of, onStage, type StageOptions, starts } from "../features/stage.ts";
import { big, small, summaries, summary } from "../scenarios/compaction-stage.ts";
import { agentOf, agentPool } from "../support/agent-pool.ts";
import { refuse, stage, tool } from "../support/stage.ts";

export interface Recorded {
  readonly name: string;
  readonly events: readonly SessionEvent[];
}

const ANSWER = [
  "# What I found\n",
  "The parser **fails** on empty",
  " input.\n\n- one\n- two\n  more of two\n\n```ts\nconst a",
  " = 1;\n\nconst b = 2;\n```\nDone.\n",
];

const heardBy = (session: Session): SessionEvent[] => {
  const heard: SessionEvent[] = [];
  session.record.follow((event) => heard.push(event));
  return heard;
};

async function played(
  name: string,
  steps: Parameters<typeof onStage>[0],
  options: StageOptions,
  work: (session: Session) => Promise<void>,
): Promise<Recorded> {
  let events: readonly SessionEvent[] = [];
  await onStage(steps, { model: { streaming: true }, ...options }, async ({ session }) => {
    const heard = heardBy(session);
    await work(session);
    await session.close();
    events = heard;
  });
  return { name, events };
}

/** Files, commands, todos, a question, modes, a plan, a queue. */
const tools = (): Promise<Recorded> =>
  played(
    "tools",
    [
      thinks("I should look first.", together(says("Let me look."), calls(["view", { path: "a.txt" }]))),
      calls(["update_todo", { todos: "- [x] look\n- [~] change\n- [ ] test" }]),
      calls(["view", { path: "missing.txt" }]),
      calls(["edit", { path: "a.txt", old_str: "one", new_str: "two" }]),
      calls(["bash", { command: "for i in $(seq 200); do echo line $i; done", description: "count" }]),
      calls(["ask_user", { question: "Which one?", choices: ["red", "blue"] }]),
      says(ANSWER),
      says("Second answer."),
      calls(["exit_plan_mode", { summary: "make b.txt" }]),
      says("Planned."),
    ],
    { files: { "a.txt": "one\n" } },
    async (session) => {
      session.requests.attach({ kinds: ["user_input"], handle: async () => ({ answer: "red", wasFreeform: false }) });
      session.requests.attach({
        kinds: ["exit_plan_mode"],
        handle: async () => ({ approved: true, selectedAction: "interactive" }),
      });
      const prompts = ["Look at a.txt\nand change it", "and then?"];
      await Promise.all(prompts.map((prompt) => session.sendAndWait({ prompt })));
      await session.mainAgent.modes.set("plan");
      await session.sendAndWait({ prompt: "plan it" });
      await session.mainAgent.modes.set("interactive");
    },
  );

/** A chain of agents, an approval two levels down, one that is denied, one in the background. */
const agents = (): Promise<Recorded> =>
  played(
    "agents",
    [
      together(starts("scout", "general-purpose"), starts("back", "general-purpose", { mode: "background" })),
      says("All done."),
      says("Heard of it."),
      of("scout", starts("deep", "general-purpose"), says("Scout is done.")),
      of(
        "deep",
        calls(["bash", { command: "env echo asked", description: "say" }]),
        calls(["bash", { command: "env echo denied", description: "say" }]),
        says("Deep is done."),
      ),
      of("back", calls(["view", { path: "a.txt" }]), says("Back is done.")),
    ],
    { files: { "a.txt": "one\n" }, permissions: {} },
    async (session) => {
      session.requests.attach({
        kinds: ["permission"],
        handle: async (request) =>
          JSON.stringify(request).includes("denied")
            ? { kind: "denied-interactively-by-user", feedback: "not that" }
            : { kind: "approved" },
      });
      await session.sendAndWait({ prompt: "go" });
      await session.sendAndWait({ prompt: "anything else?" });
    },
  );

const isAgent = (id: string) => (request: ModelRequest) => agentOf(request) === id;

async function workers(): Promise<Recorded> {
  const run = calls([
    "subagents_run",
    { agents: ["a", "b"].map((id) => ({ id, role: "scout", task: `look at ${id}` })) },
  ]);
  const submit = (text: string) => calls(["submit_result", { status: "completed", summary: text }]);
  const made = await agentPool(
    [run, says("all done"), forAgent(isAgent("a"), submit("found a")), forAgent(isAgent("b"), submit("found b"))],
    { streaming: true },
  );
  const events = heardBy(made.session);
  await made.session.sendAndWait({ prompt: "ask scouts" });
  await made.session.close();
  return { name: "workers", events };
}

/** Fifty agents at the same time, some of which have to wait for a free slot. */
async function crowd(): Promise<Recorded> {
  const names = Array.from({ length: 50 }, (_, index) => `agent${index}`);
  const start = (name: string): WantedCall => [
    "task",
    { description: `do ${name}`, prompt: "look around", agent_type: "explorer", name, mode: "background" },
  ];
  const isFirst = ({ messages }: ModelRequest): boolean => messages.length === 1;
  const made = await agentPool(
    [
      calls(...names.map(start)),
      otherwise((request) => {
        if (agentOf(request) === undefined) return says("All are at work.");
        return isFirst(request) ? calls(["echo", { text: "here" }]) : says(`# Done\n\nby ${agentOf(request)}`);
      }),
    ],
    { streaming: true },
  );
  const events = heardBy(made.session);
  await made.session.sendAndWait({ prompt: "start them all" });
  const areBusy = (): boolean => made.session.agents.tasks?.list({ includeEnded: false }).some(isAtWork) ?? false;
  while (areBusy()) await pause(10);
  await made.session.close();
  return { name: "crowd", events };
}

const isAtWork = ({ status }: { readonly status: string }): boolean => status === "running" || status === "queued";

async function compaction(): Promise<Recorded> {
  const read = calls(["big", { characters: 4_500 }]);
  const made = await small([summaries(summary()), read, read, read, read, says("done")], {
    streaming: true,
    tools: [big],
  });
  const events = heardBy(made.session);
  await made.session.sendAndWait({ prompt: "Read the files" });
  await made.session.close();
  return { name: "compaction", events };
}

/** A rate limit, a reply that breaks off, a failing tool, an abort. */
async function trouble(): Promise<Recorded> {
  const model = fauxModel(
    rateLimited(2_000),
    breaksOff("Half of an\n\nans"),
    calls(["broken"]),
    says(ANSWER),
    together(says("I will be"), stalls()),
    says("Back again."),
  );
  const aborted = deferred<void>();
  const made = await stage([], {
    streaming: true,
    provider: withRetry(model, { stamp: fauxStamp(), random: () => 0.5 }),
    tools: [tool("broken", async () => refuse("no such thing"))],
  });
  const events = heardBy(made.session);
  await made.session.sendAndWait({ prompt: "try" });
  made.session.subscribe(({ type }) => type === "assistant.message_delta" && aborted.resolve());
  const stopped = made.session.sendAndWait({ prompt: "write long" });
  await aborted.promise;
  await made.session.abort();
  await stopped;
  await made.session.sendAndWait({ prompt: "again" });
  await made.session.close();
  return { name: "trouble", events };
}

const rewind = (): Promise<Recorded> =>
  played("rewind", [says("one"), says("two"), says("another two"), says("three")], {}, async (session) => {
    for (const prompt of ["first", "second"]) await session.sendAndWait({ prompt });
    const [point] = (await session.record.rewinds.points()).filter(({ userMessage }) => userMessage === "second");
    await session.record.rewinds.rewind(point?.eventId ?? "");
    for (const prompt of ["instead", "and now"]) await session.sendAndWait({ prompt });
  });

/** All of them, made once for a file of tests. */
export const recordings = async (): Promise<readonly Recorded[]> => {
  const logs: Recorded[] = [];
  for (const make of [tools, agents, workers, crowd, compaction, trouble, rewind]) logs.push(await make());
  return logs;
};

export const storedOf = (events: readonly SessionEvent[]): SessionEvent[] =>
  events.filter(({ ephemeral }) => ephemeral !== true);
