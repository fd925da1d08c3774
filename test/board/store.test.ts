import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { boardLimits } from "../../src/context/board/board.ts";
import { listBoards, openBoard } from "../../src/context/board/open.ts";
import { createRedactor } from "../../src/lib/redact/redact.ts";
import { buildProgram, run } from "./build.ts";
import { AGENT, fill, KEY, onBoard, optionsFor, PERSON, text } from "./stage.ts";

describe("the rows of a board", () => {
  it("the rows of a board belong to one repository and branch", () =>
    onBoard(async (board, home) => {
      await board.add("user", text("mine"), PERSON);
      for (const key of [
        { ...KEY, branch: "other" },
        { ...KEY, repository: "example.com/house/roof" },
      ]) {
        const other = openBoard(optionsFor(home, { key }));
        expect(await other.list()).toEqual([]);
        await other.expose();
        await other.add("user", text("mine", { content: "Other." }), PERSON);
        await other.close();
      }
      expect(await board.rows()).toMatchObject([{ content: "All about mine.", count: 0 }]);
      expect(await listBoards(optionsFor(home))).toEqual([
        { ...KEY, rows: 1 },
        { ...KEY, branch: "other", rows: 1 },
        { ...KEY, repository: "example.com/house/roof", rows: 1 },
      ]);
    }));

  it("the rows of a board keep their counters when they are overwritten", () =>
    onBoard(async (board) => {
      await board.add("agent", text("one"), AGENT);
      await board.expose();
      await board.read("agent", "one");
      expect(await board.add("agent", text("one", { content: "New." }), AGENT)).toBe("replaced");
      expect(await board.rows()).toMatchObject([{ content: "New.", readCount: 1, count: 1 }]);
      expect(await board.add("agent", text("one", { content: "New." }), AGENT)).toBe("unchanged");
    }));

  it("the rows of a board are found by another process, in a file that only the owner can read", () =>
    onBoard(async (board, home) => {
      await board.add("agent", text("one"), AGENT);
      const again = openBoard(optionsFor(home));
      expect(await again.rows()).toEqual(await board.rows());
      await again.close();
      for (const name of readdirSync(home))
        expect([name, statSync(join(home, name)).mode & 0o777]).toEqual([name, 0o600]);
    }));
});

describe("a text on the board", () => {
  it.each([
    ["a name in other letters", text("Über-Name")],
    ["a name that is a path", text("../x")],
    ["a long name", text("a".repeat(boardLimits.name + 1))],
    ["no description", text("x", { description: " \n" })],
    ["no text", text("x", { content: "" })],
    ["a long description", text("x", { description: "d".repeat(boardLimits.description + 1) })],
    ["a long text", text("x", { content: "c".repeat(boardLimits.content + 1) })],
  ])("a text on the board cannot have %s", (_, bad) =>
    onBoard(async (board) => {
      await expect(board.add("agent", bad, AGENT)).rejects.toMatchObject({ kind: "usage" });
      expect(await board.list()).toEqual([]);
    }),
  );

  it("a secret on the board is masked when an agent writes it, and refused when a user does", () =>
    onBoard(async (_, home) => {
      const redactor = createRedactor({ values: [{ value: "hunter2-hunter2-42", name: "PASSWORD" }] });
      const board = openBoard(optionsFor(home, { redactor }));
      const secret = text("login", { content: "The password is hunter2-hunter2-42." });
      await board.add("agent", secret, AGENT);
      expect((await board.rows())[0]?.content).toBe("The password is [redacted:PASSWORD].");
      await expect(board.add("user", secret, PERSON)).rejects.toThrow("secret");
      const spread = text("login", { content: "It is hunter2- hunter2-42" });
      await expect(board.add("agent", spread, AGENT)).rejects.toThrow("secret");
      await board.close();
      for (const name of readdirSync(home))
        expect(readFileSync(join(home, name), "latin1")).not.toContain("hunter2-42");
    }));

  it("a text on the board has a description of one line with visible control characters", () =>
    onBoard(async (board) => {
      await board.add("agent", text("x", { description: "two\nlines\u001b[31m \u200bhidden" }), AGENT);
      expect((await board.list())[0]?.description).toBe("two lines <U+200B>hidden");
    }));
});

describe("capacity", () => {
  it("the capacity of the board counts both sources, and applies to new rows only", () =>
    onBoard(async (board) => {
      await fill(board, boardLimits.rows - 1);
      await board.add("user", text("mine"), PERSON);
      await expect(board.add("agent", text("one-more"), AGENT)).rejects.toThrow("full");
      await expect(board.add("user", text("one-more"), PERSON)).rejects.toThrow("full");
      expect(await board.add("agent", text("item-1", { content: "New." }), AGENT)).toBe("replaced");
      expect(await board.list()).toHaveLength(boardLimits.rows);
    }));
});

describe("the undo of a change", () => {
  it("undoing a board change restores every byte, and can itself be undone", () =>
    onBoard(async (board) => {
      await fill(board, 3);
      await board.expose();
      await board.read("agent", "item-2");
      const before = await board.rows();
      const change = await board.change({ action: "consolidate", actor: "rem-agent", sessionId: "s" }, (rows) => [
        ...rows.filter(({ name }) => name !== "item-2").map((row) => ({ ...row, content: `${row.content}!` })),
      ]);
      const after = await board.rows();
      expect(after).not.toEqual(before);
      const undo = await board.restore({ actor: "person" });
      expect(await board.rows()).toEqual(before);
      expect(undo).toMatchObject({ action: "restore", restores: change?.id });
      await board.restore({ actor: "person" }, undo.id);
      expect(await board.rows()).toEqual(after);
      await board.restore({ actor: "person" });
      expect(await board.rows()).toEqual(before);
    }));

  it("undoing a board change reverts change by change, and then reports that there is none left", () =>
    onBoard(async (board) => {
      await fill(board, 2);
      await board.restore(PERSON);
      await board.restore(PERSON);
      expect(await board.list()).toEqual([]);
      await expect(board.restore(PERSON)).rejects.toThrow("no change to undo");
    }));

  it("undoing a board change is refused over a later change of the same row, which it names", () =>
    onBoard(async (board) => {
      await board.add("agent", text("one"), AGENT);
      const [first] = await board.changes();
      await board.add("agent", text("one", { content: "Later." }), AGENT);
      await expect(board.restore(PERSON, first?.id)).rejects.toMatchObject({
        hint: expect.stringContaining("restore 2"),
      });
      expect(await board.rows()).toMatchObject([{ content: "Later." }]);
    }));

  it("undoing a board change is refused where the board would be too full", () =>
    onBoard(async (board) => {
      await fill(board, boardLimits.rows);
      await board.prune("agent", "item-1", { ...AGENT, action: "prune" });
      const [pruned] = await board.changes();
      await board.add("agent", text("another"), AGENT);
      await expect(board.restore(PERSON, pruned?.id)).rejects.toThrow("26 items");
    }));

  it("undoing a board change reaches back 40 changes: older ones are forgotten", () =>
    onBoard(async (board) => {
      for (let index = 0; index < 45; index++) await board.add("agent", text("one", { content: `${index}` }), AGENT);
      expect(await board.changes()).toHaveLength(40);
    }));
});

describe("purging", () => {
  it("purging a board row leaves no trace in any file, and does not change other rows", () =>
    onBoard(async (board, home) => {
      await board.add("agent", text("other"), AGENT);
      await board.add("agent", text("gone", { content: "Xyzzy the first." }), AGENT);
      await board.add("agent", text("gone", { content: "Xyzzy the second." }), AGENT);
      expect(await board.purge("agent", "gone")).toBe(3);
      await board.close();
      for (const name of readdirSync(home)) expect(readFileSync(join(home, name), "latin1")).not.toContain("Xyzzy");
      const again = openBoard(optionsFor(home));
      expect(await again.list()).toMatchObject([{ name: "other" }]);
      await again.close();
    }));
});

describe("the file", () => {
  it("a damaged board file is renamed instead of deleted, and that is reported", () =>
    onBoard(async (_, home) => {
      writeFileSync(join(home, "board.db"), "this is no database, but somebody's work\n".repeat(100));
      const notices: string[] = [];
      const board = openBoard(optionsFor(home, { onNotice: (notice) => notices.push(notice) }));
      expect(await board.list()).toEqual([]);
      await board.add("agent", text("one"), AGENT);
      await board.close();
      const [aside = ""] = readdirSync(home).filter((name) => name.includes("damaged"));
      expect(readFileSync(join(home, aside), "utf8")).toContain("somebody's work");
      expect(notices.join()).toContain(aside);
    }));

  it("a board file of a newer version is not changed", () =>
    onBoard(async (board, home) => {
      await board.add("agent", text("one"), AGENT);
      await board.close();
      const { DatabaseSync } = await import("@photostructure/sqlite");
      const raw = new DatabaseSync(join(home, "board.db"));
      raw.exec("PRAGMA user_version = 99");
      raw.close();
      const late = openBoard(optionsFor(home));
      await expect(late.list()).rejects.toThrow("newer version");
      await late.close();
    }));

  it("a board file serves several processes at once, and loses nothing", () =>
    onBoard(async (board, home) => {
      await board.add("agent", text("shared"), AGENT);
      const program = join(home, "writer.mjs");
      await buildProgram("test/board/writer-program.ts", program);
      const ends = await Promise.all([1, 2, 3].map((index) => run(program, [home, `writer-${index}`])));
      expect(ends.map(({ errors }) => errors)).toEqual(["", "", ""]);
      const rows = await board.rows();
      expect(rows.map(({ name }) => name)).toEqual(["shared", "writer-1", "writer-2", "writer-3"]);
      expect(rows[0]?.readCount).toBe(30);
    }));
});
