import { describe, expect, it } from "vitest";
import type { Board } from "../../src/context/board/board.ts";
import { boardKey } from "../../src/context/board/board-key.ts";
import { openBoard } from "../../src/context/board/open.ts";
import { forAgent, type PlainStep } from "../../src/model/faux/faux-plan.ts";
import { calls, fails, says } from "../../src/model/faux/faux-step.ts";
import type { ModelRequest } from "../../src/model/provider.ts";
import { consolidate } from "../../src/runtime/knowledge/consolidate.ts";
import { createRuntime } from "../../src/runtime/runtime.ts";
import { submit } from "../../src/runtime/submit.ts";
import type { HttpPlay, HttpStep } from "../../src/testing/http-reply.ts";
import { AGENT, fill, optionsFor, PERSON, text } from "../board/stage.ts";
import { dataOf } from "../support/stage.ts";
import { onStage, resultsOf, type Stage, type StageOptions, toolNames } from "./stage.ts";

/** Without the sidekick that looks at the board by itself. */
const environment = { COPILOT_SUBCONSCIOUS: "on", SIDEKICK_AGENTS: "off" };
const call = (given: Readonly<Record<string, string>>) => calls(["context_board", given]);
const add = (name: string, content = `All about ${name}.`) =>
  call({ command: "add", name, description: `About ${name}`, context: content });
const prune = (name: string) => call({ command: "prune", name });

const isRem = (request: ModelRequest): boolean => toolNames(request).join() === "context_board";
const rem = (...steps: readonly PlainStep<HttpPlay>[]): HttpStep => forAgent<HttpPlay>(isRem, ...steps);
const remRequest = (stage: Stage): ModelRequest =>
  stage.requests().find(isRem) ?? expect.fail("rem-agent never asked the model");

/** The values that the prompt of the command requires. */
const FIXED = {
  agent_type: "rem-agent",
  mode: "background",
  name: "rem-consolidate",
  description: "Consolidate session learnings",
  prompt: "Consolidate session learnings",
};
const starting = calls(["task", FIXED]);

async function withBoard<T>({ home, folder }: Pick<Stage, "home" | "folder">, look: (board: Board) => Promise<T>) {
  const board = openBoard(optionsFor(home, { key: boardKey(folder, { isTrusted: false }) }));
  try {
    return await look(board);
  } finally {
    await board.close();
  }
}

/** A session that talks once, and then consolidates by command. */
async function subconscious(
  steps: readonly PlainStep<HttpPlay>[],
  look: (stage: Stage, board: Board) => Promise<void>,
  more: StageOptions & { before?: (board: Board) => Promise<unknown> } = {},
): Promise<void> {
  const { before, ...options } = more;
  const script = [says("Tests run with make check."), starting, says("It has started."), says("ok"), rem(...steps)];
  await onStage(script, { environment, agents: { waitMs: 10_000 }, ...options }, async (stage) => {
    await withBoard(stage, async (board) => {
      await before?.(board);
      await stage.session.sendAndWait({ prompt: "How are tests run?" });
      await submit(stage.session, "/subconscious run");
      await look(stage, board);
    });
  });
}

describe("rem-agent", () => {
  it("MEM-35 MEM-36 ORC-19 rem-agent has one tool and a prompt of its own, with board, turns and latest checkpoint", async () => {
    await subconscious(
      [says("done")],
      async (stage) => {
        const request = remRequest(stage);
        const system = request.system ?? "";
        expect(toolNames(request)).toEqual(["context_board"]);
        for (const part of ["environment_context", "custom_instructions", "HOUSE RULE", stage.folder]) {
          expect(system).not.toContain(part);
        }
        expect(stage.first("main").system).toContain("environment_context");
        expect(system).toMatch(/record of what happened[\s\S]*exactly as they are/);
        expect(system).toContain("| user | mine | About mine | 0 | 0 |");
        expect(system).toContain("All about mine.");
        expect(system).toMatch(/<said_by_person turn="1">\nHow are tests run\?/);
        expect(system).toMatch(/<said_by_agent turn="1">\nTests run with make check\./);
      },
      { before: (board) => board.add("user", text("mine"), PERSON), files: { "AGENTS.md": "HOUSE RULE" } },
    );
  });

  it("ORC-19 rem-agent is neither offered nor started while its flag is off", async () => {
    const options = { environment: { COPILOT_SUBCONSCIOUS: "off" } };
    await onStage([starting, says("ok")], options, async ({ session, first }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(JSON.stringify(first("main").tools)).not.toContain("rem-agent");
      expect(session.agents.definitions().map(({ name }) => name)).not.toContain("rem-agent");
      expect(resultsOf(session.events, "task")[0]).toContain("rem-agent");
      expect(session.agents.tasks?.list()).toEqual([]);
    });
  });

  it("MEM-36 rem-agent is shown the latest checkpoint of a session that was compacted", async () => {
    const script = [
      says("One."),
      says("Two."),
      says("<overview>The garden was watered.</overview>"),
      starting,
      says("ok"),
      says("ok"),
      rem(says("done")),
    ];
    await onStage(script, { environment, agents: { waitMs: 10_000 } }, async (stage) => {
      for (const prompt of ["one", "two"]) await stage.session.sendAndWait({ prompt });
      await submit(stage.session, "/compact");
      await submit(stage.session, "/subconscious run");
      expect(remRequest(stage).system).toMatch(
        /<session_checkpoint>[\s\S]*The garden was watered\.[\s\S]*<\/session_checkpoint>/,
      );
    });
  });

  it.each([
    [22, false],
    [23, true],
    [25, true],
  ])("MEM-34 rem-agent is warned about a full board with %i rows: %s", async (count, isWarned) => {
    await subconscious(
      [says("done")],
      async (stage, board) => {
        const system = remRequest(stage).system ?? "";
        expect([/From 23 items on/.test(system), /until 18 or fewer/.test(system)]).toEqual([isWarned, isWarned]);
        expect(await board.list()).toHaveLength(isWarned ? 18 : count);
      },
      { before: (board) => fill(board, count) },
    );
  });

  it("MEM-38 ORC-63 /subconscious run starts rem-agent in the background, which then changes the board", async () => {
    await subconscious(
      [add("test-command", "make check"), prune("item-1"), says("whatever it says")],
      async ({ session, requests }, board) => {
        const asked = requests().flatMap(({ messages }) => messages.map(({ content }) => content));
        const prompt = asked.find((content) => content.includes("rem-agent")) ?? "";
        expect(prompt).toMatch(/Call the `task` tool exactly once/);
        for (const [name, value] of Object.entries(FIXED)) expect(prompt).toContain(`\`${name}\`: "${value}"`);
        const [started] = dataOf(session.events, "tool.execution_start").filter(({ toolName }) => toolName === "task");
        expect(started?.arguments).toEqual(FIXED);
        expect(await board.rows()).toMatchObject([{ name: "item-2" }, { name: "test-command", content: "make check" }]);
        const [report] = dataOf(session.events, "troupe.consolidation");
        expect(report).toMatchObject({
          outcome: "applied",
          sessionId: session.id,
          added: ["test-command"],
          pruned: ["item-1"],
        });
        // What the agent says is not the result: what became of the board is.
        const told = await session.agents.tasks?.report("rem-consolidate");
        expect(told).toMatchObject({ task: { agentType: "rem-agent" } });
        expect(told?.answers[0]?.response).toMatch(
          /^1 item added \(test-command\), 1 item pruned \(item-1\)\. To take it back/,
        );
        const [last] = await board.changes();
        expect(last).toMatchObject({ id: report?.change, action: "consolidate", actor: "rem-agent" });
      },
      { before: (board) => fill(board, 2) },
    );
  });

  it("MEM-37 rem-agent changes the board only by its calls, and all changes become visible at its end", async () => {
    let during: unknown;
    await subconscious(
      [
        add("one"),
        async (request) => {
          during = request.messages.at(-1)?.content;
          return says("add: two. I added much more, and pruned mine.");
        },
      ],
      async (_, board) => {
        expect(during).toBe("Added one.");
        expect(await board.list()).toMatchObject([
          { src: "agent", name: "one" },
          { src: "user", name: "mine" },
        ]);
      },
      { before: (board) => board.add("user", text("mine"), PERSON) },
    );
  });

  it("rem-agent changes nothing on the board when it fails before its end", async () => {
    await subconscious(
      [add("one"), prune("item-1"), fails(400)],
      async ({ session }, board) => {
        expect(await board.list()).toMatchObject([{ name: "item-1" }, { name: "item-2" }]);
        expect(dataOf(session.events, "troupe.consolidation")).toMatchObject([{ outcome: "dropped", added: [] }]);
      },
      { before: (board) => fill(board, 2) },
    );
  });

  it("rem-agent gets an error for a forbidden change, and continues", async () => {
    await subconscious(
      [prune("item-1"), prune("item-2"), prune("mine"), add("Bad Name"), add("good"), says("done")],
      async ({ session }, board) => {
        expect(resultsOf(session.events, "context_board")).toEqual([
          "Pruned item-1.",
          expect.stringContaining("at most 1 of the 3"),
          expect.stringContaining("cannot be pruned"),
          expect.stringContaining("lower-case words"),
          "Added good.",
        ]);
        expect((await board.list()).map(({ name }) => name)).toEqual(["good", "item-2", "item-3", "mine"]);
      },
      {
        before: async (board) => {
          await fill(board, 3);
          await board.add("user", text("mine"), PERSON);
        },
      },
    );
  });

  it("rem-agent can be undone as a whole, byte for byte", async () => {
    let before: unknown;
    await subconscious(
      [add("item-1", "Other."), add("new"), prune("item-2"), says("done")],
      async (_, board) => {
        expect(await board.rows()).not.toEqual(before);
        await board.restore({ actor: "person" });
        expect(await board.rows()).toEqual(before);
      },
      {
        before: async (board) => {
          await fill(board, 3);
          await board.read("agent", "item-2");
          before = await board.rows();
        },
      },
    );
  });
});

describe("a consolidation in a session of its own", () => {
  it("a consolidation works on the learnings of the given session, and does not count as a session", async () => {
    const script = [says("Tests run with make check."), rem(add("test-command", "make check"), says("done"))];
    await onStage(script, { files: { "AGENTS.md": "HOUSE RULE" } }, async (stage) => {
      await stage.session.sendAndWait({ prompt: "How are tests run?" });
      await withBoard(stage, (board) => board.add("agent", text("old"), AGENT));
      const { home, folder } = stage;
      const runtime = createRuntime({ environment: { HOME: home, TROUPE_SANDBOX: "off" }, home });
      const { report, by, outcome } = await consolidate(runtime, {
        cwd: folder,
        sessionId: stage.session.id,
        model: { name: "alpha/large" },
      });
      expect(outcome).toMatchObject({ kind: "done", answer: expect.stringContaining("1 item added (test-command)") });
      expect(report).toMatchObject({ outcome: "applied", sessionId: stage.session.id });
      const system = remRequest(stage).system ?? "";
      expect(system).toMatch(/<said_by_person turn="1">\nHow are tests run\?/);
      for (const part of ["environment_context", "HOUSE RULE", folder]) expect(system).not.toContain(part);
      const { events } = await runtime.store.read(by);
      expect(dataOf(events, "session.start")).toMatchObject([
        { detachedFromSpawningParentSessionId: stage.session.id },
      ]);
      // Tidying is no use of the board.
      expect(await withBoard(stage, (board) => board.list())).toMatchObject([{ name: "old", count: 0 }, {}]);
      await runtime.close();
    });
  });

  it("a consolidation of a session that does not exist is refused", async () => {
    await onStage([], {}, async ({ home, folder }) => {
      const runtime = createRuntime({ environment: { HOME: home }, home });
      const wanted = consolidate(runtime, { cwd: folder, sessionId: "nobody", model: { name: "alpha/large" } });
      await expect(wanted).rejects.toThrow("There is no session nobody.");
      await runtime.close();
    });
  });
});
