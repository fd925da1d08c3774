/** The process that a session leaves behind when its client or its editor closes it. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { approveAll, type CopilotClient, RuntimeConnection } from "@github/copilot-sdk";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { HttpPlay } from "../../src/testing/index.ts";
import { calls, says, stalls } from "../../src/testing/index.ts";
import { type ServerStage, serverStage } from "./stage.ts";

const path = resolve("bin/troupe.js");
const talk = ["one", "two", "three"].map((text) => says(text));
const prompts = ["first", "second", "the very last word"];

interface Recorded {
  readonly type: string;
  readonly data: Record<string, unknown>;
}

let stage: ServerStage;
let left: number[] = [];
beforeEach(async () => {
  stage = await serverStage();
});
afterEach(async () => {
  for (const pid of left) if (isAlive(pid)) process.kill(pid, "SIGKILL");
  left = [];
  await stage[Symbol.asyncDispose]();
});

const environment = () => ({ ...stage.environment(), COPILOT_SUBCONSCIOUS: "on", SIDEKICK_AGENTS: "off" });
const states = () => join(stage.folder.at("home"), "session-state");
const eventsOf = (id: string): Recorded[] =>
  readFileSync(join(states(), id, "events.jsonl"), "utf8")
    .split("\n")
    .flatMap((line) => (line === "" ? [] : [JSON.parse(line) as Recorded]));
const outcomesOf = (id: string) =>
  eventsOf(id).flatMap(({ type, data }) => (type === "troupe.shutdown_consolidation" ? [data] : []));
const others = (id: string): string[] => readdirSync(states()).filter((one) => one !== id);
const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

/** Sends the messages over the published SDK, closes the session and stops the server. Returns the session's id. */
async function conversation(messages: readonly string[], steps: readonly HttpPlay[]): Promise<string> {
  stage.play(...steps);
  const client: CopilotClient = stage.newClient({
    connection: RuntimeConnection.forStdio({ path, env: environment() }),
  });
  const session = await client.createSession({ onPermissionRequest: approveAll });
  for (const prompt of messages) await session.sendAndWait({ prompt });
  await session.disconnect();
  expect(await client.stop()).toEqual([]);
  return session.sessionId;
}

describe("a session that a client closes", () => {
  it("MEM-39 MEM-40 MEM-42 MEM-43 MEM-44 ORC-81 a closed session of three messages leaves a process behind", async () => {
    const id = await conversation(prompts, [...talk, stalls()]);
    const [outcome] = outcomesOf(id);
    const pid = Number(outcome?.pid);
    left.push(pid);
    expect(outcome).toEqual({ outcome: "spawned", pid: expect.any(Number) });
    // The server has ended, and the process has still to get its answer.
    await expect.poll(() => answersAsked().length).toBe(4);
    expect(isAlive(pid)).toBe(true);
    expect(JSON.stringify(answersAsked()[3]?.body)).toMatch(/the very last word[\s\S]*three/);
    const [child = ""] = others(id);
    expect(eventsOf(child)[0]?.data).toMatchObject({ detachedFromSpawningParentSessionId: id });
    if (process.platform !== "linux") return;
    const [, , ...args] = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
    expect(args.slice(0, 3)).toEqual(["--agent", "rem-agent", "-p"]);
    expect(args.slice(4)).toEqual(["--yolo", "--silent", "--model", expect.stringContaining("faux-model")]);
    const seen = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
    expect(seen).toEqual(
      expect.arrayContaining([`TROUPE_DETACHED_PARENT_SESSION_ID=${id}`, `TROUPE_ENGAGEMENT_ID=${id}`]),
    );
  });

  it("MEM-41 MEM-44 the consolidation process writes to the board, ends, and leaves no other behind", async () => {
    const add = { command: "add", name: "learned", description: "d", context: "c" };
    const id = await conversation(prompts, [...talk, calls(["context_board", add]), says("done")]);
    await expect
      .poll(() => others(id).flatMap((one) => eventsOf(one).map(({ type }) => type)))
      .toContain("session.shutdown");
    const [child = ""] = others(id);
    expect(others(id)).toEqual([child]);
    const applied = eventsOf(child).filter(({ type }) => type === "troupe.consolidation");
    expect(applied).toMatchObject([{ data: { outcome: "applied", added: ["learned"] } }]);
    expect(outcomesOf(child)).toEqual([]);
    await expect.poll(() => isAlive(Number(outcomesOf(id)[0]?.pid))).toBe(false);
  });

  it("MEM-39 MEM-43 a closed session of two messages is not consolidated, and says so", async () => {
    const id = await conversation(prompts.slice(0, 2), talk.slice(0, 2));
    expect(outcomesOf(id)).toEqual([{ outcome: "below_min_turns" }]);
    expect(others(id)).toEqual([]);
  });

  it("MEM-39 a deleted session leaves no consolidation behind", async () => {
    stage.play(...talk);
    const client = stage.newClient({ connection: RuntimeConnection.forStdio({ path, env: environment() }) });
    const session = await client.createSession({ onPermissionRequest: approveAll });
    for (const prompt of prompts) await session.sendAndWait({ prompt });
    await client.deleteSession(session.sessionId);
    await client.stop();
    expect(existsSync(states()) ? readdirSync(states()) : []).toEqual([]);
  });
});

describe("a session of an editor", () => {
  it("MEM-39 MEM-42 ORC-81 an editor's session leaves a process behind when the editor disconnects", async () => {
    stage.play(...talk, stalls());
    const home = { TROUPE_HOME: stage.folder.at("home"), HOME: stage.folder.at("home") };
    const agent = spawn(process.execPath, [path, "--acp"], {
      cwd: stage.folder.at("work"),
      env: { ...environment(), ...home },
      stdio: ["pipe", "pipe", "inherit"],
    });
    const ask = asking(agent);
    await ask("initialize", { protocolVersion: 1, clientCapabilities: {} });
    const { sessionId } = await ask("session/new", { cwd: stage.folder.at("work"), mcpServers: [] });
    for (const text of prompts) await ask("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
    const ended = new Promise((done) => agent.once("exit", done));
    agent.stdin?.end();
    expect(await ended).toBe(0);
    const [outcome] = outcomesOf(String(sessionId));
    left.push(Number(outcome?.pid));
    expect(outcome).toEqual({ outcome: "spawned", pid: expect.any(Number) });
    await expect.poll(() => answersAsked().length).toBe(4);
    expect(isAlive(Number(outcome?.pid))).toBe(true);
  });
});

/** The requests for an answer. An editor's sessions also ask for the list of models. */
const answersAsked = () => stage.model.requests.filter(({ method }) => method === "POST");

/** Sends requests as an editor does, one JSON message a line. */
function asking(agent: ChildProcess) {
  const waiting = new Map<number, (result: Record<string, unknown>) => void>();
  const lines = createInterface({ input: agent.stdout as NodeJS.ReadableStream });
  lines.on("line", (line) => {
    const { id, result } = JSON.parse(line);
    waiting.get(id)?.(result);
  });
  let count = 0;
  return (method: string, params: object) =>
    new Promise<Record<string, unknown>>((done) => {
      waiting.set(++count, done);
      agent.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", id: count, method, params })}\n`);
    });
}
