import { mkdirSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { acceptChange, editChange, retractChange } from "../../src/context/memory/changes.ts";
import type { MemoryJournal } from "../../src/context/memory/journal.ts";
import type { LocalMemory } from "../../src/context/memory/local.ts";
import type { MemoryScope } from "../../src/context/memory/memory.ts";
import { MAX_SECTION_BYTES } from "../../src/context/memory/section.ts";
import { importFacts } from "../../src/context/memory/transfer.ts";
import { TroupeError } from "../../src/protocol/errors.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { accepted, draft, localAt, ports } from "./support.ts";

const REPOSITORIES = ["alpha", "beta"] as const;
const WORDS = Array.from({ length: 5 }, (_, index) => `Rule number ${index} holds.`);

type Step = {
  readonly kind: "store" | "approved" | "vote" | "accept" | "edit" | "remove" | "import" | "undo" | "used" | "purge";
  readonly repository: (typeof REPOSITORIES)[number];
  readonly scope: MemoryScope;
  readonly word: number;
};

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom("store", "approved", "vote", "accept", "edit", "remove", "import", "undo", "used", "purge"),
  repository: fc.constantFrom(...REPOSITORIES),
  scope: fc.constantFrom("repository", "user"),
  word: fc.nat(WORDS.length - 1),
});

/** What each place may tell, kept by the simplest means: a person accepted it there, and nobody took it back since. */
type Told = Map<string, Set<string>>;

function journalFor(memory: LocalMemory, scope: MemoryScope): MemoryJournal {
  const journal = memory.journals.find((candidate) => candidate.scope === scope);
  if (journal === undefined) throw new Error("no journal");
  return journal;
}

/** Only a person's steps, and a call a person said yes to, may add to what is told. */
const mayAdd = new Set<Step["kind"]>(["approved", "accept", "undo"]);

async function take(one: Step, memory: LocalMemory): Promise<void> {
  const { kind, scope, word } = one;
  const fact = WORDS[word] ?? "";
  const journal = journalFor(memory, scope);
  const id = [...journal.read().facts.values()].find((known) => known.fact === fact)?.id ?? "missing";
  switch (kind) {
    case "store":
      return void (await memory.store(draft(fact, { scope })));
    case "approved":
      return void (await memory.store(accepted(fact, { scope })));
    case "vote":
      return memory.vote({ fact, direction: "upvote", reason: "Seen.", voter: `agent:${Math.random()}` });
    case "accept":
      return void (await journal.transact({ action: "accept", by: "person" }, (state) => acceptChange(state, [id])));
    case "edit":
      return void (await journal.transact({ action: "edit", by: "person" }, (state) =>
        editChange(state, id, { reason: "Changed." }),
      ));
    case "remove":
      return void (await journal.transact({ action: "remove", by: "person" }, (state) => retractChange(state, [id])));
    case "import": {
      const text = JSON.stringify({
        subject: "x",
        fact,
        citations: "",
        reason: "",
        status: "accepted",
        author: "person",
      });
      const { drafts } = importFacts(text, { name: "file", scope, redactor: ports().redactor });
      return void (await memory.storeAll(drafts, scope));
    }
    case "undo":
      return void (await journal.undo("person"));
    case "used":
      return memory.used([id]);
    case "purge":
      return journal.purge([id]);
  }
}

test("sessions never see a fact that no person accepted there, nor one of another repository, in any order of steps", async () => {
  await using folder = await tempFolder();
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      run++;
      const home = folder.at(`home-${run}`);
      const memories = new Map(REPOSITORIES.map((name) => [name, localAt(home, folder.at(`work/${name}`))]));
      const told: Told = new Map(REPOSITORIES.map((name) => [name, new Set()]));
      for (const one of steps) {
        const memory = memories.get(one.repository);
        if (memory === undefined) throw new Error("no memory");
        await take(one, memory).catch((error: unknown) => {
          if (!(error instanceof TroupeError)) throw error;
        });
        for (const [name, other] of memories) {
          const text = (await other.recall()).text ?? "";
          const before = told.get(name) ?? new Set();
          const now = new Set(WORDS.filter((word) => text.includes(word)));
          const fresh = [...now].filter((word) => !before.has(word));
          const isReachable = one.scope === "user" || one.repository === name;
          const allowed = mayAdd.has(one.kind) && isReachable;
          if (!allowed) expect({ one, name, fresh }).toEqual({ one, name, fresh: [] });
          if (one.kind !== "undo") expect(fresh.filter((word) => word !== WORDS[one.word])).toEqual([]);
          expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MAX_SECTION_BYTES);
          told.set(name, now);
        }
      }
    }),
    { numRuns: process.env.TROUPE_SLOW ? 300 : 8, seed: 7 },
  );
});

test("sessions see exactly the accepted facts in the journals of the location", async () => {
  await using folder = await tempFolder();
  let run = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
      run++;
      mkdirSync(folder.at("work"), { recursive: true });
      const memory = localAt(folder.at(`home-${run}`), folder.at("work"));
      for (const one of steps) {
        await take(one, memory).catch((error: unknown) => {
          if (!(error instanceof TroupeError)) throw error;
        });
      }
      const standing = memory.journals
        .flatMap((journal) => [...journal.read().facts.values()])
        .filter(({ status }) => status === "accepted")
        .map(({ id }) => id);
      expect([...(await memory.recall()).ids].sort()).toEqual(standing.sort());
    }),
    { numRuns: process.env.TROUPE_SLOW ? 200 : 5, seed: 11 },
  );
});
