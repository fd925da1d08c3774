/** A rule that denies reading a file holds for every way in which a model could get to see it. */
import { execFileSync } from "node:child_process";
import { linkSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Json } from "../../src/lib/json.ts";
import { calls, says } from "../../src/model/faux/faux-step.ts";
import { of, onStage, resultsOf, type Stage, type StageOptions, starts } from "../features/stage.ts";
import { hasBubblewrap } from "../shell/bubblewrap.ts";

const CANARY = "TOPSECRET";
const AGENT = "---\nname: hand\ndescription: works\n---\nWork.";
const files = {
  "secret.txt": `${CANARY} canary\n`,
  "private/deep/key.txt": `${CANARY} canary\n`,
  "open.txt": "open canary\n",
  "home:agents/hand.md": AGENT,
};
/** So that the session knows from its start that it works in a repository. */
const repository = { ".git/HEAD": "ref: refs/heads/main\n" };
const denyTools = ["read(secret.txt)", "read(private)"];
const sandboxed = { environment: { TROUPE_SANDBOX: "auto" } };
const withBubblewrap = await hasBubblewrap();

type Call = [name: string, given: Record<string, Json>];

async function play(
  made: readonly Call[],
  options: StageOptions,
  check: (stage: Stage, results: (toolName: string) => string[]) => void | Promise<void>,
  prepare: (folder: string) => void = links,
): Promise<void> {
  const steps = [...made.map((one) => calls(one)), says("end")];
  const wanted = { permissions: { allTools: true, denyTools }, files, ...options };
  await onStage(steps, wanted, async (stage) => {
    prepare(stage.folder);
    await stage.session.sendAndWait({ prompt: "go" });
    await check(stage, (toolName) => resultsOf(stage.session.events, toolName));
    expect(shownTo(stage)).not.toContain(CANARY);
  });
}

const shownTo = (stage: Stage): string => JSON.stringify(stage.requests());

/** Other names for the denied files. */
function links(folder: string): void {
  mkdirSync(join(folder, "sub"));
  symlinkSync("secret.txt", join(folder, "soft"));
  symlinkSync("private", join(folder, "folder-link"));
  linkSync(join(folder, "secret.txt"), join(folder, "hard"));
}

const bash = (command: string, more: Record<string, Json> = {}): Call => [
  "bash",
  { command, description: "x", ...more },
];

describe("a rule that denies reading", () => {
  it("a rule that denies reading applies to view and edit, by every name of the file", () =>
    play(
      [
        ...[
          "secret.txt",
          "./sub/../secret.txt",
          "soft",
          "hard",
          "private/deep/key.txt",
          "folder-link/deep/key.txt",
        ].map((path): Call => ["view", { path }]),
        ["edit", { path: "secret.txt", old_str: "nothing like this", new_str: "x" }],
        ["edit", { path: "private/deep/key.txt", old_str: "canry", new_str: "x" }],
        ["view", { path: "open.txt" }],
      ],
      {},
      (_, results) => {
        expect(results("view").map((one) => /^Permission denied: denied by the rule read/.test(one))).toEqual([
          ...Array.from({ length: 6 }, () => true),
          false,
        ]);
        expect(results("edit").every((one) => one.startsWith("Permission denied: denied by the rule read"))).toBe(true);
      },
    ));

  it("a rule that denies reading omits the file from searches in every mode, and reports that", () =>
    play(
      [
        ["grep", { pattern: "canary", output_mode: "content" }],
        ["grep", { pattern: "canary", output_mode: "content", "-n": true, "-C": 2 }],
        ["grep", { pattern: "canary", output_mode: "count" }],
        ["grep", { pattern: "canary" }],
        ["grep", { pattern: "canary", glob: "{secret,open}.txt" }],
        ["grep", { pattern: "c.*y", multiline: true, output_mode: "content", paths: [".", "sub/.."] }],
        ["grep", { pattern: "canary", path: "sub/../secret.txt" }],
        ["glob", { pattern: "**/*" }],
        ["glob", { pattern: "**/{secret,hard,key}*" }],
        ["view", { path: "." }],
      ],
      {},
      ({ folder }, results) => {
        const left = "[3 paths left out: rules deny reading them]";
        expect(results("grep")).toEqual([
          `${folder}/open.txt:open canary\n${left}`,
          `${folder}/open.txt:1:open canary\n${left}`,
          `${folder}/open.txt:1\n${left}`,
          `${folder}/open.txt\n${left}`,
          `${folder}/open.txt\n${left}`,
          `${folder}/open.txt:open canary\n${folder}/open.txt:open canary\n[6 paths left out: rules deny reading them]`,
          expect.stringContaining("Permission denied: denied by the rule read(secret.txt)"),
        ]);
        expect(results("glob")).toEqual([`./open.txt\n${left}`, `No files matched the pattern.\n${left}`]);
        expect(results("view")).toEqual(["open.txt\nsub\n[5 names left out: rules deny reading]"]);
      },
    ));

  it.each([
    ["of the user", { "home:settings.json": JSON.stringify({ permissions: { deny: denyTools } }) }],
    ["of an untrusted project", { ".troupe/settings.json": JSON.stringify({ permissions: { deny: denyTools } }) }],
  ])("a rule that denies reading applies when it is in settings %s", (_, more) =>
    play(
      [["grep", { pattern: "canary", output_mode: "content" }], ["view", { path: "secret.txt" }], bash("cat se*t.txt")],
      { files: { ...files, ...more }, permissions: { allTools: true } },
      (_stage, results) => {
        expect(results("bash")[0]).toMatch(/it may read what the rule read\(secret\.txt\) denies/);
      },
    ),
  );

  it("a rule that denies reading keeps instructions, imported files and skills of the project from the model", () =>
    onStage(
      [says("end")],
      {
        permissions: { allTools: true, denyTools: [...denyTools, "read(CLAUDE.md)", "read(.github/skills/told)"] },
        files: {
          ...files,
          "AGENTS.md": "Fine words. See @secret.txt and @private/deep/key.txt\n",
          "CLAUDE.md": `${CANARY} words\n`,
          ".github/skills/told/SKILL.md": `---\nname: told\ndescription: ${CANARY}\n---\nbody\n`,
        },
      },
      async (stage) => {
        await stage.session.sendAndWait({ prompt: "go" });
        expect(shownTo(stage)).toContain("Fine words");
        expect(shownTo(stage)).not.toContain(CANARY);
      },
    ));
});

describe("a rule that denies reading, for commands without a sandbox", () => {
  it.each([
    "cat secr*",
    "cat $(echo se*t.txt)",
    "f=secret; cat $f.txt",
    "grep -r canary .",
    "python3 read.py",
    "./read.sh",
    "tar cf - .",
    "cat <<EOF\n$(<secret.tx?)\nEOF",
    "rg canary",
    "find . -name 's*' -exec cat {} +",
    "git diff --no-index /dev/null open.txt",
    "cp -r . ../copy",
  ])("without a sandbox, a read denial asks about commands that may read more than they name: %s", (command) =>
    play([bash(command)], {}, (_, results) => {
      expect(results("bash")[0]).toMatch(/^Permission denied and could not request permission|outside the allowed/);
    }),
  );

  it.each([
    "cat sub/../secret.txt",
    "cat soft",
    "wc -l <secret.txt",
    "cat folder-link/deep/key.txt",
    "sort -osecret.txt x",
  ])("without a sandbox, a read denial denies commands that name a denied file: %s", (command) =>
    play([bash(command)], {}, (_, results) => {
      expect(results("bash")[0]).toMatch(/^Permission denied: denied by the rule read/);
    }),
  );

  it.each([
    ["cat open.txt", "open canary"],
    ["cd sub && cat ../open.txt | head -n 1", "open canary"],
    ["grep -n open open.txt", "1:open canary"],
    ["echo done", "done"],
  ])("without a sandbox, a read denial allows commands that read only what they name: %s", (command, output) =>
    play([bash(command)], {}, (_, results) => {
      expect(results("bash")[0]).toContain(output);
    }),
  );
});

describe.skipIf(!withBubblewrap)("a rule that denies reading, for commands in the sandbox", () => {
  it("in the sandbox, a read denial hides the file under all its names and lets everything else run", () =>
    play(
      [
        bash("cat secr* ha* so*; cat open*; ls"),
        bash("node -e 'process.stdout.write(fs.readFileSync(`sec`+`ret.txt`, `utf8`))'; echo ran"),
        bash("grep -r canary . ; echo searched"),
        bash("ln secr* new; mv secr* moved; rm -f secr*; cat new moved; echo tried"),
        bash("cat secr*; cd sub", { shellId: "kept" }),
        bash('cat "$OLDPWD"/secr*; pwd', { shellId: "kept" }),
      ],
      sandboxed,
      ({ folder }, results) => {
        const [first, second, third, fourth, , sixth] = results("bash");
        expect(first).toContain("open canary");
        expect(second).toContain("ran");
        expect(third).toMatch(/open\.txt:open canary[\s\S]*searched/);
        expect(fourth).toContain("tried");
        expect(sixth).toContain(join(folder, "sub"));
      },
    ));

  it("in the sandbox, a read denial hides files that appear while a session runs", () =>
    play(
      [
        bash("echo first"),
        ["create", { path: "a/secret.txt", file_text: CANARY.toLowerCase() }],
        bash("cat a/*; echo x"),
      ],
      sandboxed,
      (_, results) => {
        expect(results("bash")[1]).not.toContain(CANARY.toLowerCase());
        expect(results("bash")[1]).toContain("x");
      },
    ));

  it("in the sandbox, a read denial applies to agents, in the same folder and in their own worktree", async () => {
    const tries = [
      "cat secr* */deep/*; echo ran",
      'cat "$(git rev-parse --path-format=absolute --git-common-dir)"/../secr*; echo looked beside git',
    ];
    const steps = [
      starts("near", "hand", { mode: "sync" }),
      starts("far", "hand", { mode: "sync", isolation: "worktree" }),
      says("end"),
      ...["near", "far"].map((name) => of(name, ...tries.map((command) => calls(bash(command))), says("done"))),
    ];
    const options = { ...sandboxed, permissions: { allTools: true, denyTools }, files: { ...files, ...repository } };
    await onStage(steps, options, async (stage) => {
      const { folder, session } = stage;
      commit(folder);
      await session.sendAndWait({ prompt: "go" });
      // In the tree commands may be asked about instead.
      expect(resultsOf(session.events, "bash")).toHaveLength(4);
      expect(resultsOf(session.events, "bash")[0]).toContain("ran");
      expect(resultsOf(session.events, "bash")[1]).toContain("looked beside git");
      expect(shownTo(stage)).not.toContain(CANARY);
    });
  });

  it("in the sandbox, a read denial asks before git shows stored contents of the file", () =>
    play(
      [
        bash("git show HEAD:secr?t.txt | cat; for f in HEAD:secret; do git show $f.txt; done"),
        bash("git diff"),
        bash("g=git; $g stash show -p"),
        bash("git status --short; cat open*"),
      ],
      sandboxed,
      (_, results) => {
        const asked = /git has stored|it may read what the rule|denied by the rule/;
        expect(results("bash").map((one) => asked.test(one))).toEqual([true, true, true, false]);
      },
      commit,
    ));

  it("in the sandbox, a read denial of the whole folder asks, because a folder cannot be hidden", () =>
    play(
      [bash("cat op*")],
      { ...sandboxed, permissions: { allTools: true, denyTools: ["read(work)"] } },
      (_, results) => {
        expect(results("bash")[0]).toMatch(/rule read\(work\)/);
      },
    ));

  it("in the sandbox, a read denial asks where a file cannot be protected from change", () =>
    onStage(
      [calls(bash("for f in op*; do echo x > $f; done")), calls(bash("echo x > open.txt")), says("end")],
      { ...sandboxed, permissions: { allTools: true, denyTools: ["write(open.txt)"] }, files },
      async ({ session, folder }) => {
        await session.sendAndWait({ prompt: "go" });
        const [first, second] = resultsOf(session.events, "bash");
        expect(first).toMatch(/it may change what the rule write\(open\.txt\) denies/);
        expect(second).toMatch(/denied by the rule write\(open\.txt\)/);
        expect(readFileSync(join(folder, "open.txt"), "utf8")).toBe("open canary\n");
      },
    ));
});

function commit(folder: string): void {
  const git = (...args: string[]): Buffer =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd: folder });
  git("init", "-q");
  git("add", ".");
  git("commit", "-qm", "all");
}
