import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ofEachProvider } from "../../src/terminal/first-run.ts";
import { calls, httpStatus, says, tempFolder } from "../../src/testing/index.ts";
import { READY, terminalStage } from "./stage.ts";

const ENTER = "\r";
const ESC = "\u001b";
const CTRL_C = "\u0003";

const pause = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

describe("the interactive terminal", () => {
  it("the terminal draws the prompt before modules are loaded and sends what is typed in the meantime", async () => {
    await using stage = await terminalStage({ steps: [says("Hello to you.")] });
    expect(stage.writes[0]).toContain("›");
    stage.send(`early words${ENTER}`);
    await stage.shows("Hello to you.");
    expect((await stage.lines()).filter((line) => line.includes("› early words"))).toHaveLength(1);
  });

  it("the terminal streams an answer into committed lines and returns to the prompt", async () => {
    await using stage = await terminalStage({
      steps: [says("# Title\n\nSome **bold** text.\n\n```ts\nconst a = 1;\n```\n\n| a | b |\n|---|---|\n| 1 | 22 |\n")],
    });
    await stage.shows(READY);
    stage.send(`go${ENTER}`);
    await stage.shows(/1 {2}22/);
    await stage.shows("Esc Esc rewinds");
    const lines = await stage.lines();
    expect(lines).toEqual(expect.arrayContaining(["Title", "Some bold text.", "  const a = 1;", "a  b", "1  22"]));
    expect(lines.filter((line) => line.includes("Esc Esc"))).toHaveLength(1);
  });

  it("the terminal asks before a write, approves it with one key and shows the diff", async () => {
    await using stage = await terminalStage({
      steps: [calls(["create", { path: "made.txt", file_text: "one\ntwo\n" }]), says("It is made.")],
    });
    await stage.shows(READY);
    stage.send(`make it${ENTER}`);
    await stage.shows("▌ Permission");
    await stage.shows("▌ y once");
    stage.send("y");
    await stage.shows("It is made.");
    expect(await stage.screenText()).toContain("+one");
    expect(await readFile(join(stage.cwd, "made.txt"), "utf8")).toBe("one\ntwo\n");
  });

  it("the terminal takes no decision from 40 keys typed while a request appears", async () => {
    await using stage = await terminalStage({
      steps: [calls(["create", { path: "made.txt", file_text: "x\n" }]), says("never")],
    });
    await stage.shows(READY);
    stage.send(`make it${ENTER}`);
    const typed = "yadpn1yadpn1yadpn1yadpn1yadpn1yadpn1yadp";
    expect(typed).toHaveLength(40);
    // Typing goes on until the card is there, and beyond.
    for (const character of typed) {
      stage.send(character);
      await pause(10);
    }
    await stage.shows("▌ Permission");
    await stage.shows(`› ${typed}`);
    await pause(600);
    expect(await stage.screenText()).toContain("Ctrl+A to answer");
    expect(await readdir(stage.cwd)).toEqual(["readme.md"]);
    stage.send("\u0001");
    await stage.shows("Esc leaves the card");
    stage.send("d");
    await stage.hides("▌ Permission");
    expect(await stage.screenText()).toContain(`› ${typed}`);
    expect(await readdir(stage.cwd)).toEqual(["readme.md"]);
  });

  it("the terminal marks a command of the user that the model never sees", async () => {
    await using stage = await terminalStage();
    await stage.shows(READY);
    stage.send(`!echo shared${ENTER}`);
    await stage.shows(/● bash echo shared( \d+ s)?\n/);
    stage.send(`!!echo secret${ENTER}`);
    await stage.shows("● bash echo secret (hidden from the model)");
  });

  it("modes chosen before the session was open are applied before the first prompt is sent", async () => {
    await using stage = await terminalStage({ steps: [says("Planned.")] });
    stage.send(`\u001b[Zthink first${ENTER}`);
    await stage.shows("Planned.");
    await stage.shows(/^plan · scripted/m);
    const lines = (await stage.lines()).filter((line) => ["mode: plan", "› think first"].includes(line));
    expect(lines).toEqual(["mode: plan", "› think first"]);
  });

  it("the terminal denies with words that the agent reads, and keeps the draft", async () => {
    await using stage = await terminalStage({
      steps: [calls(["create", { path: "made.txt", file_text: "x\n" }]), says("I read: not there.")],
    });
    await stage.shows(READY);
    stage.send(`make it${ENTER}`);
    await stage.shows("▌ y once");
    stage.send("n");
    await stage.shows("why not ›");
    // A pause before the first letter, which would be a key of the card.
    await pause(700);
    stage.send(`yes, but put it elsewhere${ENTER}`);
    await stage.shows("I read: not there.");
    expect(await stage.screenText()).toContain("yes, but put it elsewhere");
    expect(await readdir(stage.cwd)).toEqual(["readme.md"]);
    await stage.shows(/^›$/m);
  });

  it("the terminal answers a question of the model with a choice", async () => {
    await using stage = await terminalStage({
      steps: [calls(["ask_user", { question: "Which colour?", choices: ["red", "blue"] }]), says("Blue it is.")],
    });
    await stage.shows(READY);
    stage.send(`ask me${ENTER}`);
    await stage.shows("▌ Question");
    await stage.shows(/^▌ 1–2 choose/m);
    stage.send("2");
    await stage.shows("Blue it is.");
  });

  it("Tab queues a message, the up key removes the newest one, and Esc interrupts", async () => {
    await using stage = await terminalStage({
      steps: [calls(["create", { path: "made.txt", file_text: "x\n" }]), says("Second answered.")],
    });
    await stage.shows(READY);
    stage.send(`first${ENTER}`);
    await stage.shows("▌ Permission");
    stage.send("second\t");
    await stage.shows("queued: second");
    stage.send("third\t");
    await stage.shows("queued: third");
    stage.send(`${ESC}[A`);
    await stage.shows("› third");
    await stage.hides("queued: third");
    stage.send(CTRL_C);
    await stage.hides("› third");
    await stage.shows("Esc interrupts");
    stage.send(ESC);
    await stage.shows("Second answered.");
  });

  it("the terminal saves a draft automatically and restores it in the next terminal of the folder", async () => {
    await using stage = await terminalStage();
    await stage.shows(READY);
    stage.send("half a thought");
    await stage.shows("› half a thought");
    const folder = join(stage.home, "drafts");
    const written = async (): Promise<string[]> =>
      (await readdir(folder).catch(() => [])).filter((name) => name.endsWith(".json"));
    await expect.poll(async () => (await written()).length).toBe(1);
    const [name = ""] = await written();
    const stored = JSON.parse(await readFile(join(folder, name), "utf8"));
    expect(stored).toMatchObject({ text: "half a thought", cwd: stage.cwd, pid: process.pid });
    await using next = await terminalStage({ home: stage.home, cwd: stage.cwd });
    await next.shows("› half a thought");
  });

  it("the terminal accepts a paste of 10 MB byte for byte, as one marker", async () => {
    await using stage = await terminalStage({ steps: [says("Read.")] });
    await stage.shows(READY);
    const text = "0123456789abcde\u0007\u001b[2J\t\n".repeat(500_000);
    const bytes = Buffer.from(`${ESC}[200~${text}${ESC}[201~`);
    for (let at = 0; at < bytes.length; at += 65_536) stage.send(bytes.subarray(at, at + 65_536).toString("utf8"));
    await stage.shows("[paste #1 +500001 lines]");
    const folder = join(stage.home, "drafts");
    const stored = async (): Promise<string> => {
      const [name = ""] = (await readdir(folder).catch(() => [])).filter((one) => one.endsWith(".json"));
      return readFile(join(folder, name), "utf8").catch(() => "");
    };
    await expect.poll(async () => (await stored()).length).toBeGreaterThan(text.length);
    expect(JSON.parse(await stored()).text === text).toBe(true);
  });

  it.each([
    ["behind the bytes that were written before", false],
    ["ahead of them", true],
  ])("the terminal keeps every committed line while an answer streams and sizes change %s", async (_, isAhead) => {
    const paragraphs = Array.from(
      { length: 60 },
      (_, index) => `Paragraph ${index} ${"with many words ".repeat(8)}end.`,
    );
    await using stage = await terminalStage({ steps: [says(paragraphs.join("\n\n"))], columns: 90, rows: 20 });
    await stage.shows(READY);
    stage.send(`go${ENTER}`);
    for (const [columns, rows] of [
      [60, 20],
      [200, 40],
      [75, 15],
      [50, 30],
      [120, 24],
    ] as const) {
      stage.resize(columns, rows, { isAhead });
      await pause(120);
    }
    await stage.shows("Paragraph 59");
    await stage.shows("Esc Esc rewinds");
    // Blanks may have been added where a row ended. The last part of the answer may still be in the live region.
    const shown = async (): Promise<string[]> =>
      (await stage.lines()).filter((line) => line.includes("Paragraph")).map((line) => line.replaceAll(/ +/g, " "));
    if (isAhead) {
      // A frame that met another size may leave rows of the live region, and lines that are written again.
      const missing = async () => {
        const lines = await shown();
        return paragraphs.filter((paragraph) => !lines.some((line) => line.includes(paragraph)));
      };
      await expect.poll(missing).toEqual([]);
      return;
    }
    await expect.poll(shown).toEqual(paragraphs);
    expect((await stage.lines()).filter((line) => line.includes("· scripted"))).toHaveLength(1);
  });

  it("Ctrl+C twice leaves the terminal, says how to resume and restores the screen", async () => {
    await using stage = await terminalStage({ steps: [says("Hello.")] });
    await stage.shows(READY);
    stage.send(`hi${ENTER}`);
    await stage.shows("Hello.");
    await stage.shows("Esc Esc rewinds");
    stage.send(CTRL_C);
    await stage.shows("Ctrl+C again exits");
    stage.send(CTRL_C);
    await stage.ended;
    const screen = await stage.screenText();
    expect(screen).toMatch(/Resume this session with: troupe --resume [0-9a-f]{8}/);
    expect(screen).not.toContain("scripted ·");
    const all = stage.writes.join("");
    expect(all).toContain(`${ESC}[?2004l`);
    expect(all).toContain(`${ESC}[?1004l`);
    expect(stage.rawMode.at(-1)).toBe(false);
  });

  it("clears the prompt and stops the answer with Ctrl+C twice, and does not exit", async () => {
    await using stage = await terminalStage({ steps: [calls(["ask_user", { question: "Which?" }]), says("Next.")] });
    await stage.shows(READY);
    stage.send(`go${ENTER}`);
    await stage.shows("▌ Which?");
    stage.send("half a thought");
    await stage.shows("› half a thought");
    stage.send(CTRL_C);
    await stage.hides("› half a thought");
    stage.send(CTRL_C);
    await stage.shows("Interrupted.");
    stage.send(`again${ENTER}`);
    await stage.shows("Next.");
  });

  it("the terminal resumes a session: prints its end and continues it", async () => {
    await using first = await terminalStage({ steps: [says("The answer was 42.")] });
    await first.shows(READY);
    first.send(`remember${ENTER}`);
    await first.shows("The answer was 42.");
    await first.shows("Esc Esc rewinds");
    first.send("\u0004");
    await first.ended;
    await using elsewhere = await tempFolder({ "other/readme.md": "hello\n" });
    const [id = ""] = await readdir(join(first.home, "session-state"));
    await using second = await terminalStage({
      home: first.home,
      cwd: elsewhere.at("other"),
      sessionChoice: { kind: "resume", reference: id },
      steps: [says("As I said, 42.")],
    });
    await second.shows("The answer was 42.");
    await second.shows(/! it worked in .* from here on it works in /);
    await second.shows(READY);
    second.send(`again${ENTER}`);
    await second.shows("As I said, 42.");
  });

  it("leaving the terminal consolidates a long session in a process of its own, if the feature is on", async () => {
    const environment = { COPILOT_SUBCONSCIOUS: "on" };
    await using stage = await terminalStage({
      steps: [says("one"), says("two"), says("three")],
      environment,
      program: [process.execPath, "-e", "0"],
    });
    await stage.shows(READY);
    for (const word of ["one", "two", "three"]) {
      stage.send(`say ${word}${ENTER}`);
      await stage.shows(new RegExp(`^${word}$`, "m"));
      await stage.shows("Esc Esc rewinds");
    }
    stage.send("\u0004");
    await stage.ended;
    const sessions = join(stage.home, "session-state");
    const [id = ""] = (await readdir(sessions)).filter((name) => /^[0-9a-f-]{36}$/.test(name));
    const log = await readFile(join(sessions, id, "events.jsonl"), "utf8");
    expect(log).toMatch(/"troupe\.shutdown_consolidation","data":\{"outcome":"spawned"/);
  });

  it("the terminal opens without a working provider and says so when a prompt fails", async () => {
    await using stage = await terminalStage({ environment: { TROUPE_BASE_URL: "http://127.0.0.1:9/v1" } });
    await stage.shows(READY);
    stage.send(`hi${ENTER}`);
    await stage.shows(/waits|✗/);
  });

  it("the terminal opens with an unusable model, explains that, keeps the typed text and asks for another", async () => {
    await using stage = await terminalStage({
      environment: { TROUPE_MODEL: "" },
      models: ["big", "small"],
      steps: [says("ready"), says("Hello.")],
    });
    stage.send(`hi there${ENTER}`);
    await stage.shows("is configured, but none of its models is chosen");
    await stage.shows("The built-in understudy answers until you choose a model");
    const screen = await stage.shows("▌ Which model should answer?");
    expect(screen).toMatch(/^› hi there$/m);
    stage.send("\u00011");
    await stage.shows("it is your default now");
    stage.send(ENTER);
    await stage.shows("Hello.");
  });

  it("the list of models names a model of each provider before the second of one", () => {
    const ids = ["a/1", "a/2", "a/3", "b/1", "c/1", "b/2"];
    expect(ofEachProvider(ids.map((id) => ({ id }))).map(({ id }) => id)).toEqual([
      ...["a/1", "b/1", "c/1"],
      ...["a/2", "b/2"],
      "a/3",
    ]);
  });

  it("the terminal asks for a model on the first run, and stores it only after a successful request", async () => {
    await using stage = await terminalStage({ steps: [httpStatus(401), says("ready")], isModelChosen: false });
    const settings = (): Promise<string> => readFile(join(stage.home, "settings.json"), "utf8").catch(() => "");
    await stage.shows("▌ Which model should answer?");
    await stage.shows(/^▌ 1–3 choose/m);
    stage.send("1");
    await stage.shows("✗");
    expect(await settings()).not.toContain("scripted");
    await stage.shows(/^▌ 1–3 choose/m);
    stage.send("1");
    await stage.shows("it is your default now");
    expect(JSON.parse(await settings())).toMatchObject({ model: expect.stringContaining("scripted") });
  });

  it("the terminal asks whether the folder is trusted, and continues either way", async () => {
    let accepted = 0;
    const trust = async () => ({
      folder: "/somewhere",
      items: [{ kind: "hook", id: "start", shown: "touch /tmp/x" }],
      accept: async () => void accepted++,
    });
    await using stage = await terminalStage({ trust });
    await stage.shows("hook start");
    await stage.shows(/^▌ 1–2 choose/m);
    stage.send("1");
    await stage.shows(READY);
    expect(accepted).toBe(1);
  });
});
