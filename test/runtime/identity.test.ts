import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { calls } from "../../src/model/faux/faux-step.ts";
import { createRuntime, type Runtime, type RuntimeOptions } from "../../src/runtime/runtime.ts";
import type { SessionRequest } from "../../src/runtime/session-request.ts";
import type { Session } from "../../src/session/session.ts";
import { type HttpStep, httpStatus, type ModelServer, modelServer, says, tempFolder } from "../../src/testing/index.ts";
import { github } from "../support/github.ts";
import { dataOf } from "../support/stage.ts";

interface Scene {
  readonly models: ModelServer;
  readonly asked: readonly string[];
  readonly runtime: Runtime;
  open(request?: Partial<SessionRequest>): Promise<Session>;
}

const ALICE = "token-of-alice-0123456789";
const BOB = "token-of-bob-0123456789";

async function scene(
  given: {
    steps?: readonly HttpStep[];
    environment?: object;
    request?: RuntimeOptions["github"] | "none";
    api?: "account";
  },
  act: (scene: Scene) => Promise<void>,
): Promise<void> {
  const { steps = [], environment = {}, request = { tokenVariable: "PROGRAM_TOKEN" }, api } = given;
  await using models = await modelServer({ steps, models: ["first", "second"] });
  const users = {
    [ALICE]: {
      ...{ login: "alice", copilot_plan: "individual_pro", endpoints: { api: models.url } },
      quota_snapshots: {
        chat: {
          ...{ entitlement: 100, percent_remaining: 75, unlimited: false },
          ...{ overage_count: 2, overage_permitted: true, timestamp_utc: "2026-04-30T00:00:00Z" },
        },
      },
    },
    [BOB]: { login: "bob", copilot_plan: "business", endpoints: { api: models.url } },
  };
  await using people = await github(users);
  await using folder = await tempFolder();
  const runtime = createRuntime({
    environment: {
      ...{ HOME: folder.path, TROUPE_NO_DISCOVERY: "1", COPILOT_DEBUG_GITHUB_API_URL: people.url },
      ...(api !== "account" && { COPILOT_API_URL: models.url }),
      ...environment,
    },
    home: join(folder.path, "home"),
    ...(request !== "none" && { github: request }),
  });
  const sessions: Session[] = [];
  try {
    await act({
      ...{ models, runtime, asked: people.asked },
      async open(request = {}) {
        const session = await runtime.createSession({ cwd: folder.path, ...request });
        sessions.push(session);
        return session;
      },
    });
  } finally {
    for (const session of sessions) await session.close();
    await runtime.close();
  }
}

describe("an identity on GitHub", () => {
  it.each([
    ["the plan of the session's account, business, allows 16 agents at once", BOB, {}, 16],
    ["individual_pro allows 4", ALICE, {}, 4],
    ["the environment outranks the plan", BOB, { COPILOT_SUBAGENT_MAX_CONCURRENT: "7" }, 7],
  ])("ORC-10 the plan of a GitHub identity sets the limit of agents: %s", (_what, githubToken, environment, cap) => {
    const look = { description: "look", prompt: "look around", agent_type: "explore", name: "a" };
    const steps = [calls(["task", look]), says("found"), says("ok")];
    return scene({ steps, environment }, async ({ open }) => {
      const session = await open({ client: { githubToken } });
      expect(await session.sendAndWait({ prompt: "hi" })).toMatchObject({ kind: "done", answer: "ok" });
      expect(session.agents.limits?.maxConcurrency).toBe(cap);
    });
  });

  it("a GitHub identity is not read unless a program requests it, whatever the environment contains", () =>
    scene({ request: "none", environment: { GH_TOKEN: ALICE } }, async ({ open, models, asked, runtime }) => {
      const session = await open();
      expect(session.mainAgent.model.model).toBe("understudy");
      expect(session.workspace.services?.identity).toBeUndefined();
      expect(await runtime.github.open()).toBeUndefined();
      expect([asked, models.requests]).toEqual([[], []]);
    }));

  it("a GitHub identity opens a session while the list of models is unavailable, and finds the model later", () =>
    scene({ steps: [says("hello")], environment: { PROGRAM_TOKEN: ALICE } }, async ({ open, models }) => {
      let outOfOrder = true;
      const session = await open({
        model: {
          fetch: (url, init) => (outOfOrder ? Promise.resolve(new Response("", { status: 503 })) : fetch(url, init)),
        },
      });
      const warned = dataOf(session.events, "session.warning").map(({ message }) => message);
      expect(warned).toEqual([
        expect.stringMatching(/\/models answered 503.* requested again with the next message\.$/),
      ]);
      const refused = await session.sendAndWait({ prompt: "hi" });
      expect(refused).toMatchObject({ kind: "error", error: { message: expect.stringContaining("answered 503") } });
      outOfOrder = false;
      expect(await session.sendAndWait({ prompt: "hi" })).toMatchObject({ kind: "done", answer: "hello" });
      expect(session.mainAgent.model.model).toBe("first");
      expect(models.requests.at(-1)).toMatchObject({ path: "/chat/completions" });
    }));

  it("a GitHub identity is not queried while no GitHub address is configured", () =>
    scene(
      { environment: { COPILOT_API_URL: "", COPILOT_DEBUG_GITHUB_API_URL: "", GH_TOKEN: ALICE } },
      async ({ open, models, asked, runtime }) => {
        const session = await open({ client: { githubToken: BOB } });
        expect(session.mainAgent.model.model).toBe("understudy");
        expect(await (await runtime.github.open())?.status()).toMatchObject({ isAuthenticated: false });
        expect([asked, models.requests]).toEqual([[], []]);
      },
    ));

  it.each([
    ["the program's token", { PROGRAM_TOKEN: ALICE, GH_TOKEN: BOB }, { login: "alice", authType: "token" }],
    ["a token in the environment", { GITHUB_TOKEN: BOB }, { login: "bob", authType: "env" }],
  ])("a GitHub identity is taken from %s", (_, environment, who) =>
    scene({ environment }, async ({ runtime }) => {
      const github = await runtime.github.open();
      expect(await github?.status()).toMatchObject({ isAuthenticated: true, host: "https://github.com", ...who });
    }),
  );

  it("a GitHub identity is not taken from the environment when the program forbids that", () =>
    scene({ environment: { GH_TOKEN: ALICE }, request: { ambient: false } }, async ({ runtime, asked }) => {
      const status = { isAuthenticated: false, statusMessage: "Not authenticated" };
      expect(await (await runtime.github.open())?.status()).toEqual(status);
      expect(asked).toEqual([]);
    }));

  it("a GitHub identity may be different in each session", () =>
    scene({ environment: { GH_TOKEN: ALICE } }, async ({ open, asked }) => {
      const [own, usual] = [await open({ client: { githubToken: BOB } }), await open()];
      expect(await own.workspace.services?.identity?.status()).toMatchObject({ login: "bob", plan: "business" });
      expect(await usual.workspace.services?.identity?.status()).toMatchObject({
        login: "alice",
        plan: "individual_pro",
      });
      expect(await own.workspace.services?.identity?.status()).toMatchObject({ login: "bob" });
      expect(asked).toEqual([`GET /copilot_internal/user ${BOB}`, `GET /copilot_internal/user ${ALICE}`]);
    }));

  it("a GitHub identity with a refused token opens no session", () =>
    scene({ environment: { GH_TOKEN: ALICE } }, async ({ open, runtime }) => {
      await expect(open({ client: { githubToken: "forged-token-123" } })).rejects.toThrow(
        /401 Unauthorized: Bad credentials/,
      );
      expect(await runtime.store.list()).toEqual([]);
    }));

  it("a GitHub identity has a quota in the form of the wire contract", () =>
    scene({}, async ({ runtime }) => {
      const github = await runtime.github.open();
      expect((await github?.user(ALICE))?.quota).toEqual({
        chat: {
          isUnlimitedEntitlement: false,
          entitlementRequests: 100,
          usedRequests: 25,
          remainingPercentage: 75,
          overage: 2,
          usageAllowedWithExhaustedQuota: true,
          overageAllowedWithExhaustedQuota: true,
          resetDate: "2026-04-30T00:00:00Z",
        },
      });
    }));
});

describe("models of GitHub", () => {
  it.each([undefined, "account"] as const)(
    "models of GitHub are requested from the address of the environment or the account (%s)",
    (api) =>
      scene(
        { steps: [says("hi"), says("ho")], environment: { PROGRAM_TOKEN: ALICE }, ...(api && { api }) },
        async ({ open, models }) => {
          const session = await open({ client: { name: "my-program" } });
          expect(session.mainAgent.model).toMatchObject({ providerId: "github", model: "first", id: "first" });
          await session.sendAndWait({ prompt: "hello" });
          await session.mainAgent.selection?.select("second");
          await session.sendAndWait({ prompt: "hello" });
          expect(models.requests).toMatchObject([
            { method: "GET", path: "/models", headers: { authorization: `Bearer ${ALICE}` } },
            { path: "/chat/completions", body: { model: "first" }, headers: { authorization: `Bearer ${ALICE}` } },
            { path: "/chat/completions", body: { model: "second" } },
          ]);
        },
      ),
  );

  it("models of GitHub are requested once, and separately for each token", () =>
    scene({ environment: { PROGRAM_TOKEN: ALICE } }, async ({ open, models }) => {
      await Promise.all([open(), open(), open({ client: { githubToken: BOB } })]);
      expect(models.requests).toHaveLength(2);
    }));

  it("models of GitHub are not used when the user has chosen an address or a model", () =>
    scene(
      { environment: { PROGRAM_TOKEN: ALICE, TROUPE_BASE_URL: "http://127.0.0.1:9/v1", TROUPE_MODEL: "mine" } },
      async ({ open }) => {
        expect((await open()).mainAgent.model).toMatchObject({ providerId: "custom", model: "mine" });
        expect((await open({ model: { name: "github/second" } })).mainAgent.model).toMatchObject({
          providerId: "github",
        });
      },
    ));

  it("models of GitHub are not requested by a session that has a provider for everything", () =>
    scene({ environment: { PROGRAM_TOKEN: ALICE } }, async ({ open, models }) => {
      await open({ model: { name: "m", providers: { provider: { baseUrl: models.baseUrl } } } });
      expect(models.requests).toEqual([]);
    }));

  it("models of GitHub are requested through the program when it carries the session's requests", () =>
    scene({ steps: [says("hi")], environment: { PROGRAM_TOKEN: ALICE } }, async ({ open }) => {
      const carried: string[] = [];
      const session = await open({
        model: {
          fetch: (url, { origin, ...init }) => {
            carried.push(`${new URL(url).pathname} ${origin?.interactionType}`);
            return fetch(url, init);
          },
        },
      });
      await session.sendAndWait({ prompt: "hello" });
      expect(carried).toEqual(["/models undefined", "/chat/completions conversation-agent"]);
    }));

  it("models of GitHub are the same after a resume, and others when no account is signed in any more", () =>
    scene({ steps: [says("hi")], environment: { PROGRAM_TOKEN: ALICE } }, async ({ open, runtime }) => {
      const session = await open({ model: { name: "second" } });
      await session.sendAndWait({ prompt: "hello" });
      await session.close();
      const again = await runtime.resumeSession(session.id, { cwd: session.workspace.cwd });
      expect(again.mainAgent.model).toMatchObject({ providerId: "github", model: "second" });
      await again.close();
    }));
});

describe("a used-up quota of a model", () => {
  const body = JSON.stringify({ error: { code: "user_weekly_rate_limited", message: "used up" } });
  const limited = httpStatus(429, { body, headers: { "retry-after": "1" } });
  const environment = { PROGRAM_TOKEN: ALICE };

  it("a used-up quota leads to GitHub's choice of a model if the user agrees", () =>
    scene({ steps: [limited, says("hi")], environment }, async ({ open, models }) => {
      const session = await open();
      const asked: unknown[] = [];
      session.requests.attach({
        kinds: ["auto_mode_switch"],
        handle: async (request) => {
          asked.push(request);
          return { response: "yes" as const };
        },
      });
      expect(await session.sendAndWait({ prompt: "hello" })).toEqual({ kind: "done", answer: "hi" });
      expect(asked).toMatchObject([{ errorCode: "user_weekly_rate_limited", retryAfterSeconds: 1 }]);
      const sent = models.requests.filter(({ request }) => request);
      expect(sent.map(({ request }) => request?.model)).toEqual(["first", "auto"]);
      expect(dataOf(session.events, "session.model_change").at(-1)).toEqual({
        ...{ newModel: "auto", previousModel: "first", cause: "rate_limit_auto_switch", source: "automatic" },
      });
      expect(dataOf(session.events, "user.message")).toHaveLength(1);
    }));

  it.each([
    ["nobody can be asked", undefined],
    ["the person says no", { response: "no" as const }],
  ])("a used-up quota is an error, at once, where %s", (_, answer) =>
    scene({ steps: [limited], environment }, async ({ open, models }) => {
      const session = await open();
      if (answer) session.requests.attach({ kinds: ["auto_mode_switch"], handle: async () => answer });
      expect(await session.sendAndWait({ prompt: "hello" })).toMatchObject({ kind: "error" });
      expect(models.requests.filter(({ request }) => request)).toHaveLength(1);
      expect(dataOf(session.events, "session.error")).toMatchObject([
        { errorCode: "user_weekly_rate_limited", eligibleForAutoSwitch: true, statusCode: 429 },
      ]);
    }),
  );

  it('a used-up quota causes one question when the answer is "always"', () =>
    scene({ steps: [limited, says("one"), limited, says("two")], environment }, async ({ open }) => {
      const session = await open();
      let asked = 0;
      session.requests.attach({
        kinds: ["auto_mode_switch"],
        handle: async () => {
          asked++;
          return { response: "yes_always" as const };
        },
      });
      await session.sendAndWait({ prompt: "hello" });
      await session.mainAgent.selection?.select("second");
      expect(await session.sendAndWait({ prompt: "hello" })).toEqual({ kind: "done", answer: "two" });
      expect(asked).toBe(1);
    }));

  it("a used-up quota leads to a switch only at GitHub: another provider's limit is an error", () =>
    scene({ steps: [limited], environment }, async ({ open, models }) => {
      const session = await open({ model: { name: "m", providers: { provider: { baseUrl: models.baseUrl } } } });
      session.requests.attach({ kinds: ["auto_mode_switch"], handle: async () => ({ response: "yes" as const }) });
      expect(await session.sendAndWait({ prompt: "hello" })).toMatchObject({ kind: "error" });
    }));
});
