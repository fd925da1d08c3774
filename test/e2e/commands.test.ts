/** Slash commands in prompt mode, through the built program: each in a process of its own, on one session. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { script, troupe } from "../support/troupe.ts";

describe("slash commands in prompt mode", () => {
  it("/review, /tasks, /agent, /plan and /autopilot work in prompt mode", async () => {
    await using folder = await tempFolder();
    const [cwd, home] = [join(folder.path, "project"), join(folder.path, "home")];
    mkdirSync(join(cwd, ".github/agents"), { recursive: true });
    writeFileSync(join(cwd, "a.txt"), "one\n");
    writeFileSync(join(cwd, ".github/agents/poet.md"), "---\ndescription: Rhymes\n---\nYou are the POET.\n");
    const say = (prompt: string, steps: readonly object[], ...more: readonly string[]) =>
      troupe(["-p", prompt, "--model", script(folder.path, steps), ...more], { cwd, home });

    const review = { description: "review", prompt: "review a.txt", agent_type: "code-review", name: "review" };
    const reviewed = await say("/review a.txt", [
      { calls: [{ name: "task", arguments: review }] },
      { say: "One defect." },
      { agent: "You review a change", say: "a.txt:1 is wrong" },
    ]);
    expect(reviewed).toMatchObject({ code: 0, stdout: "One defect.\n" });
    expect(reviewed.stderr).toMatch(/review \(code-review\) started/);

    const tasks = await say("/tasks show review", [], "--continue");
    expect(tasks).toMatchObject({ code: 0, stdout: expect.stringContaining("a.txt:1 is wrong") });

    expect(await say("/agent poet", [], "--continue")).toMatchObject({
      code: 0,
      stdout: "poet is the main agent from the next message on.\n",
    });
    // Another process knows who leads: only the poet's script is played.
    const sung = await say("sing", [{ agent: "POET", say: "A rhyme." }], "--continue");
    expect(sung).toMatchObject({ code: 0, stdout: "A rhyme.\n" });
    expect((await say("/agent", [], "--continue")).stdout).toContain("* poet: Rhymes");
    expect(await say("/agent none", [], "--continue")).toMatchObject({ code: 0 });

    const planned = await say(
      "/plan change a.txt",
      [
        { calls: [{ name: "edit", arguments: { path: "a.txt", old_str: "one", new_str: "two" } }] },
        { say: "The plan is to change it." },
      ],
      "--continue",
      "--allow-all",
    );
    expect(planned).toMatchObject({ code: 0, stdout: "The plan is to change it.\n" });
    expect(readFileSync(join(cwd, "a.txt"), "utf8")).toBe("one\n");

    const flown = await say(
      "/autopilot change a.txt",
      [
        { say: "I would begin so." },
        { calls: [{ name: "edit", arguments: { path: "a.txt", old_str: "one", new_str: "two" } }] },
        { calls: [{ name: "task_complete", arguments: { summary: "a.txt says two" } }] },
      ],
      "--continue",
      "--allow-all",
    );
    expect(flown.code).toBe(0);
    expect(readFileSync(join(cwd, "a.txt"), "utf8")).toBe("two\n");
    expect(await say("/fly", [], "--continue")).toMatchObject({ code: 2, stdout: "" });
  });

  it("/mcp in prompt mode shows the configured servers, before and after the first connection", async () => {
    await using folder = await tempFolder();
    const [cwd, home] = [join(folder.path, "project"), join(folder.path, "home")];
    for (const made of [cwd, home]) mkdirSync(made, { mode: 0o700 });
    const server = { command: process.execPath, args: [fileURLToPath(versionTwo)] };
    const mcpServers = { notes: server, paused: { ...server, enabled: false } };
    writeFileSync(join(home, "mcp-config.json"), JSON.stringify({ mcpServers }));
    const say = (prompt: string, ...more: readonly string[]) =>
      troupe(["-p", prompt, "--model", script(folder.path, [{ say: "Hello." }]), ...more], { cwd, home });

    const before = await say("/mcp");
    expect(before).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("notes  not connected yet, tools not known"),
    });
    expect(before.stdout).toContain("paused  disabled");
    expect(await say("hello")).toMatchObject({ code: 0, stdout: "Hello.\n" });
    expect((await say("/mcp", "--continue")).stdout).toMatch(/^.*notes {2}not connected yet, [1-9]\d* tools?$/m);
  });
});

const versionTwo = new URL("../mcp/servers/version-two.mjs", import.meta.url);
