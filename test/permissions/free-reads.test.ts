import { describe, expect, it } from "vitest";
import { decide } from "../../src/permissions/decide.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { type PolicyParts, policy, rules, shellQuestion, verdict } from "./stage.ts";

function decided(command: string, root: string, parts: PolicyParts = {}, more: object = { confined: true }): string {
  return verdict(decide(policy({ root, ...parts }), { ...shellQuestion(command, root), ...more }));
}

const FREE = [
  ...["ls", "ls -la src", "cat a.txt | head -5", "cd src && ls", "pwd", "ls 2>/dev/null", "wc -l a.txt"],
  ...["grep -rn foo src", "rg foo", "find . -name '*.ts'", "find . -type f | wc -l", "sed -n 1,20p a.txt"],
  ...["git status", "git log --oneline -5", "git diff HEAD~1 -- src", "git show HEAD --stat", "git --no-pager diff"],
  ...["git branch --show-current", "git stash list", "git blame a.txt", "git diff | cat"],
];
const ASKED = [
  ...["echo hi > b.txt", "ls; rm a.txt", "find . -delete", "sed -i s/a/b/ a.txt", "git commit -m x", "git stash"],
  ...["git log --output=x", "git -c core.pager=x log", "git -C .. log", "npm test", "node -e 1", "ls $(id)"],
  ...["cat /etc/passwd", "cat ../other/a", "ls ~", "ls /", "git diff --no-index a.txt /etc/passwd"],
  ...["grep -R foo .", "find -L .", "find . -follow", "rg -L foo", "diff -r src other", "sort --files0-from=a.txt"],
  ...["awk '{print}' a.txt", "jq . a.txt", "ps", "printenv", "git config --list", "env", "sleep 5", "./ls"],
];

describe("commands that need no rule in the sandbox", () => {
  it("sandboxed commands that only read in the allowed folders need no rule", async () => {
    await using folder = await tempFolder({ "a.txt": "", "src/b.ts": "", ".git/HEAD": "" });
    expect(FREE.map((one) => [one, decided(one, folder.path)])).toEqual(FREE.map((one) => [one, "allow default"]));
  });

  it("sandboxed commands that write, run programs, follow links or leave the allowed folders ask", async () => {
    const names = ["w/a.txt", "w/src/b.ts", "w/other/b.ts", "w/.git/HEAD", "other/a"];
    await using folder = await tempFolder(Object.fromEntries(names.map((name) => [name, ""])));
    const root = folder.at("w");
    expect(ASKED.filter((one) => !decided(one, root).startsWith("ask "))).toEqual([]);
  });

  it("every command needs an answer when no sandbox confines it", async () => {
    await using folder = await tempFolder({ "a.txt": "", "src/b.ts": "", ".git/HEAD": "" });
    const asked = FREE.map((one) => [one, decided(one, folder.path, {}, {})]);
    expect(asked).toEqual(FREE.map((one) => [one, "ask default"]));
  });

  it("deny and ask rules win over free reads in the sandbox", async () => {
    await using folder = await tempFolder({ "a.txt": "", "secret.txt": "", ".git/HEAD": "" });
    const denied = (rule: string, command: string) => decided(command, folder.path, { rules: rules("deny", rule) });
    expect(denied("shell", "ls")).toBe("deny rule");
    expect(denied("shell(ls)", "ls")).toBe("deny rule");
    expect(denied("shell(git)", "cd . && git status")).toBe("deny rule");
    expect(denied("read(secret.txt)", "cat secret.txt")).toBe("deny rule");
    expect(denied("read(secret.txt)", "grep -r x .")).toBe("ask rule");
    expect(decided("ls", folder.path, { rules: rules("ask", "shell(ls)") })).toBe("ask rule");
  });

  it("git needs an answer when the repository reaches beyond the allowed folders", async () => {
    await using folder = await tempFolder({ ".git/HEAD": "", "sub/a.txt": "" });
    expect(decided("git log -p", folder.at("sub"))).toBe("ask default");
    expect(decided("ls", folder.at("sub"))).toBe("allow default");
    expect(decided("git log -p", folder.path)).toBe("allow default");
  });

  it("decisions for free reads require confinement, and no other decisions do", async () => {
    await using folder = await tempFolder({ "a.txt": "" });
    const question = { ...shellQuestion("ls", folder.path), confined: true };
    expect(decide(policy({ root: folder.path }), question)).toMatchObject({ decision: "allow", confined: true });
    const allowed = policy({ root: folder.path, rules: rules("allow", "shell(ls)") });
    expect(decide(allowed, question)).not.toHaveProperty("confined");
  });
});
