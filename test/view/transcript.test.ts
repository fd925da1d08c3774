import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import type { SessionEvent } from "../../src/protocol/event.ts";
import type { Block } from "../../src/view/blocks.ts";
import { fullDiff, fullText } from "../../src/view/full-text.ts";
import { transcriptOf } from "../../src/view/replay.ts";
import { SessionView } from "../../src/view/session-view.ts";
import type { View } from "../../src/view/view.ts";
import { blockedBy, openAttention, waitChain, waitText } from "../../src/view/waits.ts";
import { type Recorded, recordings, storedOf } from "./recorded.ts";

let logs: readonly Recorded[] = [];
beforeAll(async () => {
  logs = await recordings();
});

const eventsOf = (name: string): readonly SessionEvent[] => logs.find((log) => log.name === name)?.events ?? [];

/** A block in a few words. */
function told(block: Block): string {
  switch (block.kind) {
    case "user":
    case "reasoning":
    case "notice":
      return `${block.kind}: ${block.text.replaceAll("\n", "⏎")}`;
    case "assistant":
      return `${block.markdown.kind}: ${block.markdown.text.replaceAll("\n", "⏎")}`;
    case "tool":
      return `${block.card.title.slice(0, 40)}: ${block.card.state}`;
    case "plan":
      return `plan: ${block.items.map(({ title, status }) => `${title} ${status}`).join(", ")}`;
    case "answer":
      return `${block.question} ${block.answer}`;
    case "approval":
      return `${block.title}: ${block.decision} (${block.how})`;
    case "agent":
      return `${block.childId} ${block.status}: ${block.result}`;
    case "mode":
      return `${block.from} → ${block.to}`;
    default:
      return block.kind;
  }
}

const tellingOf = (events: readonly SessionEvent[], agentId?: string): string[] =>
  [...transcriptOf(storedOf(events), agentId)].map(told);

describe("transcripts of recorded sessions", () => {
  it("transcripts show messages, reasoning, calls, todos, questions, plans and modes in order", () => {
    expect(tellingOf(eventsOf("tools"))).toEqual([
      "user: Look at a.txt⏎and change it",
      "reasoning: I should look first.",
      "text: Let me look.",
      "view a.txt: done",
      "plan: look done, change in_progress, test open",
      "view missing.txt: failed",
      "edit a.txt: done",
      "bash for i in $(seq 200); do echo line $: done",
      "Which one? red",
      "heading: # What I found",
      "text: The parser **fails** on empty input.",
      "item: - one",
      "item: - two⏎  more of two",
      "code: const a = 1;⏎⏎const b = 2;",
      "text: Done.",
      "user: and then?",
      "text: Second answer.",
      "interactive → plan",
      "user: plan it",
      "plan → interactive",
      "exit_plan_mode make b.txt: done",
      "text: Planned.",
    ]);
  });

  it("transcripts show head, tail and diff of calls, and name the event with the full text", () => {
    const events = eventsOf("tools");
    const cards = [...transcriptOf(storedOf(events))].flatMap((block) => (block.kind === "tool" ? [block] : []));
    const bash = cards.find(({ card }) => card.name === "bash");
    expect(bash?.card.output.head.startsWith("line 1\nline 2\n")).toBe(true);
    expect(bash?.card.output.tail).toContain("line 200");
    expect(bash?.card.output.hiddenLines).toBeGreaterThan(100);
    const whole = events.find(({ id }) => id === bash?.eventId);
    expect(whole && fullText(whole).split("\n")).toContain("line 100");
    const edit = cards.find(({ card }) => card.name === "edit");
    expect(edit?.card.diff?.head).toMatch(/^-one$[\s\S]*^\+two$/m);
    const edited = events.find(({ id }) => id === edit?.eventId);
    expect(edited && fullDiff(edited)).toContain("+two");
  });

  it("transcripts show the run of each agent by itself, with its approvals", () => {
    const events = eventsOf("agents");
    expect(tellingOf(events, "deep")).toEqual([
      "user: @deep look around",
      "env echo asked: approved (once)",
      "bash env echo asked: done",
      "env echo denied: denied (user)",
      "bash env echo denied: denied",
      "text: Deep is done.",
    ]);
    expect(tellingOf(events)).toContain("back idle: Back is done.");
    expect(tellingOf(events).filter((text) => text.startsWith("scout"))).toEqual([]);
  });

  it("transcripts show a reply that broke off, an interruption and a compaction", () => {
    expect(tellingOf(eventsOf("trouble"))).toEqual(
      expect.arrayContaining([
        "text: Half of an",
        "notice: The reply broke off: faux: the reply broke off before it was finished",
        "broken: failed",
        "notice: Interrupted.",
      ]),
    );
    expect(tellingOf(eventsOf("compaction"))).toContain("compaction");
  });

  it("transcripts hand out each block once, however often and whenever they are drained", () => {
    for (const { events } of logs) {
      const whole = [...transcriptOf(storedOf(events))].map(({ id }) => id);
      fc.assert(
        fc.property(fc.array(fc.boolean(), { minLength: 1, maxLength: 50 }), (drains) => {
          const made = new SessionView();
          const ids = events.flatMap((event, index) => {
            made.apply(event);
            return drains[index % drains.length] ? made.drain().map(({ id }) => id) : [];
          });
          ids.push(...made.drain().map(({ id }) => id));
          expect([...ids].sort()).toEqual([...whole].sort());
        }),
        { numRuns: 20 },
      );
    }
  });
});

/** Calls `look` after every event. */
function watched(name: string, look: (view: View, event: SessionEvent) => void): void {
  const made = new SessionView();
  for (const event of eventsOf(name)) {
    made.apply(event);
    look(made.view, event);
  }
}

describe("a recorded session while it runs", () => {
  it("a recorded session shows the chain to an approval two levels down, and what the approval blocks", () => {
    const chains = new Set<string>();
    const blocked = new Set<string>();
    watched("agents", (view) => {
      chains.add(waitText(waitChain(view)));
      for (const item of openAttention(view)) blocked.add(`${item.path.join("/")} blocks ${blockedBy(view, item)}`);
    });
    expect([...chains]).toContain(
      "task scout (general-purpose): do scout → scout → task deep (general-purpose): do deep → deep → bash env echo asked → approval: env echo asked",
    );
    expect([...blocked]).toEqual(["scout/deep blocks deep,scout,"]);
  });

  it("a recorded session closes every request when it is answered", () => {
    const asked = new Set<string>();
    let open = 0;
    for (const name of ["agents", "tools"]) {
      watched(name, (view) => {
        const items = openAttention(view);
        for (const { kind } of items) asked.add(kind);
        open = items.length;
      });
      expect(open).toBe(0);
    }
    expect([...asked].sort()).toEqual(["permission", "plan", "question"]);
    for (const { name, events } of logs) {
      const late = new SessionView();
      for (const event of storedOf(events)) late.apply(event);
      expect([...late.view.attention.keys()], name).toEqual([]);
    }
  });

  it("a recorded session shows queued messages until they are delivered", () => {
    const queued = new Set<string>();
    watched("tools", (view) => {
      for (const { text } of view.queue) queued.add(text);
    });
    expect([...queued]).toEqual(["and then?"]);
  });

  it("a recorded session shows a rate limit with its end, and context usage", () => {
    const waits: unknown[] = [];
    let context: View["main"]["context"];
    watched("trouble", (view, event) => {
      if (event.type === "troupe.retry") waits.push(...waitChain(view));
      context = view.main.context ?? context;
      if (event.type === "assistant.message") expect(waitChain(view)).toEqual([]);
    });
    expect(waits).toMatchObject([
      { kind: "model", isRateLimit: true, reason: "faux: too many requests", until: expect.any(Number) },
      { kind: "model", isRateLimit: false },
    ]);
    expect(context).toMatchObject({ currentTokens: expect.any(Number), tokenLimit: expect.any(Number) });
  });

  it("a recorded session shows workers as cards of one group, with their results", () => {
    let cards: unknown[] = [];
    watched("workers", (view) => {
      cards = [...view.agents.values()].map(({ card }) => [card?.title, card?.group, card?.result?.summary]);
    });
    expect(cards).toEqual([
      ["Scout", 1, "found a"],
      ["Scout 2", 1, "found b"],
    ]);
  });
});
