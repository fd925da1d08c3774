import { type ChildProcess, type StdioOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { approveAll } from "@github/copilot-sdk";
import { expect, it, onTestFinished } from "vitest";
import { calls, says } from "../../src/testing/index.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { serverStage } from "./stage.ts";

it("a server on a port writes its token for its user only, and removes it when it is stopped", async () => {
  await using folder = await tempFolder({ "work/a.txt": "" });
  const env = { PATH: process.env.PATH, HOME: folder.at("home"), TROUPE_HOME: folder.at("state") };
  const child = spawn(process.execPath, [resolve("bin/troupe.js"), "--headless"], { cwd: folder.at("work"), env });
  try {
    const port = await portOf(child);
    expect(existsSync(folder.at(`state/server/${port}.token`))).toBe(true);
    child.kill("SIGINT");
    await once(child, "exit");
    expect(readdirSync(folder.at("state/server"))).toEqual([]);
  } finally {
    child.kill("SIGKILL");
  }
});

it("a server on a port refuses a token that can be guessed, and says what to do", async () => {
  await using folder = await tempFolder({ "work/a.txt": "" });
  const start = (token: string, stdout: "pipe" | "ignore") => {
    const env = { PATH: process.env.PATH, HOME: folder.at("home"), COPILOT_CONNECTION_TOKEN: token };
    const stdio: StdioOptions = ["ignore", stdout, "pipe"];
    return spawn(process.execPath, [resolve("bin/troupe.js"), "--headless"], { cwd: folder.at("work"), env, stdio });
  };
  const refused = async (token: string, stdout: "pipe" | "ignore"): Promise<[number, string]> => {
    const child = start(token, stdout);
    onTestFinished(() => void child.kill("SIGKILL"));
    const [text, [code]] = await Promise.all([textOf(child), once(child, "exit")]);
    return [code, text];
  };
  const words = /COPILOT_CONNECTION_TOKEN is too weak: it needs at least 16 characters.*openssl rand/s;
  expect(await refused("abc", "pipe")).toEqual([2, expect.stringMatching(words)]);
  expect(await refused("fifteen-chars-1", "ignore")).toEqual([2, expect.stringMatching(words)]);
  expect(await refused("correct-horse-word", "ignore")).toEqual([2, expect.stringMatching(words)]);
  expect(existsSync(folder.at("home/.troupe/server"))).toBe(false);
  // A program that owns its server chooses the token itself; some choose a short one.
  const owned = start("right-token", "pipe");
  onTestFinished(() => void owned.kill("SIGKILL"));
  const said = textOf(owned);
  expect(Number(await portOf(owned))).toBeGreaterThan(0);
  owned.kill("SIGINT");
  expect(await said).toContain("warning: COPILOT_CONNECTION_TOKEN is weak");
});

it("the token of a server is masked in everything that its sessions say and store", async () => {
  await using stage = await serverStage();
  const client = stage.newClient({ transport: "tcp" });
  await client.start();
  const token = String(Reflect.get(client, "effectiveConnectionToken"));
  expect(token.length).toBeGreaterThan(16);
  writeFileSync(stage.folder.at("work/leak.txt"), `it is ${token}\n`);
  const session = await client.createSession({ onPermissionRequest: approveAll });
  stage.play(calls(["view", { path: "leak.txt" }]), says(`The token is ${token}.`));
  const answer = await session.sendAndWait("Which token?");
  expect(answer?.data.content).toMatch(/^The token is \[redacted/);
  const log = await stage.folder.read(`home/session-state/${session.sessionId}/events.jsonl`);
  expect(JSON.stringify(await session.getEvents()).includes(token)).toBe(false);
  expect(log.includes(token)).toBe(false);
});

async function textOf(child: ChildProcess): Promise<string> {
  let text = "";
  for await (const chunk of child.stderr ?? []) text += String(chunk);
  return text;
}

async function portOf(child: ChildProcess): Promise<string> {
  for await (const chunk of child.stdout ?? []) {
    const [, port] = /listening on port (\d+)/.exec(String(chunk)) ?? [];
    if (port) return port;
  }
  throw new Error("The server ended before it listened.");
}
