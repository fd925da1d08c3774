import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { pathOf } from "../../src/terminal/input/images.ts";
import { boundKeys } from "../../src/terminal/preferences.ts";
import { imageLine, imageProtocol } from "../../src/terminal/screen/image.ts";
import { says } from "../../src/testing/index.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { READY, terminalStage } from "./stage.ts";

describe("keys of the user", () => {
  it("the user's keys replace those of the table", () => {
    const { keys, problems } = boundKeys({ agents: "ctrl+y", output: ["alt+o", "ctrl+x o"] });
    expect(problems).toEqual([]);
    expect(keys.find(({ action }) => action === "agents")?.keys).toEqual(["ctrl+y"]);
    expect(keys.find(({ action }) => action === "output")?.keys).toEqual(["alt+o", "ctrl+x o"]);
    // Keys of a replay do not conflict with those of the prompt.
    expect(boundKeys({ "replay-back": "ctrl+p" }).problems).toEqual([]);
  });

  it.each([
    [{ agents: "ctrl+o" }, "keys: ctrl+o is bound to output and to agents"],
    [{ agents: "ctrl+x" }, "keys: ctrl+x is bound to agents and begins ctrl+x ctrl+k of stop-agents"],
    [{ "replay-back": "q" }, "keys: q is bound to the overlay and to replay-back"],
    [{ "replay-back": "f" }, "keys: f is bound to replay-back and to replay-fork"],
    [{ agent: "ctrl+y" }, 'keys: there is no action "agent"; did you mean "agents"?'],
    [{ agents: "cmd+y" }, 'keys.agents: "cmd+y" is not a key such as ctrl+t or "ctrl+x k"'],
    ["x", 'keys: use an object such as {"agents": ["ctrl+t"]}'],
  ])("the user's keys %j are refused with a reason", (given, problem) => {
    const { keys, problems } = boundKeys(given);
    expect(problems).toContain(problem);
    expect(keys.find(({ action }) => action === "agents")?.keys).toEqual(["ctrl+t"]);
  });
});

describe("choices for the terminal", () => {
  it("terminal preferences are read at the start, reported when wrong, and stored by the commands", async () => {
    await using folder = await tempFolder({
      "home/terminal.json": JSON.stringify({ vim: true, theme: "pink", keys: { agents: "ctrl+y" } }),
      "work/a.txt": "a",
    });
    await using stage = await terminalStage({ home: folder.at("home"), cwd: folder.at("work") });
    await expect
      .poll(async () => (await stage.lines()).join("\n").replaceAll(/ +/g, " "))
      .toContain("theme: use one of default, contrast, plain");
    await stage.shows(/INSERT · interactive/);
    stage.send("one two");
    await stage.shows("› one two");
    stage.send("\u001b");
    await stage.shows(/NORMAL · interactive/);
    stage.send("bcwsix\u001b");
    await stage.shows("› one six");
    await stage.shows(/NORMAL · interactive/);
    stage.send("cc/vim off\r");
    await stage.hides("NORMAL");
    stage.send("/theme plain\r");
    const stored = async () => JSON.parse(await readFile(folder.at("home/terminal.json"), "utf8"));
    await expect.poll(stored).toEqual({ vim: false, theme: "plain", keys: { agents: "ctrl+y" } });
    stage.send("\u0019");
    await stage.shows("no agents yet");
  });
});

describe("images", () => {
  it.each([
    ["/a/b.png", "/a/b.png"],
    ["'/a/my shot.png' ", "/a/my shot.png"],
    ["/a/my\\ shot.PNG", "/a/my shot.PNG"],
    ["file:///a/my%20shot.jpg", "/a/my shot.jpg"],
    ["shot.webp", "/work/shot.webp"],
    ["see shot.txt", undefined],
    ["one\n/a/b.png", undefined],
  ])("images pasted as %j are found", (text, path) => {
    expect(pathOf(text, "/work")).toBe(path);
  });

  it("images are sent along with the prompt when their path is pasted", async () => {
    await using stage = await terminalStage({ steps: [says("I see it.")] });
    const png = Buffer.from(
      "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
      "base64",
    );
    await writeFile(join(stage.cwd, "shot.png"), png);
    await stage.shows(READY);
    stage.send(`\u001b[200~${join(stage.cwd, "shot.png")}\u001b[201~`);
    await stage.shows("› [image #1 shot.png]");
    stage.send("what is it?\r");
    await stage.shows("I see it.");
    expect(await stage.screenText()).toContain("+ shot.png");
    // The emulator is not a terminal that shows images.
    expect(stage.writes.join("")).not.toMatch(/\u001b(?:\]1337|_G)/);
  });

  it("images are drawn by the protocol of the terminal, and never by another one", () => {
    expect(imageProtocol({ TERM: "xterm-kitty" })).toBe("kitty");
    expect(imageProtocol({ TERM_PROGRAM: "iTerm.app" })).toBe("iterm");
    expect(imageProtocol({ TERM_PROGRAM: "iTerm.app", TMUX: "x" })).toBeUndefined();
    expect(imageProtocol({ TERM: "xterm-256color" })).toBeUndefined();
    expect(imageLine(Buffer.from([0x89, 0x50, 0x4e, 0x47, 1]), "kitty")).toMatch(
      /^\u001b_Ga=T,f=100.*;iVBORwE=\u001b\\$/,
    );
    expect(imageLine(Buffer.from("GIF89a"), "kitty")).toBeUndefined();
  });
});
