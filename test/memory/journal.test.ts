import { appendFileSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { acceptChange, editChange, retractChange } from "../../src/context/memory/changes.ts";
import { historyOf } from "../../src/context/memory/fold.ts";
import type { MemoryJournal } from "../../src/context/memory/journal.ts";
import type { LocalMemory } from "../../src/context/memory/local.ts";
import { exportFacts } from "../../src/context/memory/transfer.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { accepted, draft, localAt, ports, toldAt } from "./support.ts";

function journalOf(memory: LocalMemory): MemoryJournal {
  const [journal] = memory.journals;
  if (journal === undefined) throw new Error("no journal");
  return journal;
}

const exportOf = (journal: MemoryJournal): string =>
  exportFacts([...journal.read().facts.values()], ports().redactor).text;

test("MEM-18 a fact has everything a user needs to judge it, and survives a restart", async () => {
  await using folder = await tempFolder();
  const memory = localAt(folder.at("home"), folder.at("work"));
  const { id, outcome } = await memory.store(draft("Tests run with npm test."));
  await memory.vote({
    fact: "Tests run with npm test.",
    direction: "upvote",
    reason: "It worked.",
    voter: "agent:two",
  });
  await memory.used([id]);
  const again = journalOf(localAt(folder.at("home"), folder.at("work")));
  expect(outcome).toBe("proposed");
  expect(again.read().facts.get(id)).toEqual({
    id,
    subject: "testing",
    fact: "Tests run with npm test.",
    citations: "package.json:12",
    reason: "Later sessions run the tests too.",
    scope: "repository",
    place: again.space.key,
    source: { kind: "tool", detail: "session-1" },
    author: "agent",
    status: "proposed",
    createdAt: expect.any(String),
    expiresAt: expect.any(String),
    votes: {
      up: 1,
      down: 0,
      by: [{ voter: "agent:two", direction: "upvote", reason: "It worked.", at: expect.any(String) }],
    },
    uses: 1,
    lastUsedAt: expect.any(String),
  });
  const history = historyOf(id, again.read()).map(({ action, by }) => `${action} ${by}`);
  expect(history).toEqual(["store agent:session-1", "vote agent:two"]);
  expect(statSync(again.path).mode & 0o777).toBe(0o600);
});

test("each change can be undone, byte for byte, and the undo too", async () => {
  await using folder = await tempFolder();
  const memory = localAt(folder.at("home"), folder.at("work"));
  const journal = journalOf(memory);
  const { id } = await memory.store(draft("Use tabs."));
  const states = [exportOf(journal)];
  const change = async (action: "accept" | "edit" | "remove", decide: Parameters<MemoryJournal["transact"]>[1]) => {
    await journal.transact({ action, by: "person" }, decide);
    states.push(exportOf(journal));
  };
  await change("accept", (state) => acceptChange(state, [id]));
  await change("edit", (state) => editChange(state, id, { fact: "Use spaces.", expiresAt: null }));
  await change("remove", (state) => retractChange(state, [id]));
  expect(new Set(states).size).toBe(4);
  for (const former of states.slice(0, -1).reverse()) {
    await journal.undo("person");
    expect(exportOf(journal)).toBe(former);
  }
  await journal.undo("person");
  expect(exportOf(journal)).toBe("");
  const lastUndo = journal.read().transactions.at(-1)?.id;
  await journal.undo("person", lastUndo);
  expect(exportOf(journal)).toBe(states[0]);
  await expect(journal.undo("person", "nothing")).rejects.toThrow("There is no change nothing.");
});

test("a change cannot be undone over a later one", async () => {
  await using folder = await tempFolder();
  const memory = localAt(folder.at("home"), folder.at("work"));
  const journal = journalOf(memory);
  const { id } = await memory.store(accepted("Use tabs."));
  await journal.transact({ action: "edit", by: "person" }, (state) => editChange(state, id, { fact: "Use spaces." }));
  const first = journal.read().transactions[0]?.id;
  await expect(journal.undo("person", first)).rejects.toThrow(`Nothing was undone: ${id} changed again later.`);
});

test("a damaged line costs only itself, is reported, and is saved beside the file by the next change", async () => {
  await using folder = await tempFolder();
  const memory = localAt(folder.at("home"), folder.at("work"));
  const journal = journalOf(memory);
  for (const name of ["one", "two", "three"]) await memory.store(accepted(`Fact ${name}.`));
  const lines = readFileSync(journal.path, "utf8").trimEnd().split("\n");
  const broken = (lines[1] ?? "").replace("Fact two", "Fact TWO");
  writeFileSync(journal.path, `${[lines[0], broken, lines[2]].join("\n")}\n{"seq":9,"torn`);
  const facts = () => [...journal.read().facts.values()].map(({ fact }) => fact);
  expect(facts()).toEqual(["Fact one.", "Fact three."]);
  expect(journal.read().notices).toEqual([expect.stringContaining("1 line damaged")]);
  expect((await memory.recall()).notices).toHaveLength(1);
  await memory.store(accepted("Fact four."));
  expect(facts()).toEqual(["Fact one.", "Fact three.", "Fact four."]);
  expect(journal.read().notices).toEqual([]);
  expect(readFileSync(`${journal.path}.damaged`, "utf8")).toBe(`${broken}\n{"seq":9,"torn\n`);
});

test("lines of another place are ignored, even with a valid checksum", async () => {
  await using folder = await tempFolder();
  const one = localAt(folder.at("home"), folder.at("one"));
  const two = localAt(folder.at("home"), folder.at("two"));
  await one.store(accepted("One has a secret handshake."));
  await two.store(accepted("Two has none."));
  appendFileSync(journalOf(two).path, readFileSync(journalOf(one).path));
  expect(await toldAt(two)).not.toContain("handshake");
  expect(await toldAt(one)).toContain("handshake");
});

test("a purge leaves no trace under the home, not in the history and not in what was set aside", async () => {
  await using folder = await tempFolder();
  const memory = localAt(folder.at("home"), folder.at("work"));
  const journal = journalOf(memory);
  const { id } = await memory.store(accepted("The wifi is called zanzibar."));
  const kept = await memory.store(accepted("Use tabs.", { supersedes: id }));
  await journal.transact({ action: "edit", by: "person" }, (state) =>
    editChange(state, id, { fact: "Zanzibar it is." }),
  );
  await memory.used([id, kept.id]);
  writeFileSync(`${journal.path}.damaged`, "half a line about zanzibar");
  writeFileSync(`${journal.path}.123.abc.tmp`, "half a file about zanzibar");
  await journal.purge([id]);
  const everything = JSON.stringify(await folder.tree());
  expect(everything).not.toMatch(/zanzibar/i);
  expect(everything).not.toContain(id);
  expect([...journal.read().facts.values()].map(({ fact, uses }) => [fact, uses])).toEqual([["Use tabs.", 1]]);
  expect(existsSync(`${journal.path}.damaged`)).toBe(false);
});

test("records of use do not accumulate, and their sum stays correct", async () => {
  await using folder = await tempFolder();
  const memory = localAt(folder.at("home"), folder.at("work"));
  const journal = journalOf(memory);
  const { id } = await memory.store(accepted("Use tabs."));
  for (let count = 0; count < 53; count++) await journal.used([id, "unknown"]);
  expect(journal.read().facts.get(id)?.uses).toBe(53);
  expect(journal.read().transactions.length).toBeLessThan(10);
});

test("a file that is not regular or far too large is reported and costs only the memory", async () => {
  await using folder = await tempFolder();
  const memory = localAt(folder.at("home"), folder.at("work"));
  await folder.files({ [join("home", "memory", "user.jsonl", "inside")]: "" });
  await memory.store(accepted("Use tabs."));
  expect(await toldAt(memory)).toContain("Use tabs.");
  writeFileSync(journalOf(memory).path, Buffer.alloc(17 * 1024 * 1024, "x"));
  const recall = await memory.recall();
  expect(recall).toMatchObject({ ids: [], count: 0 });
  expect(recall.notices).toEqual([expect.stringContaining("cannot be read: it has more than")]);
});

test("a fact is not stored twice, nor stored again by an agent after a person removed it", async () => {
  await using folder = await tempFolder();
  const memory = localAt(folder.at("home"), folder.at("work"));
  const journal = journalOf(memory);
  const { id } = await memory.store(draft("Use tabs."));
  expect(await memory.store(draft("  use TABS "))).toEqual({ id, outcome: "known" });
  expect(await memory.store(accepted("Use tabs."))).toEqual({ id, outcome: "accepted" });
  await journal.transact({ action: "remove", by: "person" }, (state) => retractChange(state, [id]));
  await expect(memory.store(accepted("Use tabs!"))).rejects.toThrow("The user has removed this fact");
  expect(await memory.store(accepted("Use tabs.", { author: "person" }))).toEqual({ id, outcome: "accepted" });
});

test("a memory does not grow beyond 100 proposals", async () => {
  await using folder = await tempFolder();
  const memory = localAt(folder.at("home"), folder.at("work"));
  const drafts = Array.from({ length: 120 }, (_, index) => draft(`Fact number ${index}.`));
  const results = await memory.storeAll(drafts, "repository");
  expect(results.filter(({ kind }) => kind === "stored")).toHaveLength(100);
  expect(results.at(-1)).toMatchObject({ kind: "refused", problem: "The memory is full: it holds 100 proposals." });
  expect(journalOf(memory).read().transactions).toHaveLength(1);
});
