/** Whole runtimes against servers that speak a dialect of the chat wire. */
import { join } from "node:path";
import { expect, it } from "vitest";
import { createRuntime, type Runtime } from "../../src/runtime/runtime.ts";
import { httpStatus, modelServer, rawBytes, says, tempFolder } from "../../src/testing/index.ts";
import { dataOf } from "../support/stage.ts";

function runtimeIn(folder: string, baseUrl: string): Runtime {
  const environment = {
    ...{ HOME: folder, TROUPE_NO_DISCOVERY: "1", TROUPE_BASE_URL: baseUrl, TROUPE_MODEL: "m-1" },
  };
  return createRuntime({ environment, home: join(folder, "home") });
}

it("a session that is resumed in another process returns the signatures of its calls", async () => {
  const extra_content = { google: { thought_signature: "c2lnbmF0dXJl" } };
  const call = {
    index: 0,
    id: "c1",
    type: "function",
    function: { name: "list_agents", arguments: "{}" },
    extra_content,
  };
  const frames = [
    { choices: [{ delta: { tool_calls: [call] } }] },
    { choices: [{ delta: {}, finish_reason: "tool_calls" }] },
  ];
  const stream = frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join("");
  await using server = await modelServer({ steps: [rawBytes(stream), says("one"), says("two")] });
  await using folder = await tempFolder();
  const request = { cwd: folder.path, permissions: { allTools: true } };

  const first = runtimeIn(folder.path, server.baseUrl);
  const session = await first.createSession(request);
  expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer: "one" });
  await session.close();
  await first.close();

  const second = runtimeIn(folder.path, server.baseUrl);
  const resumed = await second.resumeSession(session.id, request);
  expect(await resumed.sendAndWait({ prompt: "on" })).toEqual({ kind: "done", answer: "two" });
  await resumed.close();
  await second.close();

  const signed = expect.objectContaining({ tool_calls: [expect.objectContaining({ id: "c1", extra_content })] });
  expect(server.requests.slice(1).map(({ body }) => body)).toMatchObject([
    { messages: expect.arrayContaining([signed]) },
    { messages: expect.arrayContaining([signed]) },
  ]);
});

it("a parameter that a server refused is omitted by all sessions of the process, with one warning", async () => {
  const body = JSON.stringify({ message: { detail: [{ loc: ["body", "stream_options"], msg: "Extra inputs" }] } });
  await using server = await modelServer({ steps: [httpStatus(422, { body }), says("one"), says("two")] });
  await using folder = await tempFolder();
  const runtime = runtimeIn(folder.path, server.baseUrl);
  const warnings = [];
  for (const answer of ["one", "two"]) {
    const session = await runtime.createSession({ cwd: folder.path, model: { streaming: true } });
    expect(await session.sendAndWait({ prompt: "go" })).toEqual({ kind: "done", answer });
    warnings.push(...dataOf(session.events, "session.warning"));
    await session.close();
  }
  await runtime.close();
  expect(warnings.filter(({ warningType }) => warningType === "parameter_refused")).toHaveLength(1);
  const asked = server.requests.map(({ body }) => Object.keys(Object(body)).includes("stream_options"));
  expect(asked).toEqual([true, false, false]);
});
