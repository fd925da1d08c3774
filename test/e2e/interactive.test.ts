import { execFile, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterEach, describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";

const run = promisify(execFile);
const hasTmux = spawnSync("tmux", ["-V"]).status === 0;
const bin = resolve("bin/troupe.js");
const PATIENCE_MS = 60_000;
const sockets: string[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) await run("tmux", ["-L", socket, "kill-server"]).catch(() => undefined);
});

/** A real terminal: tmux, with a server of its own. */
async function open(options: {
  home: string;
  cwd: string;
  args?: readonly string[];
  columns?: number;
  rows?: number;
  environment?: Readonly<Record<string, string>>;
}) {
  const { home, cwd, args = [], columns = 90, rows = 30, environment = {} } = options;
  const socket = `troupe-${process.pid}-${sockets.length}-${Math.random().toString(36).slice(2, 8)}`;
  sockets.push(socket);
  const tmux = async (...words: readonly string[]): Promise<string> =>
    (await run("tmux", ["-L", socket, "-f", "/dev/null", ...words])).stdout;
  const variables = Object.entries({
    TROUPE_HOME: home,
    HOME: home,
    TROUPE_NO_DISCOVERY: "1",
    PATH: process.env.PATH ?? "",
    ...environment,
  }).map(([name, value]) => `${name}='${value}'`);
  const command = `cd '${cwd}' && env -i TERM=$TERM ${variables.join(" ")} '${process.execPath}' '${bin}' ${args.join(" ")}; echo "ended with $?"; cat`;
  await tmux("new-session", "-d", "-s", "t", "-x", String(columns), "-y", String(rows), command);
  const text = async (): Promise<string> => tmux("capture-pane", "-p", "-t", "t");
  return {
    text,
    all: async (): Promise<string> => tmux("capture-pane", "-p", "-t", "t", "-S", "-5000"),
    keys: async (...words: readonly string[]): Promise<void> => void (await tmux("send-keys", "-t", "t", ...words)),
    resize: async (toColumns: number, toRows: number): Promise<void> =>
      void (await tmux("resize-window", "-t", "t", "-x", String(toColumns), "-y", String(toRows))),
    async shows(wanted: string | RegExp): Promise<string> {
      const end = performance.now() + PATIENCE_MS;
      for (;;) {
        const screen = await text();
        if (typeof wanted === "string" ? screen.includes(wanted) : wanted.test(screen)) return screen;
        if (performance.now() > end) throw new Error(`the terminal never shows ${wanted}:\n${screen}`);
        await new Promise((done) => setTimeout(done, 50));
      }
    },
    /** Waits until the session is open. Keys before that are kept, but commands of keys have no effect. */
    async isOpen(): Promise<void> {
      await this.shows(/^(?![\s\S]*\bstarting\b)[\s\S]*Esc Esc rewinds/);
    },
    /** The process of troupe itself. */
    async pid(): Promise<number> {
      const shell = (await tmux("list-panes", "-t", "t", "-F", "#{pane_pid}")).trim();
      const children = (await run("ps", ["-o", "pid=,args=", "--ppid", shell])).stdout.split("\n");
      return Number(/\d+/.exec(children.find((line) => line.includes("troupe.js")) ?? "")?.[0]);
    },
  };
}

async function folders() {
  const folder = await tempFolder({ "work/readme.md": "hello\n" });
  await mkdir(folder.at("home"), { mode: 0o700 });
  return { folder, home: folder.at("home"), cwd: folder.at("work") };
}

describe.skipIf(!hasTmux)("troupe in a real terminal (skipped where tmux is not installed)", () => {
  it("the terminal opens on the first run, answers with the understudy, and says how to resume", async () => {
    const { folder, home, cwd } = await folders();
    await using _ = folder;
    const terminal = await open({ home, cwd });
    await terminal.shows("No model provider is configured");
    await terminal.shows("Run `troupe login` in another window");
    await terminal.keys("which files are there?", "Enter");
    await terminal.shows("understudy: troupe's built-in offline model");
    await terminal.shows("Esc Esc rewinds");
    await terminal.keys("C-d");
    await terminal.shows(/Resume this session with: troupe --resume [0-9a-f]{8}\s+ended with 0/);
  });

  it("the terminal asks before a write, starts background agents, stops one and messages the other", async () => {
    const { folder, home, cwd } = await folders();
    await using _ = folder;
    const task = (name: string) => ({
      name: "task",
      arguments: { agent_type: "explore", name, description: `look at ${name}`, prompt: "look", mode: "background" },
    });
    const steps = [
      { say: "I write.", call: { name: "create", arguments: { path: "made.txt", file_text: "one\n" } } },
      { say: "Written." },
      { say: "I start three.", calls: [task("ann"), task("bob"), task("cid")] },
      ...["ann", "bob", "cid"].map((agent) => ({ agent, say: "slow", stall: true })),
      { say: "They are at work." },
    ];
    await writeFile(folder.at("script.json"), JSON.stringify({ steps, otherwise: { say: "noted" } }));
    const terminal = await open({ home, cwd, args: ["--model", `faux:${folder.at("script.json")}`] });
    await terminal.shows("Esc Esc rewinds");
    await terminal.keys("write it", "Enter");
    await terminal.shows("▌ y once");
    await terminal.keys("y");
    await terminal.shows("Written.");
    await terminal.keys("start agents", "Enter");
    await terminal.shows("They are at work.");
    await terminal.shows("bob (Explore");
    await terminal.keys("C-t");
    await terminal.shows("Agents · 3 at work");
    await terminal.keys("j", "x");
    await terminal.shows("press x again to stop bob");
    await terminal.keys("x");
    await terminal.shows("Agents · 2 at work");
    await terminal.keys("k", "m");
    await terminal.shows("to ann ›");
    await terminal.keys("look deeper", "Enter");
    await terminal.shows("sent to ann");
    // Esc at rest stops nobody.
    await terminal.keys("Escape");
    await terminal.shows("ann (Explore");
    expect(await terminal.text()).toContain("cid (Explore");
  });

  it("ORC-87 the terminal leads a session through streaming, approval, steering, interruption and mode changes", async () => {
    const { folder, home, cwd } = await folders();
    await using _ = folder;
    const sync = { agent_type: "explore", name: "ann", description: "look", prompt: "look", mode: "sync" };
    const steps = [
      { say: "I write.", call: { name: "create", arguments: { path: "made.txt", file_text: "one\n" } } },
      { say: "Now I ask ann.", call: { name: "task", arguments: sync } },
      { agent: "ann", say: "slow", stall: true },
      { say: "I go on by myself and think for a while.", chunkSize: 8, stall: true },
    ];
    await writeFile(folder.at("script.json"), JSON.stringify({ steps, otherwise: { say: "Steered." } }));
    const terminal = await open({ home, cwd, args: ["--model", `faux:${folder.at("script.json")}`] });
    await terminal.keys("begin", "Enter");
    await terminal.shows(/^▌ y once/m);
    await terminal.keys("y");
    await terminal.shows("Now I ask ann.");
    await terminal.shows("ann (Explore");
    await terminal.keys("C-b");
    await terminal.shows("ann works in the background");
    await terminal.shows("I go on by myself");
    await terminal.keys("turn left", "Enter");
    await terminal.shows("steering: turn left");
    await terminal.keys("Escape");
    await terminal.shows("Steered.");
    await terminal.shows("Esc Esc rewinds");
    expect(await terminal.text()).toContain("ann (Explore");
    await terminal.keys("BTab");
    await terminal.shows(/^plan · faux/m);
    await terminal.keys("C-d");
    await terminal.shows(/Resume this session with: troupe --resume [0-9a-f]{8}\s+ended with 0/);
  });

  it("the terminal compacts, rewinds with the files, and undoes the rewind", async () => {
    const { folder, home, cwd } = await folders();
    await using _ = folder;
    const steps = [
      { say: "I write.", call: { name: "create", arguments: { path: "made.txt", file_text: "one\n" } } },
      { say: "Written." },
      { say: "Second." },
      { say: "<summary>We wrote a file.</summary>" },
    ];
    await writeFile(folder.at("script.json"), JSON.stringify({ steps, otherwise: { say: "noted" } }));
    const terminal = await open({ home, cwd, args: ["--model", `faux:${folder.at("script.json")}`] });
    await terminal.shows("Esc Esc rewinds");
    await terminal.keys("write it", "Enter");
    await terminal.shows(/^▌ y once/m);
    await terminal.keys("y");
    await terminal.shows("Written.");
    await terminal.shows("Esc Esc rewinds");
    await terminal.keys("go on", "Enter");
    await terminal.shows("Second.");
    await terminal.shows("Esc Esc rewinds");
    await terminal.keys("/rewind", "Enter");
    await terminal.shows("1 file changed since");
    await terminal.keys("Down", "Enter");
    await terminal.shows("Changed since by this session:");
    await terminal.keys("Down", "Enter");
    await terminal.shows("/rewind redo undoes the rewind");
    await terminal.shows("› write it");
    expect(existsSync(join(cwd, "made.txt"))).toBe(false);
    await terminal.keys("C-c");
    await terminal.keys("/rewind redo", "Enter");
    await terminal.shows("the rewind was taken back; 1 file");
    expect(existsSync(join(cwd, "made.txt"))).toBe(true);
    await terminal.shows("Esc Esc rewinds");
    await terminal.keys("/compact", "Enter");
    await terminal.shows(/compacted/i);
  });

  it("the terminal resumes after kill -9 with the session and the draft", async () => {
    const { folder, home, cwd } = await folders();
    await using _ = folder;
    const model = JSON.stringify({ steps: [{ say: "The word is plum." }], otherwise: { say: "still here" } });
    await writeFile(folder.at("script.json"), model);
    const first = await open({ home, cwd, args: ["--model", `faux:${folder.at("script.json")}`] });
    await first.shows("Esc Esc rewinds");
    await first.keys("remember a word", "Enter");
    await first.shows("The word is plum.");
    await first.keys("a draft that must stay");
    await first.shows("› a draft that must stay");
    await new Promise((done) => setTimeout(done, 1_000));
    process.kill(await first.pid(), "SIGKILL");
    await first.shows("ended with 137");
    const second = await open({ home, cwd, args: ["--continue", "--model", "understudy"] });
    await second.shows("The word is plum.");
    await second.shows("› a draft that must stay");
  });

  it.each([60, 200])(
    "the terminal keeps one live region in a terminal of %i columns and through resizes",
    async (columns) => {
      const { folder, home, cwd } = await folders();
      await using _ = folder;
      const lines = Array.from({ length: 30 }, (_, index) => `Line ${index} ${"of many words ".repeat(6)}end`);
      await writeFile(folder.at("script.json"), JSON.stringify({ steps: [{ say: lines.join("\n\n") }] }));
      const terminal = await open({ home, cwd, columns, args: ["--model", `faux:${folder.at("script.json")}`] });
      await terminal.isOpen();
      // A long status line that became shorter must not leave cells that tmux wraps.
      await terminal.keys("C-x", "C-k");
      await terminal.shows("again stops all background agents");
      await terminal.keys("go", "Enter");
      await terminal.shows("Line 29");
      await terminal.shows("Esc Esc rewinds");
      for (const [toColumns, toRows] of [
        [80, 20],
        [150, 40],
        [columns, 30],
      ] as const) {
        await terminal.resize(toColumns, toRows);
        await new Promise((done) => setTimeout(done, 500));
      }
      await terminal.keys("after");
      await terminal.shows("› after");
      const all = await terminal.all();
      expect(all.match(/Esc Esc/g)).toHaveLength(1);
      for (let index = 0; index < lines.length; index++) expect(all).toContain(`Line ${index} of many`);
    },
  );

  it("the terminal joins a session of another terminal by name, shares its requests, and outlives the first", async () => {
    const { folder, home, cwd } = await folders();
    await using _ = folder;
    const steps = [
      {
        say: "I have a question.",
        call: { name: "ask_user", arguments: { question: "Which?", choices: ["a", "b"] } },
      },
      { say: "I write.", call: { name: "create", arguments: { path: "made.txt", file_text: "one\n" } } },
      { say: "All is done." },
    ];
    await writeFile(folder.at("script.json"), JSON.stringify({ steps, otherwise: { say: "noted" } }));
    const model = `faux:${folder.at("script.json")}`;
    const first = await open({ home, cwd, args: ["--name", "plum", "--model", model] });
    await first.shows("Esc Esc rewinds");
    await first.keys("go", "Enter");
    await first.shows("▌ Which?");
    const second = await open({ home, cwd: home, columns: 70, args: ["--attach", "plum", "--model", "understudy"] });
    await second.shows("open in another terminal");
    await second.shows(/^› go$/m);
    await second.shows(/^▌ 1–2 choose/m);
    await second.keys("2");
    await first.shows(/^▌ y once/m);
    expect(await first.text()).not.toContain("▌ Which?");
    await second.shows(/^▌ y once/m);
    await first.keys("y");
    await second.shows("All is done.");
    expect(await second.text()).not.toContain("▌ y once");
    await first.shows("Esc Esc rewinds");
    await first.keys("C-d");
    await first.shows("ended with 0");
    await second.shows("the session continues here");
    await second.shows(/^interactive · understudy/m);
  });

  it("the terminal writes no colours when NO_COLOR is set", async () => {
    const { folder, home, cwd } = await folders();
    await using _ = folder;
    const terminal = await open({ home, cwd, environment: { NO_COLOR: "1" } });
    await terminal.shows("No model provider is configured");
    const [socket = ""] = sockets;
    const styled = (await run("tmux", ["-L", socket, "capture-pane", "-p", "-e", "-t", "t"])).stdout;
    expect(styled).not.toMatch(/\u001b\[[0-9;]*[1-9][0-9;]*m/);
  });

  it("the terminal restores the terminal on SIGTERM", async () => {
    const { folder, home, cwd } = await folders();
    await using _ = folder;
    const terminal = await open({ home, cwd });
    await terminal.shows("No model provider is configured");
    process.kill(await terminal.pid(), "SIGTERM");
    await terminal.shows("ended with 0");
    // The terminal echoes again and translates Enter, so `cat` repeats the line.
    await terminal.keys("echoed", "Enter");
    await terminal.shows(/echoed\s+echoed/);
  });

  it("the terminal prints labelled lines and numbered menus with --plain", async () => {
    const { folder, home, cwd } = await folders();
    await using _ = folder;
    const steps = [
      { say: "I write.", call: { name: "create", arguments: { path: "made.txt", file_text: "one\n" } } },
      { say: "Written." },
    ];
    await writeFile(folder.at("script.json"), JSON.stringify({ steps }));
    const terminal = await open({ home, cwd, args: ["--plain", "--model", `faux:${folder.at("script.json")}`] });
    await terminal.shows("ready: model");
    await terminal.keys("write it", "Enter");
    await terminal.shows("1. approve once");
    await terminal.keys("1", "Enter");
    await terminal.shows("troupe: Written.");
    await terminal.keys("/exit", "Enter");
    await terminal.shows("ended with 0");
  });
});
