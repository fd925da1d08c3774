import { resolve } from "node:path";
import { CopilotClient, RuntimeConnection } from "@github/copilot-sdk";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { httpStatus, says } from "../../src/testing/index.ts";
import { github } from "../support/github.ts";
import { type ServerStage, serverStage } from "./stage.ts";

const ALICE = "token-of-alice-0123456789";
const BOB = "token-of-bob-0123456789";

let stage: ServerStage;
let people: Awaited<ReturnType<typeof github>>;
const clients: CopilotClient[] = [];
beforeAll(async () => {
  stage = await serverStage();
  people = await github({
    [ALICE]: {
      ...{ login: "alice", copilot_plan: "individual_pro" },
      quota_snapshots: { chat: { entitlement: 100, percent_remaining: 75 } },
    },
    [BOB]: { login: "bob", copilot_plan: "business" },
  });
});
afterAll(async () => {
  await Promise.all(clients.map((client) => client.stop()));
  await people[Symbol.asyncDispose]();
  await stage[Symbol.asyncDispose]();
});

/** A client whose program says where GitHub is, and nothing of models. */
function signedIn(gitHubToken?: string): CopilotClient {
  const { TROUPE_BASE_URL: _, TROUPE_MODEL: __, ...environment } = stage.environment();
  const env = {
    ...environment,
    ...{ COPILOT_API_URL: stage.model.url, COPILOT_DEBUG_GITHUB_API_URL: people.url },
    COPILOT_ALLOW_GET_PROVIDER_ENDPOINT: "true",
  };
  const client = new CopilotClient({
    connection: RuntimeConnection.forStdio({ path: resolve("bin/troupe.js") }),
    ...{ env, baseDirectory: stage.folder.at("home"), workingDirectory: stage.folder.at("work") },
    ...(gitHubToken === undefined ? { useLoggedInUser: false } : { gitHubToken }),
  });
  clients.push(client);
  return client;
}

describe("an account on GitHub, over the contract", () => {
  it("a GitHub account is the client's, or the session's own, with models and quota", async () => {
    const client = signedIn(ALICE);
    await client.start();
    expect(await client.getAuthStatus()).toMatchObject({ isAuthenticated: true, login: "alice", authType: "token" });
    expect((await client.listModels()).map(({ id }) => id)).toContain("faux-model");
    const quota = await client.rpc.account.getQuota({});
    expect(quota.quotaSnapshots.chat).toMatchObject({ entitlementRequests: 100, usedRequests: 25 });
    const session = await client.createSession({ gitHubToken: BOB });
    expect(await session.rpc.gitHubAuth.getStatus()).toMatchObject({ login: "bob", copilotPlan: "business" });
    stage.play(says("hello"));
    expect((await session.sendAndWait("hi"))?.data.content).toBe("hello");
    const last = stage.model.requests.at(-1);
    expect(last).toMatchObject({ path: "/chat/completions", headers: { authorization: `Bearer ${BOB}` } });
    expect(await session.rpc.provider.getEndpoint({})).toMatchObject({
      ...{ type: "openai", wireApi: "completions", baseUrl: stage.model.url, apiKey: BOB },
      headers: { Authorization: `Bearer ${BOB}` },
    });
    await expect(client.createSession({ gitHubToken: "forged-token-1234" })).rejects.toThrow(/401 Unauthorized/);
    await session.disconnect();
  });

  it("a session asks the client before it switches to another model", async () => {
    const client = signedIn(ALICE);
    const asked: unknown[] = [];
    const session = await client.createSession({
      onAutoModeSwitchRequest: (request) => {
        asked.push(request);
        return "yes";
      },
    });
    const body = JSON.stringify({ error: { code: "user_weekly_rate_limited", message: "used up" } });
    stage.play(httpStatus(429, { body, headers: { "retry-after": "1" } }), says("on auto"));
    expect((await session.sendAndWait("hi"))?.data.content).toBe("on auto");
    expect(asked).toMatchObject([{ errorCode: "user_weekly_rate_limited", retryAfterSeconds: 1 }]);
    expect((await session.rpc.model.getCurrent()).modelId).toBe("auto");
    await session.disconnect();
  });

  it("a client can be signed in and out of GitHub while the server runs", async () => {
    const client = signedIn();
    await client.start();
    const { account } = client.rpc;
    expect(await client.getAuthStatus()).toMatchObject({ isAuthenticated: false });
    expect(await account.getCurrentAuth()).toEqual({});
    await account.login({ host: "https://github.com", login: "alice", token: ALICE });
    expect((await account.getCurrentAuth()).authInfo).toMatchObject({ type: "user", login: "alice" });
    expect(await account.getAllUsers()).toMatchObject([{ authInfo: { login: "alice" }, token: ALICE }]);
    const forged = account.login({ host: "https://github.com", login: "eve", token: "forged-token-1" });
    await expect(forged).rejects.toThrow(/401/);
    const authInfo = { type: "user", host: "https://github.com", login: "alice" } as const;
    expect(await account.logout({ authInfo })).toEqual({ hasMoreUsers: false });
    expect(await account.getCurrentAuth()).toEqual({});
  });
});
