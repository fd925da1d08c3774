import { approveAll, type GitHubTelemetryNotification } from "@github/copilot-sdk";
import { beforeEach, expect, it } from "vitest";
import { calls, says } from "../../src/testing/index.ts";
import { shared } from "../support/second-look.ts";
import { rawClient } from "./raw-client.ts";
import { type ServerStage, serverStage } from "./stage.ts";

let stage: ServerStage;
let told: GitHubTelemetryNotification[] = [];
shared(
  async () => {
    stage = await serverStage({ transport: "tcp", onGitHubTelemetry: (one) => void told.push(one) });
    await stage.client.start();
  },
  () => stage[Symbol.asyncDispose](),
);
beforeEach(() => {
  told = [];
});

it("a client that requests telemetry gets figures without content, and no other client does", async () => {
  const other = await rawClient(Reflect.get(stage.client, "runtimePort"));
  await other.ask("connect", { token: Reflect.get(stage.client, "effectiveConnectionToken") });
  const session = await stage.client.createSession({
    onPermissionRequest: approveAll,
    tools: [{ name: "secret_tool", skipPermission: true, handler: () => "private result" }],
  });
  await other.ask("session.resume", { sessionId: session.sessionId });
  const path = stage.folder.at("work/a.txt");
  stage.play(
    calls(["view", { path }], ["secret_tool", { word: "private argument" }], ["private_guess"]),
    says("private answer"),
  );
  await session.sendAndWait("private prompt");
  await session.disconnect();
  expect(told.map(({ event }) => event.kind)).toEqual([
    ...["session_start", "session_resume", "model_change", "user_message"],
    ...["get_completion_with_tools_turn", ...Array(3).fill("tool_call_executed"), "get_completion_with_tools_turn"],
  ]);
  const [start] = told;
  expect(start).toMatchObject({
    ...{ sessionId: session.sessionId, restricted: false },
    event: { session_id: session.sessionId, properties: { model: "faux-model", is_git_repo: "false" } },
  });
  const tools = told.filter(({ event }) => event.kind === "tool_call_executed").map(({ event }) => event);
  expect(tools.map(({ properties: { tool_name, success } }) => [tool_name, success]).sort()).toEqual([
    ["(other)", "false"],
    ["(other)", "true"],
    ["view", "true"],
  ]);
  expect(tools.every(({ metrics: { duration_ms: duration = -1 } }) => duration >= 0)).toBe(true);
  expect(JSON.stringify(told)).not.toMatch(/private|secret|a\.txt|home/);
  expect(other.heard.some(({ method }) => method === "session.event")).toBe(true);
  expect(other.heard.filter(({ method }) => method === "gitHubTelemetry.event")).toEqual([]);
  other.socket.destroy();
});

it("a session that opts out, or has its own provider, sends no telemetry to GitHub clients", async () => {
  const { baseUrl } = stage.model;
  for (const option of [{ enableSessionTelemetry: false }, { model: "mine", provider: { baseUrl } }]) {
    const session = await stage.client.createSession(option);
    stage.play(says("hello"));
    await session.sendAndWait("hi");
    await session.disconnect();
  }
  expect(told).toEqual([]);
});
