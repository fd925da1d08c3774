import { existsSync } from "node:fs";
import { userInfo } from "node:os";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { parse, usage } from "../../src/cli/args.ts";
import { deleteSession } from "../../src/cli/commands/session-delete.ts";
import { leftLines, whyLeft } from "../../src/cli/output/watching.ts";
import { parseHookFile } from "../../src/hooks/config.ts";
import { jsonErrorPosition } from "../../src/lib/json.ts";
import { parseRule } from "../../src/permissions/rules.ts";
import { withHint } from "../../src/protocol/errors.ts";
import type { SessionEvent } from "../../src/protocol/event.ts";
import { stateRoot } from "../../src/runtime/home.ts";
import { createRuntime } from "../../src/runtime/runtime.ts";
import { worktreeStage } from "../session/worktree-stage.ts";

describe("Flags", () => {
  it.each(["", " ", ","])("permission flags do not accept %j as a rule", (value) => {
    for (const name of ["allow-tool", "deny-tool"]) {
      expect(() => parse([`--${name}=${value}`]).list(name)).toThrow(`--${name} needs a value`);
    }
  });

  it("permission flags keep a rule with an open bracket in one piece, and the error shows all of it", () => {
    expect(parse(["--allow-tool", "read, shell(git, push"]).list("allow-tool")).toEqual(["read", "shell(git, push"]);
    expect(parse(["--allow-tool", "shell(a, b),write"]).list("allow-tool")).toEqual(["shell(a, b)", "write"]);
    const rule = { effect: "allow", source: { name: "--allow-tool" } } as const;
    const names = { tools: {}, servers: [], customTools: [] };
    expect(() => parseRule("shell(git", rule, names)).toThrow(
      '--allow-tool: the rule "shell(git" cannot be used: the closing ) is missing.',
    );
  });

  it("the error for unknown flags is one sentence", () => {
    const { message, hint } = usage("Unknown flag --promt. Did you mean --prompt?");
    expect(withHint(message, hint)).toBe("Unknown flag --promt. Did you mean --prompt? See `troupe --help`.");
    expect(withHint("It is so. ", "Do that.")).toBe("It is so. Do that.");
  });
});

describe("The state root", () => {
  it("the state root is never relative because HOME is empty or relative", () => {
    const registered = join(userInfo().homedir, ".troupe");
    const before = process.env.HOME;
    try {
      for (const HOME of ["", "here"]) {
        process.env.HOME = HOME;
        expect(stateRoot({ HOME })).toBe(registered);
      }
    } finally {
      if (before === undefined) delete process.env.HOME;
      else process.env.HOME = before;
    }
    expect(stateRoot({ HOME: "/home/ada" })).toBe("/home/ada/.troupe");
    expect(stateRoot({ HOME: "/home/ada", TROUPE_HOME: "state" })).toBe(resolve("state"));
  });
});

describe("agents that still work at the end", () => {
  it("agents that still work at the end are reported as interrupted, cut off after a wait, or not awaited", () => {
    const line = (isInterrupted: boolean, waitMs: number) =>
      leftLines(["a", "b"], {
        session: { id: "s", agents: { tasks: undefined } },
        why: whyLeft({ isInterrupted, waitMs }),
      })[0];
    expect([line(true, 600_000), line(false, 600_000), line(false, 0)]).toEqual([
      "2 agents interrupted: a, b",
      "2 agents not done after 600 s of waiting, and cut off: a, b",
      "2 agents not waited for, and cut off: a, b",
    ]);
  });
});

describe("JSON that cannot be read", () => {
  it.each([
    ['{\n "a": 1,\n}', " (line 3)"],
    ['{\n "a": ', " (line 2)"],
    ['{\n "mcpServers": {\n  "server": { "command": nope, "args": [] }\n }\n}', " (line 3)"],
    ["{ half", ""],
    ['{ "a": 1 }', ""],
  ])("a JSON error has its line, where the engine gives it: %j", (text, place) => {
    expect(jsonErrorPosition(text)).toBe(place);
  });

  it("a JSON error in a hooks file has its line", () => {
    const origin = { scope: "user", owner: "user", file: "hooks.json" } as const;
    const place = { origin } as unknown as Parameters<typeof parseHookFile>[1];
    const { notices } = parseHookFile('{\n "hooks": {},\n}', place);
    expect(JSON.stringify(notices)).toContain("it is not JSON (line 3)");
  });
});

describe("Deleting a session", () => {
  it("deleting a session is refused for unmerged work, and leaves nothing in the repository when forced", async () => {
    await using stage = await worktreeStage();
    const runtime = createRuntime({ environment: {}, home: stage.temp.at("home") });
    const log = await runtime.store.create("0123abcd-0000-4000-8000-000000000000");
    const { sessionId, directory } = log;
    const data = { sessionId, version: 1, producer: "troupe", copilotVersion: "0", startTime: "", context: {} };
    const start = { id: "1", parentId: null, timestamp: new Date().toISOString(), type: "session.start", data };
    await log.append(start as unknown as SessionEvent, { barrier: true });
    await log.close();
    const folder = join(directory, "worktrees");
    await stage.make("clean", { folder });
    const { root } = await stage.make("busy", { folder });
    await stage.temp.files({ [join(root, "b.txt").slice(stage.temp.path.length + 1)]: "new\n" });
    const wish = { runtime, sessionId };

    await expect(deleteSession({ ...wish, force: false })).rejects.toThrow(
      "Nothing was deleted: 1 agent did work that was not merged: busy.",
    );
    expect(stage.git(["branch", "--list", "troupe/*"]).trim().split("\n")).toHaveLength(2);

    await deleteSession({ ...wish, force: true });
    expect(stage.git(["branch", "--list", "troupe/*"])).toBe("");
    expect(stage.git(["worktree", "list"]).trim().split("\n")).toHaveLength(1);
    expect(existsSync(directory)).toBe(false);
  });
});
