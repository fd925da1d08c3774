import { describe, expect, it } from "vitest";
import { decide } from "../../src/permissions/decide.ts";
import { permissionRequest } from "../../src/permissions/request.ts";
import { analyseShell } from "../../src/permissions/shell/analyse.ts";
import { processorTime } from "../support/work.ts";
import { baseline, decideCommand, parser, policy, rules, shellQuestion, verdict, yolo } from "./stage.ts";

/** With the baseline rules, and with the same denials under allow-all. */
function both(command: string): string[] {
  const denials = baseline.filter((rule) => rule.effect === "deny");
  return [
    decideCommand(command, { rules: baseline }),
    decideCommand(command, { rules: denials, allowances: yolo }),
  ].map((decision) => decision.decision);
}

describe("a rule that names a command", () => {
  const allowing = rules(
    "allow",
    ...[
      "shell(npm test)",
      "shell(npm run *)",
      "shell(git branch *)",
      "shell(git commit)",
      "shell(make)",
      "shell(cargo)",
    ],
    ...["shell(cargo test)", "shell(go test)", "shell(git bisect)", "shell(pip list)", "shell(rsync)"],
  );

  it.each([
    "npm test --script-shell=./x",
    "npm test --script-she ./x",
    "npm run build --node-options=--require=./x.js",
    "npm test --prefix node_modules/evil",
    "git branch --edit-description",
    "git branch x --edit-desc",
    "git commit -e -m x",
    "git bisect run ./x",
    "make SHELL=./x",
    "make -f other.mk",
    "make --eval=x",
    "cargo test --config x.toml",
    "go test -exec ./x ./...",
    "pip list --python=./x",
    "rsync -e ./x a b",
  ])("a rule that names a command does not cover an option that runs something else: %s", (command) => {
    expect(decideCommand(command, { rules: allowing }).decision).toBe("ask");
  });

  it.each([
    "npm test",
    "npm test --silent",
    "npm test -- --config x",
    "npm run build --workspace a",
    "git branch --list",
    "git branch -d old",
    "git commit -m x",
    "make",
    "make -j4 all",
    "cargo test --release",
    "go test -run X ./...",
    "pip list --outdated",
  ])("a rule that names a command covers further arguments: %s", (command) => {
    expect(decideCommand(command, { rules: allowing }).decision).toBe("allow");
  });
});

describe("B: shell permission", () => {
  it("B01: the shell policy denies a denied command after an allowed one", () => {
    expect(both("grep x README; curl evil")).toEqual(["deny", "deny"]);
  });

  it.each([49, 50, 51, 1000, 20_000])("B02: the shell policy finds the denied command behind %i others", (count) => {
    const command = `${"true && ".repeat(count)}curl evil`;
    const spent = processorTime();
    expect(both(command)).toEqual(["deny", "deny"]);
    expect(spent()).toBeLessThan(1500);
  });

  it.each([
    "echo $(curl evil)",
    "echo `curl evil`",
    'echo "$(curl evil)"',
    "cat <(curl evil)",
    "echo x > >(curl evil)",
    "cat <<EOF\n$(curl evil)\nEOF",
    'cat <<< "$(curl evil)"',
    `echo \${x:-$(curl evil)}`,
    "echo $(( $(curl evil) ))",
    "x=$(curl evil)",
    "echo $(echo $(echo `curl evil`))",
  ])("B03: the shell policy denies a literal in a substitution: %s", (command) => {
    expect(both(command)).toEqual(["deny", "deny"]);
  });

  it.each([
    "echo $(cu''$(printf rl) evil)",
    `c=cur; \${c}l evil`,
    "$(echo Y3VybA== | base64 -d) evil",
    "echo curl evil | sh",
    "bash <<< 'curl evil'",
    "/usr/bin/c?rl evil",
    "{curl,evil}",
    `v='$(curl evil)'; echo \${v@P}`,
    'set -- curl evil; "$@"',
    "python3 -c \"import os; os.system('curl evil')\"",
    "git -c alias.x='!curl evil' x",
    "hash -p /usr/bin/curl harmless; harmless evil",
    "cp /usr/bin/curl ./harmless; ./harmless evil",
    "echo 'x' > s.sh; . ./s.sh",
    "echo curl evil | xargs env",
    "awk 'BEGIN { system(\"curl evil\") }'",
    "sed '1e curl evil' README",
  ])("B03: the shell policy asks about a hidden word, also under allow-all: %s", (command) => {
    expect(both(command)).toEqual(["ask", "ask"]);
  });

  it.each([
    "env curl",
    "env -u B A=1 curl evil",
    "env -S 'curl evil'",
    "timeout 1 curl",
    "timeout -k 1 --signal=KILL 5 curl",
    "nice -n5 curl",
    "nice -5 curl",
    "ls | xargs curl",
    "ls | xargs -I{} -P 4 curl {}",
    "busybox rm",
    "sh -c 'curl evil'",
    "bash -lc 'curl evil'",
    "bash --norc -o pipefail -c 'curl evil' x",
    "zsh -c \"sh -c 'curl evil'\"",
    "command curl",
    "builtin exec curl",
    "exec -a x curl",
    "nohup setsid stdbuf -oL ionice -c 3 curl",
    "sudo -u root curl",
    "doas curl",
    "chroot / curl",
    "time curl",
    "watch -n 1 curl evil",
    "script -c 'curl evil' /dev/null",
    "parallel curl ::: evil",
    "find . -exec curl {} \\;",
    "find . -name x -ok sh -c 'curl evil' \\;",
    "eval curl evil",
    "eval 'cu'\"rl\" evil",
    "trap 'curl evil' EXIT",
    "alias x='curl evil'",
    "c\\url evil",
    "c''url evil",
    "$'\\x63url' evil",
    '"$HOME"/bin/curl evil',
    "coproc curl evil",
    "f() { curl evil; }; f",
    "if true; then curl evil; fi",
    `${"env ".repeat(9)}curl`,
    nested(9),
  ])("B06: the shell policy finds a denied command inside a wrapper: %s", (command) => {
    expect(both(command)).toEqual(["deny", "deny"]);
  });

  it.each([
    "git -c core.pager='id' log",
    "git --exec-path=. log",
    "git log --output=/srv/project/x",
    "git log --outp=x",
    "git diff --ext-diff",
    "git grep -Oid x",
    "git grep --open-files=id x",
    "git log --textconv",
  ])("B09: the shell policy asks about a flag that runs or writes something else: %s", (command) => {
    const all = [...baseline, ...rules("allow", "shell(git:*)")];
    expect([baseline, all].map((list) => verdict(decideCommand(command, { rules: list })))).toEqual([
      "ask default",
      "ask default",
    ]);
  });

  it("B16: a deny rule applies under allow-all", () => {
    expect(verdict(decideCommand("rm -rf x", { rules: baseline, allowances: yolo }))).toBe("deny rule");
  });

  it("B22: the shell policy denies a command far to the right, and the request shows all of it", () => {
    const command = `echo ok${" ".repeat(2000)}; curl evil`;
    expect(both(command)).toEqual(["deny", "deny"]);
    expect(permissionRequest(shellQuestion(command))).toMatchObject({ fullCommandText: command });
  });

  it("the shell policy allows all commands of the baseline", () => {
    const commands = ["echo hello", "grep -rn 'a b' src | grep x", "git status && git log --oneline", "npm test 2>&1"];
    expect(commands.map((command) => verdict(decideCommand(command, { rules: baseline })))).toEqual(
      commands.map(() => "allow rule"),
    );
  });
});

describe("the analysis of a command", () => {
  it.each([
    "echo a\u00a0b",
    "echo a\u200bb",
    "echo \u202eb",
    "echo a\tb",
    "echo a\r",
    "echo \\a",
    "echo *",
    "echo {a,b}",
    "echo ~",
    "echo $x",
    'echo "!!"',
    "A=1 echo",
    "! echo",
    "time echo",
    "coproc id",
    "(echo)",
    "{ echo; }",
    "echo <<< x",
    "export A=1",
    "echo 'open",
    "gita (",
    "> file",
    "test -v 'a[$(id)]'",
  ])("the analysis of a command treats %j as opaque", (command) => {
    expect(analyseShell(parser, command).plain).toBe(false);
  });

  it("the analysis of a command splits a plain chain into words", () => {
    const { commands, redirections, plain, paths, urls } = analyseShell(
      parser,
      "git push origin 'a b' | grep \"x y\" ./src 2>&1 > out.txt\ncurl https://x.com/y",
    );
    expect({ plain, paths, urls, redirections }).toEqual({
      plain: true,
      paths: ["./src"],
      urls: ["https://x.com/y"],
      redirections: [{ target: "out.txt", write: true }],
    });
    expect(commands.map(({ identifier, words, readOnly }) => ({ identifier, words, readOnly }))).toEqual([
      { identifier: "git push", words: ["git", "push", "origin", "a b"], readOnly: false },
      { identifier: "grep", words: ["grep", "x y", "./src"], readOnly: true },
      { identifier: "curl", words: ["curl", "https://x.com/y"], readOnly: false },
    ]);
  });

  it.each([
    "LD_PRELOAD=x ls",
    "PATH=. ls",
    "GIT_SSH_COMMAND=x git fetch",
    "env BASH_ENV=x bash -c ls",
    "PAGER=x git log",
  ])("the analysis of a command flags the variable in %s", (command) => {
    const { plain, dangerousVariables } = analyseShell(parser, command);
    expect({ plain, flagged: dangerousVariables.length }).toEqual({ plain: false, flagged: 1 });
  });
});

describe("limits of the analysis", () => {
  it.each([
    ["too long", "x".repeat(70_000)],
    ["too many substitutions", "$(".repeat(30_000)],
    ["old arithmetic", "$[".repeat(30_000)],
    ["braces", "{a,".repeat(20_000)],
    ["here-documents", `cat ${"<<a ".repeat(15_000)}`],
    ["too deep", '"$('.repeat(10_000)],
  ])("a command that cannot be analysed is denied under allow-all, in time: %s", (_, command) => {
    const spent = processorTime();
    expect(verdict(decideCommand(command, { allowances: yolo }))).toBe("deny policy");
    expect(spent()).toBeLessThan(1500);
  });

  it("the analysis of a command has a deadline", () => {
    let time = 0;
    const analysis = analyseShell(parser, "a;".repeat(2000), () => (time += 1000));
    expect(analysis.exceeded).toBe("its analysis takes longer than 1500 ms");
  });

  it("plain commands are decided within a millisecond", () => {
    const commands = [
      "git status",
      "npm test 2>&1 | tail -5",
      "grep -rn 'a b' src | head",
      "git add a b && git commit -m 'x y'",
    ];
    const current = policy({ rules: baseline });
    const once = (command: string): number => {
      const spent = processorTime();
      decide(current, shellQuestion(command));
      return spent();
    };
    for (const command of commands) for (let round = 0; round < 200; round++) once(command);
    // The best of a few runs of each command: collections of garbage are not part of the cost.
    const times = Array.from({ length: 500 }, (_, round) => {
      const command = `${commands[round % commands.length]} ${round}`;
      return Math.min(...Array.from({ length: 5 }, () => once(command)));
    }).sort((one, other) => one - other);
    if (process.env.TROUPE_SLOW) console.log({ p50: times[250], p99: times[495] });
    expect(times[495]).toBeLessThan(1);
  });
});

/** `sh -c 'sh -c …'`, each level quoted in the one around it. */
function nested(depth: number): string {
  let command = "curl evil";
  for (let level = 0; level < depth; level++) command = `sh -c '${command.replaceAll("'", "'\\''")}'`;
  return command;
}
