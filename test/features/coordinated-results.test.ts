import { describe, expect, it } from "vitest";
import type { Json } from "../../src/lib/json.ts";
import { otherwise } from "../../src/model/faux/faux-plan.ts";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import type { ModelRequest } from "../../src/model/provider.ts";
import type { HttpStep } from "../../src/testing/http-reply.ts";
import { of, onStage, resultsOf, type Stage } from "./stage.ts";

interface Place {
  readonly part: string;
  readonly from: number;
  readonly offset?: number;
}
interface Page extends Place {
  readonly agent_id: string;
  readonly of: number;
  readonly items: readonly Json[];
  readonly piece?: string;
  readonly next?: Place;
}
interface Overview {
  readonly agents: readonly (Record<string, Json> & { readonly id: string; readonly findings: readonly Json[] } & {
    readonly agentId?: string;
    readonly unread: readonly Place[];
  })[];
}

const IDS = ["a", "b", "c"];
const ROLES = ["scout", "review", "security_analyst"];
const workers = IDS.map((id, index) => ({ id, role: ROLES[index] ?? "", task: `@${id} look` }));
const findingOf = (id: string, index: number, evidence = `${id}${index} `.repeat(1250)) => ({
  severity: "warning",
  title: `${id} finding ${index}`,
  evidence,
  paths: [`src/${id}.ts:${index}`],
});
const artifactOf = (id: string, index: number) => ({
  kind: "source",
  title: `${id} artifact ${index}`,
  content: `${id}${index}é`.repeat(2500).slice(0, 5000),
});
const payloadOf = (id: string) => ({
  status: "completed",
  summary: `Summary of ${id}.`,
  steps: [{ id: "1", title: `${id} looked`, status: "completed" }],
  findings: Array.from({ length: 25 }, (_, index) => findingOf(id, index)),
  artifacts: Array.from({ length: 12 }, (_, index) => artifactOf(id, index)),
  recommendedNextActions: [`ask ${id}`],
});
const submits = (payload: object) => calls(["submit_result", payload as Json]);

describe("results of subagents_run above the size of one tool result", () => {
  it("BLX-16 subagents_run cuts 25 findings to 20 and 12 artifacts to 10, and pages give the coordinator all", async () => {
    const steps = [
      calls(["subagents_run", { agents: workers }]),
      reads(IDS),
      ...IDS.map((id) => of(id, submits(payloadOf(id)))),
    ];
    await onStage(steps, {}, async (stage) => {
      await stage.session.sendAndWait({ prompt: "review in parallel" });
      const overview = overviewOf(stage);
      expect(overview.agents.map(({ id, status, summary, truncated }) => ({ id, status, summary, truncated }))).toEqual(
        IDS.map((id) => ({
          ...{ id, status: "completed", summary: `Summary of ${id}.` },
          truncated: ["5 findings left out", "2 artifacts left out"],
        })),
      );
      for (const agent of overview.agents) expect(agent.findings.length).toBeGreaterThan(0);
      for (const id of IDS) expect(readBy(stage, id)).toEqual(boundedResult(id));
      expect(sizes(stage)).toEqual([]);
    });
  });

  it("BLX-16 subagents_read returns the same pages after the session was resumed", async () => {
    const again: HttpStep = reads(["b"]);
    const steps = [
      calls(["subagents_run", { agents: workers }]),
      says("later"),
      ...IDS.map((id) => of(id, submits(payloadOf(id)))),
      again,
    ];
    await onStage(steps, {}, async (stage) => {
      await stage.session.sendAndWait({ prompt: "review in parallel" });
      expect(resultsOf(stage.session.events, "subagents_read")).toEqual([]);
      const session = await stage.reopen();
      await session.sendAndWait({ prompt: "read what b found" });
      expect(readBy({ session }, "b")).toEqual(boundedResult("b"));
    });
  });

  it("BLX-16 subagents_read splits an item that is longer than a page, but no character", async () => {
    const paths = Array.from({ length: 50 }, (_, index) => `${"😀".repeat(490)}${index}`);
    const long = { severity: "info", title: "long", evidence: "😀".repeat(2000), paths };
    const payload = { status: "completed", summary: "s".repeat(7000), findings: [long, findingOf("a", 1)] };
    const steps = [calls(["subagents_run", { agents: workers.slice(0, 1) }]), reads(["a"]), of("a", submits(payload))];
    await onStage(steps, {}, async (stage) => {
      await stage.session.sendAndWait({ prompt: "review" });
      const pages = pagesOf(stage);
      const pieces = pages.flatMap(({ piece }) => piece ?? []);
      expect(pieces.length).toBeGreaterThan(5);
      expect(JSON.parse(pieces.join(""))).toEqual(long);
      expect(pages.flatMap(({ part, items }) => (part === "summary" ? items : []))).toEqual([payload.summary]);
      expect(pages.flatMap(({ part, items }) => (part === "findings" ? items : []))).toEqual([
        { ...findingOf("a", 1), evidence: `${Array.from(findingOf("a", 1).evidence).slice(0, 2000).join("")}…` },
      ]);
      expect(sizes(stage)).toEqual([]);
    });
  });

  it("BLX-16 a second worker of the same name gets an id of its own for reading", async () => {
    const [first] = workers;
    const steps = [
      calls(["subagents_run", { agents: [first] as Json }]),
      calls(["subagents_run", { agents: [first] as Json }]),
      reads(["a-2"]),
      of("a", submits({ status: "completed", summary: "short" }), submits(payloadOf("z"))),
    ];
    await onStage(steps, {}, async (stage) => {
      await stage.session.sendAndWait({ prompt: "twice" });
      const second = JSON.parse(resultsOf(stage.session.events, "subagents_run")[1] ?? "") as Overview;
      expect(second.agents.map(({ id, agentId }) => [id, agentId])).toEqual([["a", "a-2"]]);
      expect(readBy(stage, "a-2").findings).toHaveLength(20);
    });
  });

  it("subagents_read reports an unknown worker, an offset behind the end and a worker without a result", async () => {
    const read = (input: Record<string, Json>) => calls(["subagents_read", input]);
    const steps = [
      calls(["subagents_run", { agents: workers.slice(0, 2) }]),
      read({ agent_id: "nobody" }),
      read({ agent_id: "a", from: 7 }),
      read({ agent_id: "b", part: "summary" }),
      says("ok"),
      of("a", submits({ status: "completed", summary: "short" })),
      of("b", says("I only talk.")),
    ];
    await onStage(steps, {}, async ({ session }) => {
      await session.sendAndWait({ prompt: "go" });
      const [unknown, behind, blocked] = resultsOf(session.events, "subagents_read");
      expect(unknown).toMatch(/no agent "nobody".*Agents: a, b/s);
      expect(behind).toBe("a has 0 findings, counted from 0; there is none at 7.");
      expect(JSON.parse(blocked ?? "").items).toEqual(["max iterations reached without submit_result"]);
    });
  });
});

/** The coordinator reads every place that its results name, then answers. */
function reads(ids: readonly string[]): HttpStep {
  const places: (Place & { agent_id: string })[] = [];
  const seen = new Set<string>();
  return otherwise((request: ModelRequest) => {
    for (const { role, content } of request.messages) {
      if (role !== "tool" || seen.has(content) || !content.startsWith("{")) continue;
      seen.add(content);
      const said = JSON.parse(content) as Partial<Overview> & Partial<Page>;
      for (const { id, agentId = id, unread = [] } of said.agents ?? [])
        if (ids.includes(agentId)) places.push(...unread.map((place) => ({ ...placeOf(place), agent_id: agentId })));
      if (said.next && said.agent_id) places.unshift({ ...placeOf(said.next), agent_id: said.agent_id });
    }
    const next = places.shift();
    return next === undefined ? says("All read.") : calls(["subagents_read", { ...next }]);
  });
}

function placeOf({ part, from, offset }: Place): Place {
  return { part, from, ...(offset !== undefined && { offset }) };
}

function overviewOf({ session }: Pick<Stage, "session">): Overview {
  return JSON.parse(resultsOf(session.events, "subagents_run")[0] ?? "{}");
}

function pagesOf({ session }: Pick<Stage, "session">): Page[] {
  return resultsOf(session.events, "subagents_read").map((text) => JSON.parse(text) as Page);
}

/** Everything of one worker that the coordinator has seen, in order. */
function readBy(stage: Pick<Stage, "session">, id: string) {
  const pages = pagesOf(stage).filter((page) => page.agent_id === id);
  const part = (name: string) => pages.flatMap((page) => (page.part === name ? page.items : []));
  const shown = resultsOf(stage.session.events, "subagents_run")
    .flatMap((text) => (JSON.parse(text) as Overview).agents)
    .find((agent) => (agent.agentId ?? agent.id) === id)?.findings;
  return { findings: [...(shown ?? []), ...part("findings")], artifacts: part("artifacts"), steps: part("steps") };
}

/** Written out, so that no bound of the code is trusted here. */
function boundedResult(id: string) {
  const { findings, artifacts, steps } = payloadOf(id);
  return {
    findings: findings.slice(0, 20).map((one) => ({ ...one, evidence: `${one.evidence.slice(0, 2000)}…` })),
    artifacts: artifacts.slice(0, 10).map((one) => ({ ...one, content: `${one.content.slice(0, 4000)}…` })),
    steps,
  };
}

/** Results that the model was shown only as a file. */
function sizes({ session }: Pick<Stage, "session">): string[] {
  const all = [...resultsOf(session.events, "subagents_run"), ...resultsOf(session.events, "subagents_read")];
  return all.filter((text) => text.startsWith("Output too large"));
}
