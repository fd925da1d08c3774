import { execFileSync } from "node:child_process";
import { realpathSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Board, BoardKey } from "../../src/context/board/board.ts";
import { boardKey } from "../../src/context/board/board-key.ts";
import { openBoard } from "../../src/context/board/open.ts";
import type { PlainStep } from "../../src/model/faux/faux-plan.ts";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { createRuntime } from "../../src/runtime/runtime.ts";
import type { SessionRequest } from "../../src/runtime/session-request.ts";
import type { HttpPlay } from "../../src/testing/http-reply.ts";
import { optionsFor, PERSON, text } from "../board/stage.ts";
import { of, onStage, resultsOf, type Stage, starts, toolNames } from "./stage.ts";

/** Without the sidekick that looks at the board by itself. */
const environment = { COPILOT_SUBCONSCIOUS: "on", SIDEKICK_AGENTS: "off" };
/** An agent of the project that works with the board at once. */
const files = {
  ".github/agents/keeper.md": "---\nname: keeper\ndescription: keeps\ntools: context_board\n---\nYou keep.\n",
};
const call = (given: Readonly<Record<string, string>>) => calls(["context_board", given]);
const add = (name: string, content = `All about ${name}.`) =>
  call({ command: "add", name, description: `About ${name}`, context: content });

async function withBoard<T>({ home, folder }: Pick<Stage, "home" | "folder">, look: (board: Board) => Promise<T>) {
  const board = openBoard(optionsFor(home, { key: boardKey(folder, { isTrusted: false }) }));
  try {
    return await look(board);
  } finally {
    await board.close();
  }
}

/** What an agent that lists the tool gets for its calls, and what stands on the board afterwards. */
async function keeping(
  steps: readonly PlainStep<HttpPlay>[],
  look: (results: string[], stage: Stage) => Promise<void>,
  before: (board: Board) => Promise<unknown> = async () => undefined,
): Promise<void> {
  const script = [starts("a", "keeper"), says("ok"), of("a", ...steps, says("done"))];
  await onStage(script, { files, environment }, async (stage) => {
    await withBoard(stage, before);
    await stage.session.sendAndWait({ prompt: "go" });
    await look(resultsOf(stage.session.events, "context_board"), stage);
  });
}

/** Another session on the same state, as another process would have it. */
async function another(
  { home, folder }: Stage,
  more: Omit<Partial<SessionRequest>, "resume"> & { resume?: string } = {},
) {
  const { resume, ...rest } = more;
  const runtime = createRuntime({ environment: { HOME: home, TROUPE_SANDBOX: "off", ...environment }, home });
  const request = { cwd: folder, model: { name: "alpha/large" }, ...rest };
  const session = await (resume ? runtime.resumeSession(resume, request) : runtime.createSession(request));
  await session.close();
  await runtime.close();
}

describe("the board of a session", () => {
  it("MEM-24 the board belongs to the folder when there is no repository, and is found again on resume", async () => {
    const steps = [
      starts("a", "keeper"),
      says("ok"),
      of("a", add("one"), says("done")),
      starts("b", "keeper"),
      says("ok"),
      of("b", call({ command: "get", src: "agent", name: "one" }), says("done")),
    ];
    await onStage(steps, { files, environment }, async (stage) => {
      await stage.session.sendAndWait({ prompt: "go" });
      const key: BoardKey = { repository: `local:${realpathSync(stage.folder)}`, branch: "default" };
      const board = openBoard(optionsFor(stage.home, { key }));
      expect(await board.list()).toMatchObject([{ src: "agent", name: "one" }]);
      await board.close();
      const again = await stage.reopen();
      await again.sendAndWait({ prompt: "go on" });
      expect(resultsOf(again.events, "context_board").at(-1)).toContain("All about one.");
    });
  });

  it("MEM-24 the board belongs to repository and branch, and has the origin's name only in a trusted folder", async () => {
    await onStage([], { files, environment }, async (stage) => {
      const git = (...args: string[]) => execFileSync("git", args, { cwd: stage.folder, stdio: "ignore" });
      git("init", "-b", "spring");
      git("remote", "add", "origin", "https://someone:secret@example.com/house/garden.git");
      const sub = join(stage.folder, ".github");
      expect(boardKey(sub, { isTrusted: false })).toEqual({
        repository: `local:${realpathSync(stage.folder)}`,
        branch: "spring",
      });
      expect(boardKey(sub, { isTrusted: true })).toEqual({ repository: "example.com/house/garden", branch: "spring" });
      for (const workspace of [{ trustFolder: true }, {}]) {
        const key = boardKey(sub, { isTrusted: "trustFolder" in workspace });
        const board = openBoard(optionsFor(stage.home, { key }));
        await board.add("user", text("mine"), PERSON);
        await another(stage, { workspace });
        expect(await board.list()).toMatchObject([{ name: "mine", count: 1 }]);
        await board.close();
      }
    });
  });

  it("MEM-25 the board is not offered to the default agent, nor to an agent with the same tools", async () => {
    const steps = [
      starts("a", "keeper"),
      starts("b", "general-purpose"),
      calls(["context_board", { command: "get_board" }]),
      says("ok"),
      of("a", says("done")),
      of("b", says("done")),
    ];
    await onStage(steps, { files, environment }, async ({ session, first, requests }) => {
      await session.sendAndWait({ prompt: "go" });
      for (const request of requests("main")) expect(toolNames(request)).not.toContain("context_board");
      expect(toolNames(first("a"))).toEqual(["context_board"]);
      expect(toolNames(first("b"))).not.toContain("context_board");
      expect(resultsOf(session.events, "context_board")).toEqual([expect.stringMatching(/context_board/)]);
      expect(resultsOf(session.events, "context_board")[0]).not.toContain("empty");
    });
  });

  it("MEM-25 the board is not offered while its flag is off", async () => {
    const steps = [starts("a", "keeper"), says("ok"), of("a", says("done"))];
    await onStage(steps, { files }, async ({ session, requests, home }) => {
      await session.sendAndWait({ prompt: "go" });
      for (const request of requests()) expect(toolNames(request)).not.toContain("context_board");
      expect(() => realpathSync(join(home, "board.db"))).toThrow("ENOENT");
    });
  });

  it("MEM-26 the board counts each new session that uses it, and no resumed one", async () => {
    await onStage([says("ok")], { files, environment }, async (stage) => {
      await stage.session.sendAndWait({ prompt: "go" });
      await withBoard(stage, async (board) => {
        await board.add("user", text("mine"), PERSON);
        await another(stage);
        await another(stage);
        expect(await board.list()).toMatchObject([{ count: 2 }]);
        await (await stage.reopen()).close();
        expect(await board.list()).toMatchObject([{ count: 2 }]);
      });
    });
  });

  it("MEM-27 the board is stored in a table with fixed columns", async () => {
    await keeping([add("one")], async (_, { home }) => {
      const { DatabaseSync } = await import("@photostructure/sqlite");
      const raw = new DatabaseSync(join(home, "board.db"), { readOnly: true });
      const columns = raw.prepare("PRAGMA table_info(dynamic_context_items)").all();
      expect(columns.map(({ name }) => name)).toEqual([
        ...["repository", "branch", "src", "name", "description", "content", "read_count", "count"],
        ...["created_at", "updated_at"],
      ]);
      expect(columns.filter(({ pk }) => pk !== 0).map(({ name }) => name)).toEqual([
        "repository",
        "branch",
        "src",
        "name",
      ]);
      raw.close();
    });
  });
});

describe("context_board", () => {
  it("MEM-28 MEM-29 context_board lists the items as a table, without texts", async () => {
    await keeping(
      [call({ command: "get_board" })],
      async ([result = ""]) => {
        expect(result.split("\n")).toEqual([
          "<dynamic_context_board>",
          "| src | name | description | read_count | count |",
          "| --- | --- | --- | --- | --- |",
          "| user | mine | About mine | 0 | 0 |",
          "",
          expect.stringMatching(/`context_board` with `command: "get"`/),
          "</dynamic_context_board>",
        ]);
        expect(result).not.toContain("All about mine.");
      },
      (board) => board.add("user", text("mine"), PERSON),
    );
  });

  it("MEM-29 context_board says that an empty board is empty", async () => {
    await keeping([call({ command: "get_board" })], async (results) => {
      expect(results).toEqual(["The context board is empty."]);
    });
  });

  it("MEM-30 context_board returns one text and counts it, and fails for an unknown name", async () => {
    await keeping(
      [call({ command: "get", src: "user", name: "mine" }), call({ command: "get", src: "agent", name: "mine" })],
      async (results, stage) => {
        expect(results).toEqual([
          '<board_item src="user" name="mine">\nAll about mine.\n</board_item>',
          expect.stringMatching(/^There is no item agent\/mine/),
        ]);
        expect(await withBoard(stage, (board) => board.list())).toMatchObject([{ readCount: 1 }]);
      },
      (board) => board.add("user", text("mine"), PERSON),
    );
  });

  it("MEM-31 context_board writes items under the agents' name, and the second write replaces the first", async () => {
    await keeping([add("one", "First."), add("one", "Second.")], async (results, stage) => {
      expect(results).toEqual(["Added one.", "Replaced one."]);
      const rows = await withBoard(stage, (board) => board.rows());
      expect(rows).toMatchObject([{ src: "agent", name: "one", content: "Second." }]);
    });
  });

  it("MEM-32 context_board removes what an agent wrote, but nothing that the user wrote", async () => {
    await keeping(
      [add("mine", "Theirs."), call({ command: "prune", name: "mine" }), call({ command: "prune", name: "mine" })],
      async (results, stage) => {
        expect(results).toEqual(["Added mine.", "Pruned mine.", expect.stringContaining("cannot be pruned")]);
        const rows = await withBoard(stage, (board) => board.rows());
        expect(rows).toMatchObject([{ src: "user", content: "All about mine." }]);
      },
      (board) => board.add("user", text("mine"), PERSON),
    );
  });

  it("MEM-33 context_board has 25 items at most: a new one then fails, but replacing one does not", async () => {
    await keeping(
      [add("item-26"), add("item-25", "New.")],
      async (results, stage) => {
        expect(results).toEqual([expect.stringMatching(/full.*Prune an item first/s), "Replaced item-25."]);
        expect(await withBoard(stage, (board) => board.list())).toHaveLength(25);
      },
      async (board) => {
        for (let index = 1; index <= 25; index++) await board.add("agent", text(`item-${index}`), PERSON);
      },
    );
  });

  it("context_board masks secrets before anything is stored", async () => {
    const token = `ghp_${"a1B2c3D4e5".repeat(4).slice(0, 36)}`;
    await keeping([add("login", `The token is ${token}.`)], async (_, stage) => {
      const [row] = await withBoard(stage, (board) => board.rows());
      expect(row?.content).toMatch(/^The token is \[redacted:[\w.-]+\]\.$/);
    });
  });
});
