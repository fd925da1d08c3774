import { describe, expect, it } from "vitest";
import { analyseShell, loadShellParser } from "../../src/permissions/shell/analyse.ts";
import { destructiveUse } from "../../src/permissions/shell/destructive.ts";

const parser = await loadShellParser();

/** "none", "anything", or the paths; those that are endangered with all that is below them end with a star. */
function judged(command: string): string | string[] {
  const use = destructiveUse(analyseShell(parser, command));
  return use.kind === "paths" ? use.paths.map(({ path, whole }) => path + (whole ? "*" : "")) : use.kind;
}

describe("the files that a command may destroy", () => {
  it.each([
    "ls -la src",
    "cat a | grep b | wc -l",
    "ls *.ts",
    'echo "$HOME"',
    "for f in *.md; do cat $f; done",
    "cd src && ls",
    "git status",
    "git log --oneline -5",
    "git add -A && git commit -m 'x y'",
    "timeout 5 ls",
    "mkdir -p a/b",
    "echo x > /dev/null 2>&1",
    "find . -name '*.ts'",
    "sed -n 1,5p a",
  ])("the files that a command may destroy are none: %s", (command) => expect(judged(command)).toBe("none"));

  it.each([
    ["rm -rf build", ["build*"]],
    ["rm -- -x a", ["-x*", "a*"]],
    ["timeout 5 rm a", ["a*"]],
    ["echo x > notes.txt", ["notes.txt"]],
    ["cat a >> b", ["b"]],
    ["cp a b", ["b", "b/a"]],
    ["cp -r src/x out/", ["out/", "out/x*"]],
    ["mv a b", ["b", "b/a*", "a*"]],
    ["sed -i s/a/b/ one two", ["s/a/b/*", "one*", "two*"]],
    ["truncate -s 0 log", ["0*", "log*"]],
    ["ls | tee out", ["out*"]],
    ["/bin/rm a", ["a*"]],
  ])("the files that a command may destroy are only those it names: %s", (command, paths) =>
    expect(judged(command)).toEqual(paths),
  );

  it.each([
    "rm -rf *",
    'rm "$x"',
    "cd other && rm a",
    "echo x > $out",
    "git clean -fdx",
    "git checkout .",
    "git reset --hard",
    "git stash",
    "git branch -D topic",
    "git push --force",
    "git -C x status",
    "find . -delete",
    "find . -name x -exec rm {} +",
    "ls | xargs rm",
    "tar xf a.tar",
    "unzip a.zip",
    "rsync -a --delete a/ b/",
    "dd if=a of=b",
    "cp -t out a",
    "make clean",
    "npm ci",
    "python3 x.py",
    "./ls",
    "bash -c 'rm a'",
    "eval rm a",
    "PATH=. ls",
    "$x",
    "ls $(rm a)",
    "sudo rm a",
  ])("the files that a command may destroy can be any: %s", (command) => expect(judged(command)).toBe("anything"));
});
