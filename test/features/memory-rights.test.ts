/** The permission to store and vote: the order of decisions, skills that allow it, and what telemetry says of the memory. */
import { describe, expect, it } from "vitest";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import type { SessionRequest } from "../../src/runtime/session-request.ts";
import { MetricMeter } from "../../src/telemetry/metrics.ts";
import { SessionTrace } from "../../src/telemetry/session-trace.ts";
import type { Span } from "../../src/telemetry/span.ts";
import { dataOf } from "../support/stage.ts";
import { person, repository, stores, votes } from "./memory-stage.ts";
import { onStage, resultsOf } from "./stage.ts";

const on = { context: { memory: { enabled: true } }, permissions: {}, files: repository() } as const;
const verdicts = (events: readonly SessionEvent[]) =>
  dataOf(events, "troupe.permission").flatMap(({ kind, decision, by }) => (kind === "memory" ? [[decision, by]] : []));

type Permissions = NonNullable<SessionRequest["permissions"]>;
type Approval = "none" | "session" | "location";

describe("permission for the memory", () => {
  const allowAll: Permissions = { allTools: true };
  const deny: Permissions = { denyTools: ["memory"] };
  /** A session or location approval is given in the first of two calls. The rules of the row hold for the second. */
  const rows: readonly (readonly [string, Approval, Permissions, { decision: string; by: string; asked: number }])[] = [
    ["nothing else", "none", {}, { decision: "allowed", by: "person", asked: 1 }],
    ["allow-all", "none", allowAll, { decision: "allowed", by: "mode", asked: 0 }],
    ["a session approval", "session", {}, { decision: "allowed", by: "session", asked: 0 }],
    ["a location approval", "location", {}, { decision: "allowed", by: "location", asked: 0 }],
    ["a deny rule", "none", deny, { decision: "denied", by: "rule", asked: 0 }],
    ["a deny rule and allow-all", "none", { ...allowAll, ...deny }, { decision: "denied", by: "rule", asked: 0 }],
    ["a deny rule and a session approval", "session", deny, { decision: "denied", by: "rule", asked: 0 }],
    ["a deny rule and a location approval", "location", deny, { decision: "denied", by: "rule", asked: 0 }],
  ];

  it.each(rows)(
    "MEM-58 permission for the memory is decided for %s in the order deny, approvals, question",
    async (...row) => {
      const [, approval, permissions, { asked, ...verdict }] = row;
      const steps = [stores(), says("ok"), stores({ fact: "Lint with npm run check." }), says("ok")];
      await onStage(approval === "none" ? steps.slice(2) : steps, on, async ({ session, folder, reopen }) => {
        let current = session;
        if (approval !== "none") {
          const given = { kind: "memory" } as const;
          const answer =
            approval === "session"
              ? ({ kind: "approved-for-session", approval: given } as const)
              : ({ kind: "approved-for-location", approval: given, locationKey: folder } as const);
          person(session, answer);
          await session.sendAndWait({ prompt: "first" });
        }
        if (approval === "session") {
          const denied = permissions === deny ? [{ kind: "memory", argument: null }] : [];
          session.workspace.services?.permissions?.rules.replaceRules({ approved: [], denied });
        } else current = await reopen({ permissions });
        const shown = person(current);
        await current.sendAndWait({ prompt: "second" });
        expect(shown).toHaveLength(approval === "session" && asked === 0 ? 0 : asked);
        expect(verdicts(current.events).at(-1)).toEqual([verdict.decision, verdict.by]);
      });
    },
  );

  const skill = (tools: string) =>
    `---\nname: keeper\ndescription: keeps facts\nallowed-tools: ${tools}\n---\nKeep facts.\n`;
  const uses = calls(["skill", { skill: "keeper" }]);

  it.each(["memory", "store_memory, vote_memory", "[memory]"])(
    "MEM-59 permission for the memory is given by allowed-tools %s in a skill of the user",
    async (tools) => {
      const files = { ...repository(), "home:skills/keeper/SKILL.md": skill(tools) };
      await onStage([uses, stores(), votes(), says("ok")], { ...on, files }, async ({ session }) => {
        const shown = person(session);
        await session.sendAndWait({ prompt: "go" });
        expect(shown).toEqual([]);
        expect(verdicts(session.events)).toEqual([
          ["allowed", "rule"],
          ["allowed", "rule"],
        ]);
        // A rule lets the call happen; it does not make the fact true.
        expect(resultsOf(session.events, "store_memory")[0]).toMatch(/^Stored as a proposal/);
      });
    },
  );

  it("MEM-59 permission for the memory is not given by a skill of a project, nor by one that allows reading", async () => {
    const cases = [
      { ".github/skills/keeper/SKILL.md": skill("memory") },
      { "home:skills/keeper/SKILL.md": skill("read") },
    ];
    for (const own of cases) {
      await onStage(
        [uses, stores(), says("ok")],
        { ...on, files: { ...repository(), ...own } },
        async ({ session }) => {
          const shown = person(session);
          await session.sendAndWait({ prompt: "go" });
          expect(shown).toHaveLength(1);
          expect(verdicts(session.events)).toEqual([["allowed", "person"]]);
        },
      );
    }
  });
});

describe("telemetry of the memory", () => {
  it("MEM-56 telemetry of the memory has the number of facts, each tool call, and the outcome at shutdown", async () => {
    const environment = { COPILOT_SUBCONSCIOUS: "on", SIDEKICK_AGENTS: "off" };
    const steps = [stores(), votes({ fact: "Nobody said this." }), says("ok")];
    await onStage(steps, { ...on, environment, permissions: { allTools: true } }, async ({ session }) => {
      const spans: Span[] = [];
      const meter = new MetricMeter(0);
      let count = 0;
      const newId = (): string => `id${++count}`;
      const emit = (span: Span): void => void spans.push(span);
      const trace = new SessionTrace({ sessionId: session.id, meter, newId, captureContent: false, emit });
      session.subscribe((event) => trace.onEvent(event));
      await session.sendAndWait({ prompt: "go" });
      const { consolidateAtShutdown } = await import("../../src/runtime/knowledge/shutdown-consolidation.ts");
      await consolidateAtShutdown({ session, environment: {}, program: ["/nowhere/troupe"] });
      expect(dataOf(session.events, "troupe.memory_recalled")).toEqual([{ store: "local", count: 0 }]);
      const calls = spans.flatMap(({ name, error }) => (name.endsWith("_memory") ? [[name, error !== undefined]] : []));
      expect(calls).toEqual([
        ["execute_tool store_memory", false],
        ["execute_tool vote_memory", true],
      ]);
      const metrics = new Map(meter.take(1)?.map(({ instrument, points }) => [instrument.name, points]));
      const seen = (name: string) => metrics.get(name)?.map(({ attributes, sum }) => [attributes, sum]);
      expect(seen("troupe.memory.facts")).toEqual([[{ store: "local" }, 0]]);
      expect(seen("troupe.memory.shutdown_consolidation.count")).toEqual([[{ outcome: "below_min_turns" }, 1]]);
      expect(seen("github.copilot.tool.call.count")).toEqual([
        [{ "gen_ai.tool.name": "store_memory", success: true }, 1],
        [{ "gen_ai.tool.name": "vote_memory", success: false }, 1],
      ]);
      const run = spans.find(({ name }) => name === "invoke_agent troupe");
      expect(run?.events.map(({ name }) => name)).toContain("troupe.memory.recalled");
    });
  });
});
