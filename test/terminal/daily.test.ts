import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type FormField, fieldAnswer, formFields } from "../../src/lib/form-fields.ts";
import { copyText } from "../../src/terminal/commands/clipboard.ts";
import { mentionedIn } from "../../src/terminal/input/mentions.ts";
import { calls, says, tempFolder } from "../../src/testing/index.ts";
import { oauthServer } from "../mcp/oauth-server.ts";
import { READY, terminalStage } from "./stage.ts";

const sql = (query: string): ["sql", { description: string; query: string }] => [
  "sql",
  { description: "todos", query },
];

describe("what a user needs every day", () => {
  it("the terminal shows the todos of a fleet as the plan, with the one under way", async () => {
    await using stage = await terminalStage({
      steps: [
        calls(
          sql("INSERT INTO todos (id, title, description) VALUES ('a', 'Port the lexer', 'x'), ('b', 'Test it', 'y')"),
        ),
        calls(sql("UPDATE todos SET status = 'in_progress' WHERE id = 'a'")),
        calls(sql("UPDATE todos SET status = 'done' WHERE id = 'a'")),
        calls(sql("UPDATE todos SET status = 'in_progress' WHERE id = 'b'")),
        says("One is left."),
      ],
    });
    await stage.shows(READY);
    stage.send("/fleet port it\r");
    await stage.shows("One is left.");
    await stage.shows("plan 1 of 2: Test it");
  });

  it("the terminal sends the files that a prompt names with @, with their lines", async () => {
    await using folder = await tempFolder({ "work/readme.md": "one\ntwo\nthree\n", "work/src/a.ts": "a\n" });
    await using stage = await terminalStage({ cwd: folder.at("work"), steps: [says("Read.")] });
    await stage.shows(READY);
    stage.send("compare @read");
    await stage.shows("▸ readme.md");
    stage.send("\t");
    stage.send(":2-3 with @src/, not @nothing\r");
    await stage.shows("Read.");
    const screen = await stage.screenText();
    expect(screen).toContain("› compare @readme.md:2-3 with @src/, not @nothing");
    expect(screen).toContain("  + readme.md:2-3\n  + src/\n");
  });

  it("the terminal treats punctuation behind a file name as text, and a name with a colon as a name", async () => {
    await using folder = await tempFolder({ "a.txt": "x\n", "b:3": "x\n" });
    const found = await mentionedIn("see @a.txt, (@a.txt:7) and @b:3; mail me@a.txt. @~nobody", folder.path);
    expect(found).toEqual([
      { type: "file", path: folder.at("a.txt"), displayName: "a.txt" },
      { type: "file", path: folder.at("b:3"), displayName: "b:3" },
    ]);
  });

  it("the terminal copies the last answer as the model wrote it, or its last block of code", async () => {
    const answer = "# Title\n\nDo **this**:\n\n```sh\nnpm test\n```\n\n```ts\nconst a = 1;\n```\n";
    await using stage = await terminalStage({ steps: [says(answer)], environment: { SSH_CONNECTION: "a b" } });
    await stage.shows(READY);
    stage.send("/copy\r");
    await stage.shows("there is no answer yet");
    stage.send("go\r");
    await stage.shows("const a = 1;");
    await stage.shows("Esc Esc rewinds");
    stage.send("/copy\r");
    await stage.shows("which may refuse them");
    stage.send("/copy code\r");
    await stage.shows("sent 13 characters");
    const sent = stage.writes.flatMap((bytes) => [...bytes.matchAll(/\u001b\]52;c;([^\u0007]*)\u0007/g)]);
    expect(sent.map(([, data = ""]) => Buffer.from(data, "base64").toString())).toEqual([
      answer.trim(),
      "const a = 1;\n",
    ]);
  });

  it("the terminal copies through tmux, and reports a text that is too long for a terminal", async () => {
    const written: string[] = [];
    const ports = {
      environment: { TMUX: "/nowhere", PATH: "/nowhere" },
      write: (bytes: string) => written.push(bytes),
    };
    expect(await copyText("hi", ports)).toContain("OSC 52");
    expect(written).toEqual(["\u001bPtmux;\u001b\u001b]52;c;aGk=\u0007\u001b\\"]);
    expect(await copyText("x".repeat(80_000), ports)).toContain("/export writes a file");
    expect(written).toHaveLength(1);
  });

  it("the terminal exports the conversation as Markdown, and overwrites no file", async () => {
    await using stage = await terminalStage({ steps: [says("# Title\n\n```ts\nconst a = 1;\n```\n")] });
    await stage.shows(READY);
    stage.send("go\r");
    await stage.shows("const a = 1;");
    await stage.shows("Esc Esc rewinds");
    stage.send("/export out.md\r");
    await stage.shows("written to");
    const text = await readFile(join(stage.cwd, "out.md"), "utf8");
    expect(text).toContain("## User\n\ngo\n\n## Assistant\n\n# Title\n\n```ts\nconst a = 1;\n```");
    stage.send("/export out.md\r");
    await stage.shows("Name another file");
    expect(await readFile(join(stage.cwd, "out.md"), "utf8")).toBe(text);
  });

  it("the terminal shows the current model first, and a list only where there is a choice", async () => {
    await using stage = await terminalStage();
    await stage.shows(READY);
    stage.send("/model\r");
    await stage.shows(/^▸ \S*scripted +in use · .*tokens/m);
    stage.send("\u0003/resume\r");
    await stage.shows("there is no other session");
  });

  it("the terminal shows the summary of a finished task once", async () => {
    await using stage = await terminalStage({
      steps: [calls(["task_complete", { summary: "All **12** tests pass." }])],
    });
    await stage.shows(READY);
    stage.send("/autopilot go\r");
    await stage.shows("✓ task complete");
    await stage.shows("Esc Esc rewinds");
    expect((await stage.lines()).join("\n").match(/All 12 tests pass/g)).toHaveLength(1);
  });

  it("the terminal says on a narrow screen what the next Esc does", async () => {
    await using stage = await terminalStage({ columns: 44, steps: [calls(["ask_user", { question: "Which?" }])] });
    await stage.shows(/Esc Esc/);
    stage.send("go\r");
    await stage.shows("▌ Which?");
    await stage.shows(/^interactive · (?:.* · )?working \d+ s · Esc interrupts$/m);
  });

  it("leaves out the context, then the current work, where the next Esc would not fit on 40 columns", async () => {
    await using stage = await terminalStage({
      columns: 40,
      rows: 10,
      steps: [says("Hello."), calls(["ask_user", { question: "Which?" }])],
    });
    await stage.shows(/Esc Esc/);
    stage.send("hi\r");
    await stage.shows("Hello.");
    await stage.shows(/^interactive · Esc Esc rewinds$/m);
    stage.send("go\r");
    await stage.shows("▌ Which?");
    await stage.shows(/^interactive · Esc interrupts$/m);
  });

  it("/mcp login in the terminal says how the sign-in ended: declined, or signed in", async () => {
    const oauth = await oauthServer();
    const mcpServers = { work: { type: "http", url: oauth.url, tools: ["*"] } };
    await using folder = await tempFolder({ "home/mcp-config.json": JSON.stringify({ mcpServers }) });
    await using stage = await terminalStage({ home: folder.at("home"), columns: 500 });
    await stage.shows(READY);
    stage.send("/mcp login work\r");
    await stage.shows("▌ Address to open");
    stage.send("\u0001d");
    await stage.shows("The sign-in to work was declined.");
    stage.send("/mcp login work\r");
    const screen = await stage.shows("▌ Address to open");
    await fetch(/Open it yourself: (\S+)/.exec(screen)?.[1] ?? "");
    await stage.shows("Signed in to work.");
    await stage.hides("▌ Address to open");
  });
});

describe("a field of a form", () => {
  const [guests, name, time] = formFields({
    properties: {
      guests: { type: "integer", minimum: 1, maximum: 8, title: "Guests" },
      name: { type: "string", maxLength: 5 },
      time: { enum: ["18:00", "20:00"], description: "of the table" },
    },
    required: ["guests", "time"],
  }) as [FormField, FormField, FormField];

  it("a field of a form says what may be entered", () => {
    const shown = [guests, name, time].map(({ label, hint }) => `${label} (${hint})`);
    expect(shown).toEqual([
      "Guests (integer; 1 to 8)",
      "name (string; at most 5 characters; optional)",
      "time – of the table (18:00 | 20:00)",
    ]);
  });

  it("a field of a form accepts values that fit type, limits and choices, and explains a refusal", () => {
    expect(fieldAnswer(guests, "8")).toEqual({ kind: "value", value: 8 });
    expect(fieldAnswer(guests, "99")).toEqual({ kind: "problem", problem: "enter 1 to 8" });
    expect(fieldAnswer(guests, "")).toEqual({ kind: "problem", problem: "a value is required" });
    expect(fieldAnswer(name, "")).toEqual({ kind: "none" });
    expect(fieldAnswer(name, "too long")).toEqual({ kind: "problem", problem: "enter at most 5 characters" });
    expect(fieldAnswer(time, "19:00")).toEqual({ kind: "problem", problem: "enter 18:00 | 20:00" });
  });
});
