/** Ctrl-C ends everything that a run started: commands of the main agent and of nested agents, and servers. */
import { spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { script } from "../support/troupe.ts";

/** Everything that runs for this folder, or sleeps for as long as only this test does. */
function processes(marks: readonly string[]): string[] {
  return readdirSync("/proc").flatMap((pid) => {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return [];
    const read = (name: string): string => {
      try {
        return name === "cwd" ? readlinkSync(`/proc/${pid}/cwd`) : readFileSync(`/proc/${pid}/${name}`, "utf8");
      } catch {
        return ""; // it has ended, or belongs to someone else
      }
    };
    const about = [read("cmdline"), read("cwd"), read("environ")].join("\n");
    const isDead = /^State:\s+[ZX]/m.test(read("status"));
    if (isDead || !marks.some((mark) => about.includes(mark))) return [];
    return [`${pid} ${read("cmdline").replaceAll("\0", " ").trim()}`];
  });
}

const server = resolve("test/mcp/servers/scripted.mjs");

/** The main agent, an agent of its and an agent of that one each run a command that starts others. */
function story(seconds: number) {
  const command = (what: string) => ({
    name: "bash",
    arguments: {
      command: `sleep ${seconds} & (setsid sleep ${seconds} &) ; nohup sleep ${seconds} >/dev/null 2>&1 & sleep ${seconds}; echo ${what}`,
      description: what,
      ...(what === "main" && { mode: "async" }),
    },
  });
  const task = (agent_type: string, name: string) => ({
    name: "task",
    arguments: { description: name, prompt: "go", agent_type, name, mode: "sync" },
  });
  return [
    { calls: [command("main"), task("general-purpose", "outer")] },
    { say: "done" },
    { agent: "general-purpose", calls: [command("outer"), task("task", "inner")] },
    { agent: "general-purpose", say: "done" },
    { agent: "task", calls: [command("inner")] },
    { agent: "task", say: "done" },
  ];
}

async function interrupted(how: { sandbox: "auto" | "off"; signals: number; toGroup: boolean }) {
  const folder = await tempFolder();
  const [home, cwd] = [join(folder.path, "home"), join(folder.path, "project")];
  for (const path of [home, cwd]) mkdirSync(path);
  const seconds = 100_000_000 + randomInt(100_000_000);
  const config = JSON.stringify({ mcpServers: { helper: { command: process.execPath, args: [server] } } });
  const args = ["-p", "go", "--allow-all", "--model", script(folder.path, story(seconds))];
  const child = spawn(
    process.execPath,
    [resolve("bin/troupe.js"), ...args, "--additional-mcp-config", config, "--silent"],
    {
      cwd,
      env: {
        PATH: process.env.PATH ?? "",
        HOME: home,
        TROUPE_HOME: home,
        TROUPE_NO_DISCOVERY: "1",
        TROUPE_SANDBOX: how.sandbox,
      },
      stdio: "ignore",
      detached: true,
    },
  );
  const ended = new Promise<number | null>((done) => child.once("exit", done));
  const sleeping = (): number =>
    processes([` ${seconds}`, `\0${seconds}`]).filter((one) => /^\d+ sleep \d+$/.test(one)).length;
  try {
    await expect.poll(sleeping, { timeout: 100_000, interval: 200 }).toBe(12);
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  }
  for (let sent = 0; sent < how.signals; sent++)
    process.kill(how.toGroup ? -(child.pid ?? 0) : (child.pid ?? 0), "SIGINT");
  const code = await ended;
  const left = () => processes([folder.path, String(seconds)]);
  return { code, left, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

describe.runIf(process.platform === "linux")("Ctrl-C", () => {
  it.each([
    { sandbox: "auto", signals: 1, toGroup: false },
    { sandbox: "auto", signals: 2, toGroup: true },
    { sandbox: "off", signals: 1, toGroup: true },
    { sandbox: "off", signals: 2, toGroup: false },
  ] as const)("Ctrl-C leaves no process behind: %j", async (how) => {
    await using run = await interrupted(how);
    expect(run.code).toBe(130);
    await expect.poll(run.left).toEqual([]);
  });
});
