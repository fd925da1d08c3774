import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { subagentsRunTool } from "../../src/tools/agents/subagents-run.ts";
import { submitResultTool } from "../../src/tools/agents/submit-result.ts";
import { gitSubcommands, readingGitCommand } from "../../src/tools/coordination/git-command.ts";
import { builtinRoles, rolesFrom } from "../../src/tools/coordination/roles.ts";
import { concurrencyOf } from "../../src/tools/coordination/run-request.ts";
import skill from "../../src/tools/coordination/skill.md";
import { cutText, limitSubmission, Submission } from "../../src/tools/coordination/submission.ts";
import { GROUP_NAMES, provision } from "../../src/tools/coordination/tool-groups.ts";
import { workspace } from "./workspace.ts";

describe("bounds of a result", () => {
  const submission = (changes: object) => Submission.parse({ status: "completed", summary: "s", ...changes });

  it("BLX-16 a worker's result keeps 20 findings and 10 artifacts, cut by code point, and says what it omits", () => {
    const finding = { severity: "info", title: "t", evidence: "😀".repeat(2500) };
    const artifact = { kind: "plan", title: "t", content: "é".repeat(5000) };
    const result = limitSubmission(
      submission({
        findings: Array(25).fill(finding),
        artifacts: Array(11).fill(artifact),
        recommendedNextActions: [],
      }),
    );
    expect([result.findings.length, result.artifacts.length]).toEqual([20, 10]);
    expect(result.findings[0]?.evidence).toBe(`${"😀".repeat(2000)}…`);
    expect(result.artifacts[0]?.content).toBe(`${"é".repeat(4000)}…`);
    expect(result.truncated).toEqual(["5 findings left out", "1 artifacts left out"]);
  });

  it("BLX-16 the bounds of a worker's result never split a character", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 0, max: 20 }), (text, max) => {
        const result = cutText(text, max);
        expect(result).not.toMatch(/\p{Surrogate}/u);
        expect(Array.from(result).length).toBeLessThanOrEqual(max + 1);
      }),
      { numRuns: 200 },
    );
  });

  it("the bounds of a worker's result leave a small result unchanged", () => {
    const small = submission({ findings: [{ severity: "error", title: "t", evidence: "e", paths: ["p"] }] });
    expect(limitSubmission(small)).toEqual(small);
  });
});

describe("how many run at once", () => {
  it("BLX-09 three workers run at once by default, and one to five on request", () => {
    expect([undefined, 1, 5, 99].map(concurrencyOf)).toEqual([3, 1, 5, 5]);
  });
});

describe("roles", () => {
  it("roles have prompts of at most 1.5 kB and groups that exist", () => {
    const folder = new URL("../../src/tools/coordination/roles/", import.meta.url);
    for (const file of readdirSync(folder))
      expect(readFileSync(new URL(file, folder)).length).toBeLessThanOrEqual(1500);
    for (const { groups } of builtinRoles) {
      expect(provision({ asked: groups, defaults: [], available: [] }).steps.map(({ status }) => status)).toEqual([
        "info",
      ]);
    }
  });

  it("BLX-36 settings add or replace roles; an invalid role is named in a notice and omitted", () => {
    const { roles, problems } = rolesFrom(
      JSON.parse(
        '{"api_reader":{"prompt":"Read APIs."},"scout":{"label":"Pathfinder","prompt":"Mine.","groups":["workspace"]},"Bad Id":{"prompt":"x"},"__proto__":{"prompt":"x"},"constructor":{"prompt":"x"},"empty":{}}',
      ),
    );
    expect(roles.map(({ id, label }) => [id, label])).toEqual([
      ["scout", "Pathfinder"],
      ["review", "Review"],
      ["security_analyst", "Security Analyst"],
      ["api_reader", "Api Reader"],
    ]);
    expect(problems).toHaveLength(4);
    expect(rolesFrom(undefined)).toEqual({ roles: builtinRoles, problems: [] });
    expect(rolesFrom([]).problems).toHaveLength(1);
  });
});

describe("the skill", () => {
  it("BLX-33 the skill explains every argument, role and tool group, and when not to use the tool", () => {
    const { properties } = subagentsRunTool({}).parameters as {
      properties: { agents: { items: { properties: object } } };
    };
    const fields = [...Object.keys(properties), ...Object.keys(properties.agents.items.properties)];
    for (const name of [...fields, ...GROUP_NAMES, ...builtinRoles.map(({ id }) => id)]) expect(skill).toContain(name);
    expect(skill).toMatch(/^---\nname: coordinated-subagents\n/);
    expect(skill).toContain("only when the user asks for it");
  });
});

describe("submit_result", () => {
  const receiver = {
    called: () => {},
    submit: () => ({ kind: "taken", message: "ok" }) as const,
    taken: () => undefined,
    close: () => {},
  };

  it("BLX-13 submit_result requires status and summary, runs alone and ends the run", () => {
    const tool = submitResultTool(receiver);
    expect(tool.parameters).toMatchObject({ type: "object", required: ["status", "summary"] });
    expect([tool.exclusive, tool.endsAnswer]).toEqual([true, true]);
    expect(JSON.stringify(tool.parameters).length).toBeLessThan(2000);
  });
});

describe("git for workers", () => {
  const all = gitSubcommands(["diff", "git"]);

  it.each([
    ["git status", "git status"],
    ["git --no-pager log --oneline -20", "git log --no-ext-diff --no-textconv --oneline -20"],
    ["git diff main..HEAD -- src/a.ts", "git diff --no-ext-diff --no-textconv main..HEAD -- src/a.ts"],
    ["git show HEAD~2:src/a.ts", "git show --no-ext-diff --no-textconv 'HEAD~2:src/a.ts'"],
    [
      `git log --format="%h %s" --grep='it; works'`,
      "git log --no-ext-diff --no-textconv '--format=%h %s' '--grep=it; works'",
    ],
    ["git branch -a -v", "git branch -a -v"],
    ["git branch --contains HEAD", "git branch --contains HEAD"],
    ["git tag --list 'v1.*'", "git tag --list 'v1.*'"],
    ["git remote -v", "git remote -v"],
    ["git blame -L 1,20 src/a.ts", "git blame --no-ext-diff --no-textconv -L 1,20 src/a.ts"],
    ["git diff --stat --no-color", "git diff --no-ext-diff --no-textconv --stat --no-color"],
  ])("git for workers accepts a command that only reads: %s", (command, written) => {
    expect(readingGitCommand(command, all)).toEqual({ ok: true, command: written });
  });

  it.each([
    ...[
      "",
      "ls",
      "git",
      "git push",
      "git commit -m x",
      "git checkout -- .",
      "git -c core.pager=sh log",
      "git -C / log",
    ],
    ...["git status; id", "git status && id", "git status | sh", "git status\nid", "git log > f", "git log $(id)"],
    ...[
      "git log `id`",
      'git log "$(id)"',
      "git log $HOME",
      "git status &",
      "X=1 git log",
      "env git log",
      "/usr/bin/git log",
    ],
    ...["git diff --output=f", "git diff --outp f", "git diff --ext-diff", "git show --textconv", "git diff --textc"],
    ...["git diff --no-index a b", "git diff --no-i a b", "git diff /etc/passwd /dev/null", "git diff ../x y"],
    ...["git blame --contents=/etc/passwd a", "git ls-files -X/etc/passwd", "git diff -O/etc/passwd", "git log --help"],
    ...[
      "git log --show-signature",
      "git log --format=%GS",
      "git log --format='%h %G?'",
      "git branch new",
      "git branch -D x",
    ],
    ...["git branch -m a b", "git tag v1", "git tag -d v1", "git remote add x y", "git remote update", "git diff ~/x"],
    ...[
      "git log a\\b",
      "git log {a,b}",
      "git log *",
      "git log #x",
      "git log 'a",
      "git log !x",
      "git branch --list -d x",
    ],
    ...["git branch -v new", "git branch --edit-description", "git branch -u origin/x", `git log ${"x".repeat(3000)}`],
    ...[
      "git st''atus\u0000",
      "git  bisect run sh",
      "gi''t push",
      "git show --ext",
      "git ls-files --exclude-from=/etc/x",
    ],
  ])("git for workers refuses a command that does more than read: %j", (command) => {
    expect(readingGitCommand(command, all).ok).toBe(false);
  });

  it("the group diff gives a worker fewer git commands than the group git", () => {
    expect(readingGitCommand("git log", gitSubcommands(["diff"])).ok).toBe(false);
    expect(gitSubcommands(["workspace", "constructor"])).toEqual([]);
  });

  it("git for workers quotes words so that a real shell and git read them whole", () => {
    const { root, write } = workspace();
    write("a file.txt", "one\n");
    const git = (...args: string[]) => execFileSync("git", args, { cwd: root, stdio: "pipe" });
    git("init", "-q");
    git("add", ".");
    git("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "it's; $HOME");
    for (const [command, expected] of [
      [`git log --format="%s" -1`, "it's; $HOME\n"],
      ["git show HEAD:'a file.txt'", "one\n"],
      ["git blame -s -l 'a file.txt'", "one\n"],
      ["git status --short", ""],
      ["git log --grep='; touch x' --format=%s", ""],
    ] as const) {
      const reading = readingGitCommand(command, all);
      if (!reading.ok) throw new Error(reading.reason);
      const output = execFileSync("bash", ["-c", reading.command], { cwd: root, encoding: "utf8" });
      expect(output.endsWith(expected)).toBe(true);
    }
    expect(readdirSync(root).sort()).toEqual([".git", "a file.txt"]);
  });
});
