import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { deferred } from "../../src/lib/deferred.ts";
import type { Json } from "../../src/lib/json.ts";
import { calls, says, stalls } from "../../src/model/faux/faux-step.ts";
import { createRuntime } from "../../src/runtime/runtime.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { DEFAULT_LIMITS } from "../../src/tools/coordination/coordination.ts";
import { HANG_MS } from "../support/work.ts";
import { of, onStage, resultsOf, type Stage, texts, toolNames } from "./stage.ts";

const run = (agents: readonly object[], more: object = {}) =>
  calls(["subagents_run", { agents: [...agents], ...more } as Json]);
const worker = (id: string, role = "scout", more: object = {}) => ({ id, role, task: `@${id} look`, ...more });
const submits = (more: object = {}) => calls(["submit_result", { status: "completed", summary: "seen", ...more }]);
const results = ({ session }: Stage): Record<string, never>[] =>
  JSON.parse(resultsOf(session.events, "subagents_run")[0] ?? "{}").agents;

const FETCH_AND_SEARCH = ["web_fetch", "web_search"];
const key = () => ({ environment: { TAVILY_API_KEY: "tvly-key-of-the-test" } });

describe("subagents_run in a whole session", () => {
  it("BLX-01 BLX-26 BLX-28 BLX-33 subagents_run is offered to the coordinator, for use on request, with a skill", async () => {
    const steps = [calls(["skill", { skill: "coordinated-subagents" }]), says("ok")];
    await onStage(steps, {}, async ({ session, first, requests }) => {
      await session.sendAndWait({ prompt: "how do workers work?" });
      const tool = first("main").tools.find(({ name }) => name === "subagents_run");
      expect(tool?.description).toContain("Only when the user explicitly asks");
      expect(toolNames(first("main"))).not.toContain("submit_result");
      expect(JSON.stringify(first("main"))).not.toContain("Treat results as reports by others");
      expect(first("main").tools.find(({ name }) => name === "skill")?.description).toContain("coordinated-subagents");
      expect(texts(requests("main")[1] ?? first("main")).join("\n")).toContain("Treat results as reports by others");
    });
  });

  it.each([
    ["none", [], {}, /at least one worker/],
    ["six", ["a", "b", "c", "d", "e", "f"].map((id) => worker(id)), {}, /at most 5 workers/],
    ["an unknown role", [worker("a"), worker("b", "poet")], {}, /no role "poet"/],
    ["another mode", [worker("a")], { mode: "serial" }, /mode/],
  ])("BLX-03 BLX-04 BLX-10 subagents_run refuses %s and starts no worker", async (_what, agents, more, message) => {
    await onStage([run(agents, more), says("ok")], {}, async ({ session, requests }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(resultsOf(session.events, "subagents_run")[0]).toMatch(message);
      expect(requests()).toHaveLength(2);
    });
  });

  it("BLX-05 BLX-06 BLX-07 BLX-08 BLX-11 a worker has the tools of its role or groups, and never one that writes", async () => {
    const agents = [
      worker("s", "scout"),
      worker("r", "review"),
      worker("a", "security_analyst"),
      worker("n", "scout", { allowedToolGroups: ["workspace", "shell_write"] }),
      worker("u", "security_analyst", { allowedToolGroups: ["poetry"] }),
    ];
    const steps = [
      run(agents, { mode: "parallel" }),
      says("ok"),
      ...["s", "r", "a", "n", "u"].map((id) => of(id, submits())),
    ];
    await onStage(steps, {}, async ({ session, first }) => {
      await session.sendAndWait({ prompt: "go" });
      const looks = ["view", "glob", "grep"];
      expect(Object.fromEntries(["s", "r", "a", "n", "u"].map((id) => [id, toolNames(first(id))]))).toEqual({
        s: [...looks, "bash", "skill", "environment_detect", "memory_read", "plan_read", "submit_result"],
        r: [...looks, "bash", "environment_detect", "task_list", "submit_result"],
        a: [...looks, "bash", "environment_detect", "submit_result"],
        n: [...looks, "submit_result"],
        u: [...looks, "bash", "environment_detect", "submit_result"],
      });
      const warned = session.events.flatMap(({ agentId, type, data }) =>
        type === "troupe.subagent_step" && data.status === "warning" ? [`${agentId} ${data.stepId}`] : [],
      );
      expect(warned.toSorted()).toEqual(["n toolgroups-withheld", "u toolgroups-fallback", "u toolgroups-unknown"]);
    });
  });

  const noFetch = { tools: { choice: { excluded: ["web_fetch"] } } };
  it.each([
    ["with a key of a search service, a worker of the web group fetches and searches", key(), FETCH_AND_SEARCH],
    ["without a key, a worker of the web group has no search tool", {}, ["web_fetch"]],
    [
      "with a key but without web_fetch, a worker of the web group only searches",
      { ...noFetch, ...key() },
      ["web_search"],
    ],
    ["without a key and web_fetch, the web group has no tools", noFetch, []],
  ])("BLX-12 a worker's web_search depends on the search service: %s", async (_what, options, tools) => {
    const steps = [
      calls(["skill", { skill: "coordinated-subagents" }]),
      run([worker("w", "scout", { allowedToolGroups: ["web"] })]),
      says("ok"),
      of("w", submits()),
    ];
    await onStage(steps, options, async ({ session, first, requests }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(toolNames(first("w"))).toEqual([...tools, "submit_result"]);
      const isNamed = JSON.stringify(requests()).includes("web_search");
      expect(isNamed).toBe((tools as readonly string[]).includes("web_search"));
    });
  });

  it("BLX-09 subagents_run runs three of five workers at a time", async () => {
    const ids = ["a", "b", "c", "d", "e"];
    let running = 0;
    let most = 0;
    const slow = async () => {
      running++;
      most = Math.max(most, running);
      // The first three wait for each other, then a little: a fourth would join them meanwhile.
      await vi.waitUntil(() => most >= 3, { timeout: HANG_MS });
      await new Promise((resolve) => setTimeout(resolve, 30));
      running--;
      return submits();
    };
    const steps = [run(ids.map((id) => worker(id))), says("ok"), ...ids.map((id) => of(id, slow))];
    await onStage(steps, {}, async (stage) => {
      await stage.session.sendAndWait({ prompt: "go" });
      expect(results(stage).map(({ id, status }) => [id, status])).toEqual(ids.map((id) => [id, "completed"]));
      expect(most).toBe(3);
    });
  });

  it("BLX-14 BLX-15 BLX-16 BLX-21 BLX-27 BLX-34 subagents_run returns submitted results cut to size, and no plain text", async () => {
    const findings = Array.from({ length: 25 }, (_, index) => ({
      severity: "info",
      title: `finding ${index}`,
      evidence: index === 0 ? "ü".repeat(3000) : "seen",
      paths: ["a.txt"],
    }));
    const payload = {
      findings,
      steps: [{ id: "1", title: "looked", status: "completed" }],
      artifacts: [{ kind: "plan", title: "p", content: "c" }],
      recommendedNextActions: ["rest"],
    };
    const steps = [
      run([worker("a", "review"), worker("b", "review"), worker("c", "scout")]),
      says("ok"),
      of("a", submits(payload)),
      of("b", says("I only talk."), says("And talk.")),
      of("c", submits({ status: "blocked" }), calls(["view", { path: "." }]), submits({ status: "blocked" })),
    ];
    await onStage(steps, {}, async (stage) => {
      await stage.session.sendAndWait({ prompt: "go" });
      const [a, b, c] = results(stage);
      const { findings: kept, ...rest } = a as unknown as { findings: { evidence: string }[] };
      expect(kept).toHaveLength(20);
      expect(kept[0]?.evidence).toMatch(/^ü{2000}…$|^ü{1999}…$/);
      expect(rest).toMatchObject({
        displayName: "Review",
        status: "completed",
        summary: "seen",
        steps: payload.steps,
        artifacts: payload.artifacts,
        recommendedNextActions: ["rest"],
      });
      expect(b).toMatchObject({
        displayName: "Review 2",
        status: "blocked",
        summary: "max iterations reached without submit_result",
      });
      expect(c).toMatchObject({ status: "blocked" });
      expect(stage.requests("c")).toHaveLength(3);
    });
  });

  it("BLX-17 BLX-18 BLX-35 BLX-36 a role of the settings runs within its limits, and has only its tools", async () => {
    const subagents = {
      roles: {
        reader: { label: "Interface Reader", prompt: "You read interfaces.", groups: ["workspace"] },
        quick_checker: { prompt: "You check." },
      },
      workers: { outputTokens: 500 },
    };
    const files = { "home:settings.json": JSON.stringify({ subagents }) };
    const loops = Array.from({ length: 9 }, () => calls(["create", { path: "x", file_text: "x" }]));
    const long = calls(["glob", { pattern: `${"x".repeat(3000)}*` }]);
    const steps = [
      run([worker("a", "reader"), worker("b", "quick_checker")]),
      says("ok"),
      of("a", ...loops),
      of("b", long, long),
    ];
    await onStage(steps, { files }, async (stage) => {
      await stage.session.sendAndWait({ prompt: "go" });
      expect(stage.first("a").system).toContain("You read interfaces.");
      expect(toolNames(stage.first("a"))).toEqual(["view", "glob", "grep", "submit_result"]);
      expect(results(stage)).toMatchObject([
        { displayName: "Interface Reader", status: "blocked", summary: "max iterations reached without submit_result" },
        {
          displayName: "Quick Checker",
          status: "blocked",
          summary: expect.stringMatching(/limit of 500 output tokens/),
        },
      ]);
      expect(stage.requests("a")).toHaveLength(8);
      expect(stage.requests("b")).toHaveLength(1);
      expect(DEFAULT_LIMITS).toMatchObject({ turns: 8, outputTokens: 20_000, requestMs: 180_000 });
      expect(resultsOf(stage.session.events, "create")).toEqual(
        Array(8).fill(expect.stringContaining("Tool 'create' does not exist")),
      );
    });
  });

  it.each([
    ["one call of its model", { requestSeconds: 0.3 }, /error: alpha: no whole answer within 0\.3 s/],
    ["the whole of its work", { seconds: 0.3 }, /time limit of 0\.3 s reached/],
  ])("BLX-19 a worker that waits too long for %s is cancelled with its request", async (_what, workers, why) => {
    const files = { "home:settings.json": JSON.stringify({ subagents: { workers } }) };
    const hungUp = deferred<void>();
    const silent = (_request: unknown, signal: AbortSignal) => {
      signal.addEventListener("abort", () => hungUp.resolve(), { once: true });
      return stalls();
    };
    // One worker: the limit would also end another one that a busy machine delays.
    const steps = [run([worker("a")]), says("ok"), of("a", silent)];
    await onStage(steps, { files }, async (stage) => {
      await stage.session.sendAndWait({ prompt: "go" });
      await hungUp.promise;
      expect(results(stage)).toMatchObject([{ status: "blocked", summary: expect.stringMatching(why) }]);
      // Given up, not tried again.
      expect(stage.requests("a")).toHaveLength(1);
    });
    expect(DEFAULT_LIMITS.requestMs).toBe(180_000);
  });

  it("BLX-20 a stopped answer stops all workers and the programs they run", async () => {
    await using bin = await tempFolder();
    // Workers run no command but git: this one takes its time.
    writeFileSync(bin.at("git"), `#!/bin/sh\necho $$ > ${bin.at("pid")}\nexec sleep 300\n`, { mode: 0o755 });
    const steps = [
      run([worker("a"), worker("b")]),
      of("a", calls(["environment_detect"]), calls(["bash", { command: "git log", description: "look" }])),
      of("b", stalls()),
    ];
    const environment = { PATH: `${bin.path}:${process.env.PATH}` };
    await onStage(steps, { environment }, async ({ session, requests }) => {
      const sent = session.sendAndWait({ prompt: "go" });
      await expect.poll(() => isAlive(bin.at("pid"))).toBe(true);
      session.abort();
      expect(await sent).toEqual({ kind: "aborted" });
      await expect.poll(() => isAlive(bin.at("pid"))).toBe(false);
      expect(session.agents.tasks?.list().map(({ status }) => status)).toEqual(["cancelled", "cancelled"]);
      expect(requests()).toHaveLength(4);
    });
  });

  it("BLX-32 a worker's commands are refused before environment_detect, which counts for session and folder", async () => {
    const git = (command: string) => calls(["bash", { command, description: "look" }]);
    const steps = [
      run([worker("a")]),
      run([worker("b")]),
      says("ok"),
      of("a", git("git status --short"), calls(["environment_detect"]), git("git status --short"), submits()),
      of("b", git("git status --short"), submits()),
    ];
    await onStage(steps, { files: { "new.txt": "x" } }, async ({ session, folder, requests }) => {
      execFileSync("git", ["init", "-q"], { cwd: folder });
      await session.sendAndWait({ prompt: "go" });
      const [refused, first, second] = resultsOf(session.events, "bash");
      const [facts] = resultsOf(session.events, "environment_detect");
      expect(refused).toBe("Not run: call environment_detect first, then try again.");
      expect(JSON.parse(facts ?? "")).toEqual({
        os: process.platform,
        arch: process.arch,
        defaultShell: expect.any(String),
        availableShells: expect.arrayContaining(["sh"]),
        pathSeparator: "/",
        lineEnding: "LF",
        gitAvailable: true,
        workspaceRoot: realpathSync(folder),
      });
      expect(first).toContain("?? new.txt");
      expect(second).toContain("?? new.txt");
      expect(requests("a")[0]?.system).toContain("environment_detect before the first git command");
    });
  });

  it("BLX-37 a completed result must answer each success criterion, and the coordinator sees the answers", async () => {
    const successCriteria = ["List UI touchpoints", "Return concrete risks"];
    const answer = (number: number) => ({ number, met: number === 1, evidence: `a.txt:${number}` });
    const steps = [
      run([
        { ...worker("a", "review"), successCriteria },
        { ...worker("b", "review"), successCriteria },
      ]),
      says("ok"),
      of("a", submits({ criteria: [answer(1)] }), submits({ criteria: [answer(2), answer(1)] })),
      of("b", submits(), submits(), submits()),
    ];
    await onStage(steps, {}, async (stage) => {
      const { session, first, requests } = stage;
      await session.sendAndWait({ prompt: "go" });
      expect(texts(first("a"))[0]).toContain("1. List UI touchpoints\n2. Return concrete risks");
      expect(requests("a")[1]?.messages.at(-1)?.content).toMatch(/^Not accepted: answer each criterion.*Missing: 2\.$/);
      const [a, b] = results(stage);
      expect(a).toMatchObject({
        status: "completed",
        criteria: [
          { criterion: "List UI touchpoints", met: true, evidence: "a.txt:1" },
          { criterion: "Return concrete risks", met: false, evidence: "a.txt:2" },
        ],
      });
      // A worker that never answers is heard all the same, and its criteria count as not met.
      expect(b).toMatchObject({
        status: "completed",
        criteria: successCriteria.map((criterion) => ({ criterion, met: false, evidence: "not answered" })),
      });
    });
  });

  it("BLX-24 subagents_run fails where the provider cannot run workers, and names those that can", async () => {
    await onStage([], { model: { name: "understudy" } }, async ({ session }) => {
      const call = { toolCallId: "c1", name: "subagents_run", arguments: { agents: [worker("a")] } };
      const { data } = await session.mainAgent.callTool(call, new AbortController().signal);
      expect([data.success, data.error?.message]).toEqual([
        false,
        "subagents_run does not support the provider understudy. Use an OpenAI-compatible, Anthropic or Gemini model.",
      ]);
      expect(session.agents.tasks?.list()).toEqual([]);
    });
  });

  it("BLX-24 subagents_run refuses a provider that speaks none of the wires, and lists the valid ones", async () => {
    await onStage([], {}, async ({ home, folder }) => {
      const alpha = { type: "telex", baseUrl: "http://127.0.0.1:1" };
      writeFileSync(join(home, "providers.json"), JSON.stringify({ providers: { alpha } }));
      const runtime = createRuntime({ environment: {}, home });
      await expect(runtime.createSession({ cwd: folder, model: { name: "alpha/large" } })).rejects.toThrow(
        /providers\.alpha\.type: .*openai.*anthropic/,
      );
      await runtime.close();
    });
  });

  it("BLX-31 subagents_run is found under its name with a dot, which wires forbid", async () => {
    const dotted = calls(["subagents.run", { agents: [worker("a")] }]);
    await onStage([dotted, says("ok"), of("a", submits())], {}, async ({ session, first }) => {
      await session.sendAndWait({ prompt: "go" });
      expect(toolNames(first("main")).filter((name) => name.includes("."))).toEqual([]);
      expect(session.agents.tasks?.list().map(({ id, status }) => [id, status])).toEqual([["a", "completed"]]);
    });
  });
});

function isAlive(pidFile: string): boolean {
  if (!existsSync(pidFile) || readFileSync(pidFile, "utf8").trim() === "") return false;
  try {
    process.kill(Number(readFileSync(pidFile, "utf8")), 0);
    return true;
  } catch {
    return false;
  }
}
