import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { calls, says } from "../../src/testing/index.ts";
import { READY, terminalStage } from "./stage.ts";

const ENTER = "\r";
const ESC = "\u001b";
const key = (letter: string): string => String.fromCharCode(letter.toUpperCase().charCodeAt(0) - 64);

describe("keys and commands of the terminal", () => {
  it("Shift+Tab cycles the modes, and a plan is approved from its card", async () => {
    await using stage = await terminalStage({
      steps: [
        calls(["exit_plan_mode", { summary: "Do the thing in two steps.\n\n- the **first**" }]),
        says("I begin."),
      ],
    });
    await stage.shows(READY);
    stage.send(`${ESC}[Z`);
    await stage.shows(/^plan · scripted/m);
    stage.send(`plan it${ENTER}`);
    await stage.shows("▌ Plan to approve");
    await stage.shows("Do the thing in two steps.");
    await stage.shows(/^▌ • the first$/m);
    await stage.shows(/^▌ 1–\d choose/m);
    stage.send("1");
    await stage.hides("▌ Plan to approve");
    const screen = await stage.shows("I begin.");
    expect(screen).toMatch(
      /● exit_plan_mode.*\n {2}Do the thing in two steps\.\n\n {2}• the first\n {2}Plan approved!/,
    );
    expect(screen).not.toContain("Carry out the plan now");
  });

  it("Ctrl+O shows the whole output of a call, with a search", async () => {
    const command = "i=1; while [ $i -le 60 ]; do echo row $i; i=$((i+1)); done";
    await using stage = await terminalStage({
      steps: [calls(["bash", { command, description: "rows" }]), says("Done.")],
    });
    await stage.shows(READY);
    stage.send(`run${ENTER}`);
    await stage.shows(/^▌ y once/m);
    stage.send("y");
    await stage.shows("Done.");
    expect(await stage.screenText()).not.toContain("row 30");
    stage.send(key("O"));
    await stage.shows("Output of the last calls");
    stage.send("g");
    stage.send("/row 30");
    stage.send(ENTER);
    await stage.shows("row 30");
    stage.send("q");
    await stage.shows("Esc Esc rewinds");
    expect(await stage.screenText()).not.toContain("row 30");
  });

  it("Ctrl+R searches the history, and Ctrl+S puts a draft aside", async () => {
    await using stage = await terminalStage({ steps: [says("first answer"), says("second answer")] });
    await stage.shows(READY);
    stage.send(`explain the parser${ENTER}`);
    await stage.shows("first answer");
    await stage.shows("Esc Esc rewinds");
    stage.send(`fix the lexer${ENTER}`);
    await stage.shows("second answer");
    await stage.shows("Esc Esc rewinds");
    stage.send(key("R"));
    await stage.shows("search history ›");
    stage.send("parser");
    await stage.shows(/explain the parser\n.*\nsearch history › parser/);
    stage.send(ENTER);
    await stage.shows("› explain the parser");
    stage.send(key("S"));
    await stage.shows("put aside");
    stage.send("other");
    await stage.shows("› other");
    stage.send(key("C"));
    await stage.hides("› other");
    stage.send(key("S"));
    await stage.shows("› explain the parser");
  });

  it("Esc Esc rewinds the conversation with the files, and the message returns to the prompt", async () => {
    await using stage = await terminalStage({
      steps: [says("one"), calls(["create", { path: "made.txt", file_text: "x\n" }]), says("two")],
    });
    await stage.shows(READY);
    stage.send(`first message${ENTER}`);
    await stage.shows(/^one$/m);
    await stage.shows("Esc Esc rewinds");
    stage.send(`second message${ENTER}`);
    await stage.shows(/^▌ y once/m);
    stage.send("y");
    await stage.shows(/^two$/m);
    await stage.shows("Esc Esc rewinds");
    expect(await readdir(stage.cwd)).toContain("made.txt");
    stage.send(ESC);
    await stage.shows("Esc again rewinds");
    stage.send(ESC);
    await stage.shows("Rewind to before this message");
    await stage.shows("▸ second message");
    stage.send(ENTER);
    await stage.shows("conversation and files");
    stage.send(`${ESC}[B`);
    await stage.shows("▸ conversation and files");
    stage.send(ENTER);
    await stage.shows("› second message");
    await expect.poll(() => readdir(stage.cwd)).not.toContain("made.txt");
  });

  it("the terminal completes commands and files, exports the conversation and lists the help", async () => {
    await using stage = await terminalStage({ steps: [says("A fine answer.")] });
    await stage.shows(READY);
    stage.send("look at @read");
    await stage.shows("▸ readme.md");
    stage.send("\t");
    await stage.shows("› look at @readme.md");
    stage.send(ENTER);
    await stage.shows("A fine answer.");
    await stage.shows("Esc Esc rewinds");
    stage.send("/exp");
    await stage.shows("▸ /export [file]");
    stage.send("\t");
    stage.send(`talk.md${ENTER}`);
    await stage.shows("written to");
    expect(await readFile(join(stage.cwd, "talk.md"), "utf8")).toMatch(/look at @readme\.md[\s\S]*A fine answer\./);
    stage.send("?");
    await stage.shows("Keys");
    await stage.shows("ctrl+t");
    stage.send("q");
    await stage.hides("ctrl+t");
  });

  it("the output of !command is sent along with the next prompt, and that of !!command never", async () => {
    const seen: string[] = [];
    await using stage = await terminalStage({
      steps: [
        (request) => {
          seen.push(JSON.stringify(request.messages));
          return says("seen");
        },
      ],
    });
    await stage.shows(READY);
    stage.send(`!echo shown-$((40+2))${ENTER}`);
    await stage.shows("shown-42");
    stage.send(`!!echo hidden-$((50+2))${ENTER}`);
    await stage.shows("hidden-52");
    stage.send(`what did I run?${ENTER}`);
    await stage.shows("seen");
    expect(seen.join("")).toContain("shown-42");
    expect(seen.join("")).not.toContain("hidden-52");
  });

  it("the draft is edited in $EDITOR and kept when the editor fails", async () => {
    await using stage = await terminalStage({ environment: { EDITOR: "false" } });
    await stage.shows(READY);
    stage.send("some words");
    await stage.shows("› some words");
    stage.send(key("G"));
    await stage.shows("the draft is unchanged");
    expect(await stage.screenText()).toContain("› some words");
  });

  it("the text written in $EDITOR replaces the draft", async () => {
    await using stage = await terminalStage({ environment: { EDITOR: "printf edited >" } });
    await stage.shows(READY);
    stage.send("some words");
    await stage.shows("› some words");
    stage.send(key("G"));
    await stage.shows("› edited");
  });
});
