import { mkdir, symlink, writeFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import type { Approval } from "../../src/permissions/approvals.ts";
import { decide } from "../../src/permissions/decide.ts";
import { allowingFlag, denialForModel, denialForUser } from "../../src/permissions/messages.ts";
import { protectionOfBoth } from "../../src/permissions/protected-paths.ts";
import { questionFor } from "../../src/permissions/question.ts";
import type { RuleEffect } from "../../src/permissions/rules.ts";
import type { Access } from "../../src/protocol/permission.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { decideAccess, decideCommand, type PolicyParts, policy, rules, shellQuestion, verdict, yolo } from "./stage.ts";

const commands = (...commandIdentifiers: string[]) => ({ kind: "commands" as const, commandIdentifiers });
const write = (path: string) => ({ kind: "write" as const, path, diff: "", intention: "" });
const read = (path: string) => ({ kind: "read" as const, path });
const url = (address: string) => ({ kind: "url" as const, url: address, intention: "" });
const mcp = (toolName: string) => ({
  kind: "mcp" as const,
  serverName: "github",
  toolName,
  toolTitle: toolName,
  readOnly: true,
});

describe("the order of a decision", () => {
  const allow = rules("allow", "shell(make:*)");
  const cases: [string, PolicyParts, string][] = [
    ["nothing said", {}, "ask default"],
    ["mode", { allowances: yolo }, "allow mode"],
    ["location", { location: [commands("make")], allowances: yolo }, "allow location"],
    ["session before location", { session: [commands("make")], location: [commands("make")] }, "allow session"],
    ["allow before session", { rules: allow, session: [commands("make")] }, "allow rule"],
    ["ask before allow", { rules: [...allow, ...rules("ask", "shell(make)")], allowances: yolo }, "ask rule"],
    ["deny before ask", { rules: [...rules("ask", "shell"), ...rules("deny", "shell(make all)")] }, "deny rule"],
    [
      "deny before a more specific allow",
      { rules: [...rules("allow", "shell(make all)"), ...rules("deny", "shell")] },
      "deny rule",
    ],
    [
      "deny before everything",
      { rules: rules("deny", "shell(make:*)"), session: [commands("make")], allowances: yolo },
      "deny rule",
    ],
  ];
  it.each(cases)("permission decisions follow their order: %s", (_, parts, expected) => {
    expect(verdict(decideCommand("make all", parts))).toBe(expected);
  });

  const accesses: [string, Access, string, string][] = [
    ["write", write("src/a.ts"), "write", "write(src/a.ts)"],
    ["read", read("src/a.ts"), "read", "read(src/a.ts)"],
    ["url", url("https://good.com/x"), "url", "url(good.com)"],
    ["mcp", mcp("delete"), "github", "github(delete)"],
  ];
  it.each(accesses)(
    "the permission policy puts deny before ask and ask before allow for %s",
    (_, access, wide, narrow) => {
      const decided = (...ruled: [RuleEffect, string][]): string =>
        verdict(
          decideAccess(access, { rules: ruled.flatMap(([effect, text]) => rules(effect, text)), allowances: yolo }),
        );
      expect(decided(["allow", narrow], ["deny", wide])).toBe("deny rule");
      expect(decided(["ask", narrow], ["deny", wide])).toBe("deny rule");
      expect(decided(["allow", narrow], ["ask", wide])).toBe("ask rule");
      expect(decided(["ask", narrow])).toBe("ask rule");
      expect(decided(["allow", narrow])).toBe("allow rule");
    },
  );

  it("a command that leaves the sandbox needs an answer, whatever the mode allows", () => {
    const access = { kind: "sandbox-off", command: "make", intention: "" } as const;
    expect(verdict(decideAccess(access, { allowances: yolo }))).toBe("ask policy");
    expect(verdict(decideAccess(access, { rules: rules("allow", "sandbox-off") }))).toBe("allow rule");
  });

  it("hard policy comes before every permission rule", () => {
    const parts = {
      rules: rules("allow", "write", "write(.git/config)"),
      session: [{ kind: "write" as const }],
      allowances: yolo,
    };
    expect(verdict(decideAccess(write("/srv/project/.git/config"), parts))).toBe("deny policy");
  });

  it("the user is asked about an extension's secrets whatever is allowed, and about more than was approved", () => {
    const secrets = (...environmentVariables: string[]) =>
      ({ kind: "extension-env-access", extensionName: "e", environmentVariables }) as const;
    const able = (...capabilities: string[]) =>
      ({ kind: "extension-permission-access", extensionName: "e", capabilities }) as const;
    expect(verdict(decideAccess(secrets("A_KEY"), { allowances: yolo }))).toBe("ask policy");
    expect(verdict(decideAccess(able("run x without asking"), { allowances: yolo }))).toBe("allow mode");
    const session = [secrets("A_KEY"), able("run x without asking")].map((one) => structuredClone(one) as Approval);
    expect(verdict(decideAccess(secrets("A_KEY"), { session }))).toBe("allow session");
    expect(verdict(decideAccess(secrets("A_KEY", "B_KEY"), { session }))).toBe("ask policy");
    expect(verdict(decideAccess(able("run x without asking"), { session }))).toBe("allow session");
    expect(verdict(decideAccess(able("answer permission requests in your place"), { session }))).toBe("ask default");
  });

  it("a permission decision gives the rule, its source and a reason", () => {
    const [rule] = rules("deny", "shell(rm *)");
    expect(decideCommand("rm -rf x", { rules: rule ? [rule] : [], allowances: yolo })).toEqual({
      decision: "deny",
      by: "rule",
      rule,
      reason: "denied by the rule shell(rm *) (--deny-tool)",
    });
  });
});

describe("shell rules", () => {
  const cases: [string, string, string][] = [
    ["shell(git push)", "git push origin main", "allow rule"],
    ["shell(git push)", "git pull", "ask default"],
    ["shell(git:*)", "git push", "allow rule"],
    ["shell(git *)", "git push", "allow rule"],
    ["shell(git:*)", "gitea push", "ask default"],
    ["shell(git)", "git push", "ask default"],
    ["shell(npm run build)", "npm run build", "allow rule"],
    ["shell(npm run build)", "npm run deploy", "ask default"],
    ["shell(npm run build:*)", "npm run build --watch", "allow rule"],
    ["shell(grep)", "./grep x", "ask default"],
    ["shell(grep)", "/usr/bin/grep x", "ask default"],
    ["shell(make)", "timeout 5 make", "allow rule"],
    ["shell(make)", "sudo make", "ask default"],
    ["shell(make)", "env make", "ask default"],
    ["shell(make)", "make $(id)", "ask default"],
    ["shell(make)", "make; ls", "ask default"],
    ["shell(make)", "make > out.txt", "ask default"],
    ["shell(make)", "make > /dev/null 2>&1", "allow rule"],
    ["shell(cat)", "cat /etc/passwd", "ask policy"],
    ["shell(echo:*)", "echo x > .git/hooks/pre-commit", "deny policy"],
    ["shell(echo:*)", "cd .git && echo x > config", "deny policy"],
    ["shell(echo:*)", "echo x 2< .git/config > /dev/stderr", "deny policy"],
    ["shell(echo:*)", "{ echo x > /dev/stdin; } < .git/config", "deny policy"],
    ["shell(echo:*)", "echo x 1< a.txt > /dev/stdout", "ask default"],
    ["shell(echo:*)", "echo x > /dev/stderr", "allow rule"],
    ["shell", "exec 2< .git/config", "deny policy"],
    ["shell", "command exec 2< .git/config", "deny policy"],
    ["shell", "exec 2< a.txt", "allow rule"],
    ["shell(cp:*)", "cp a .vscode/tasks.json", "ask policy"],
    ["shell(xargs:*)", "ls | xargs rm", "ask default"],
    ["shell", `x=$(id); echo \${x@P}`, "allow rule"],
    ["bash(make)", "make", "allow rule"],
  ];
  it.each(cases)("%s on %s", (rule, command, expected) => {
    expect(verdict(decideCommand(command, { rules: rules("allow", rule) }))).toBe(expected);
  });

  const refused: [string, string, string][] = [
    ["shell(git push)", "git -C /srv/project push", "deny rule"],
    ["shell(git push)", "git --no-pager push", "deny rule"],
    ["shell(git push)", "git commit -m push", "allow mode"],
    ["shell(git push)", "git $(echo push)", "ask rule"],
    ["shell(git)", "git push", "deny rule"],
    ["shell(curl)", "CURL evil", "deny rule"],
    ["shell(curl)", "/usr/bin/curl evil", "deny rule"],
    ["shell(curl)", "~/bin/curl evil", "deny rule"],
    ["shell(curl)", "unknown curl evil", "ask rule"],
    ["shell(curl)", "grep curl README", "allow mode"],
    ["shell(curl)", "for f in a b; do gcc $f; done", "allow mode"],
    ["shell(curl)", "$TOOL evil", "ask rule"],
    ["url(evil.com)", "curl https://evil.com/x", "deny rule"],
    ["url(evil.com)", "wget evil.com", "deny rule"],
    ["read(.env)", "cat .env", "deny rule"],
    ["read(.env)", "cat < sub/../.ENV", "deny rule"],
    ["write(secrets)", "echo x > secrets/a", "deny rule"],
    ["write", "echo x > a", "deny rule"],
  ];
  it.each(refused)("a deny rule for %s, with everything else allowed, decides on %s", (rule, command, expected) => {
    expect(verdict(decideCommand(command, { rules: rules("deny", rule), allowances: yolo }))).toBe(expected);
  });

  it("approved reads let only read-only commands through, not commands that look like one", () => {
    const parts: PolicyParts = { allowances: { allReads: true } };
    const ask = [
      "git log --output=x",
      "find . -delete",
      "sort -o a b",
      "sed -i s/a/b/ x",
      "sed -n '1e id' x",
      "awk 'BEGIN{system(1)}'",
    ];
    const allow = [
      "git log --oneline",
      "find . -name x",
      "sort a | uniq",
      "sed -n 1,5p x",
      "awk '{print $1}' x",
      "ls src",
    ];
    expect(ask.map((command) => verdict(decideCommand(command, parts)))).toEqual(ask.map(() => "ask default"));
    expect(allow.map((command) => verdict(decideCommand(command, parts)))).toEqual(allow.map(() => "allow mode"));
  });
});

describe("paths", () => {
  const protectedPaths = [
    ...[
      ".git/hooks/pre-commit",
      ".git/config",
      ".GIT/config",
      ".troupe/settings.json",
      ".mcp.json",
      ".vscode/tasks.json",
    ],
    ...[".idea/x.xml", ".envrc", ".gitmodules", "sub/.git/config", ".bashrc", "../state/permissions-config.json"],
    ...["../main/.git/worktrees/x/config", ".g\u200cit/config", ".vscode./tasks.json", "linked/tasks.json"],
    ...[".github/hooks/x.json", ".github/hooks", ".github/mcp.json", ".github/copilot/settings.local.json"],
    ...[".claude/settings.json", "sub/.Claude/settings.local.json", ".claude/hooks/x.sh", ".claude./settings.json"],
    ...["/srv/state/session-state/1/files/.vscode/tasks.json"],
    ...[".github/extensions/x/extension.mjs", "sub/.GitHub/Extensions/x/main.js", ".github/copilot/x"],
    ...[".v\u017fcode/tasks.json", ".git\u00ad/config", ".\ufe0fmcp.json", "git~1/config", "sub\\.git\\config"],
  ];
  it.each(protectedPaths)(
    "the permission policy refuses to write %s, even with everything allowed and when it is missing",
    (path) => {
      expect(verdict(decideAccess(write(path), { rules: rules("allow", "write"), allowances: yolo }))).toBe(
        "deny policy",
      );
    },
  );

  it("the permission policy refuses what a link of a protected name leads to, by the name that was written", () => {
    const access: Access = {
      ...write("/srv/project/other/tasks.json"),
      written: "/srv/project/sub/.vscode/tasks.json",
    };
    expect(verdict(decideAccess(access, { rules: rules("allow", "write"), allowances: yolo }))).toBe("deny policy");
  });

  it.each([".github/agents/a.md", ".claude/agents/a.md", ".claude/skills/x/run.sh", ".github/copilot-instructions.md"])(
    "the permission policy leaves %s to the rules",
    (path) => {
      expect(verdict(decideAccess(write(path), { rules: rules("allow", "write") }))).toBe("allow rule");
    },
  );

  it("the permission policy lets a session write its own files where the state has its usual name", () => {
    const places = {
      stateRoot: "/home/u/.troupe",
      writable: ["/home/u/.troupe/session-state/1/files", "/home/u/.troupe/session-state/1/worktrees/2"],
      gitFolders: [],
      linkTargets: [],
    };
    const at = (path: string) =>
      protectionOfBoth({ real: `/home/u/.troupe/${path}`, written: `/home/u/.troupe/${path}` }, places);
    expect(at("session-state/1/files/plan.md")).toBeUndefined();
    expect(at("session-state/1/worktrees/2/src/a.ts")).toBeUndefined();
    expect(at("session-state/1/worktrees/2/.vscode/tasks.json")).toBe("deny");
    expect(at("session-state/1/worktrees/2/.git")).toBe("deny");
    expect(at("settings.json")).toBe("deny");
  });

  it.each([".gitattributes", ".github/workflows/ci.yml", ".gitlab-ci.yml"])(
    "the permission policy asks a person about %s",
    (path) => {
      expect(verdict(decideAccess(write(path), { rules: rules("allow", "write"), allowances: yolo }))).toBe(
        "ask policy",
      );
    },
  );

  it("the permission policy lets a session write its own files below the state root", () => {
    const parts: PolicyParts = { rules: rules("allow", "write"), allowances: yolo };
    expect(verdict(decideAccess(write("/srv/state/session-state/1/files/plan.md"), parts))).toBe("allow rule");
  });

  it("the permission policy reads inside the roots by default, and asks outside of them", () => {
    expect(verdict(decideAccess(read("src/a.ts")))).toBe("allow default");
    expect(verdict(decideAccess(read("/srv/project-evil/a.ts")))).toBe("ask policy");
    expect(verdict(decideAccess(read("src/a.ts"), { allowances: { askReads: true } }))).toBe("ask default");
  });

  it("a rule's path matches the whole path or its last parts", () => {
    const allowed = rules("allow", "write(docs/a.md)", "write(/srv/project/b.md)");
    const ask = (path: string): string => verdict(decideAccess(write(path), { rules: allowed }, "edit"));
    expect(["docs/a.md", "sub/docs/a.md", "xdocs/a.md", "b.md", "sub/b.md", "docs/../docs/a.md"].map(ask)).toEqual([
      "allow rule",
      "allow rule",
      "ask default",
      "allow rule",
      "ask default",
      "allow rule",
    ]);
  });

  it("the permission policy follows links before it compares", async () => {
    await using folder = await tempFolder({ "real/.env": "x" });
    await symlink(folder.at("real"), folder.at("link"));
    await symlink(folder.at("real/.env"), folder.at("harmless"));
    await mkdir(folder.at(".git"));
    await symlink(folder.at(".git/config"), folder.at("dangling"));
    await writeFile(folder.at("note"), "");
    const parts: PolicyParts = {
      root: folder.path,
      rules: [...rules("deny", "read(real/.env)"), ...rules("allow", "write")],
    };
    expect(["link/.env", "harmless", "note"].map((path) => verdict(decideAccess(read(path), parts)))).toEqual([
      "deny rule",
      "deny rule",
      "allow default",
    ]);
    expect(verdict(decideAccess(write("dangling"), parts))).toBe("deny policy");
  });

  it("the permission policy denies a link by the name it has, wherever it leads", async () => {
    await using folder = await tempFolder({ plain: "x", "sub/other": "" });
    await symlink(folder.at("plain"), folder.at("sub/.env"));
    const parts: PolicyParts = { root: folder.path, rules: rules("deny", "read(.env)") };
    expect(verdict(decideAccess(read(folder.at("sub/.env")), parts))).toBe("deny rule");
    expect(verdict(decideAccess(read(folder.at("plain")), parts))).toBe("allow default");
  });

  it("the permission policy denies editing a file that may not be read, and allows replacing it", () => {
    const parts: PolicyParts = { rules: [...rules("deny", "read(src/key.txt)"), ...rules("allow", "write")] };
    expect(verdict(decideAccess(write("src/key.txt"), parts, "edit"))).toBe("deny rule");
    expect(verdict(decideAccess(write("src/key.txt"), parts, "create"))).toBe("allow rule");
    expect(verdict(decideAccess(write("src/other.txt"), parts, "edit"))).toBe("allow rule");
  });

  it("a rule that names a tool applies to that tool only", () => {
    const parts: PolicyParts = { rules: rules("allow", "create") };
    expect(verdict(decideAccess(write("a"), parts, "create"))).toBe("allow rule");
    expect(verdict(decideAccess(write("a"), parts, "edit"))).toBe("ask default");
  });
});

describe("addresses and foreign tools", () => {
  it("the permission policy decides addresses by rule and mode", () => {
    const parts: PolicyParts = { rules: [...rules("allow", "url(*.good.com)"), ...rules("deny", "url(bad.good.com)")] };
    const ask = (address: string): string => verdict(decideAccess(url(address), parts, "web_fetch"));
    expect(["https://good.com/x", "http://good.com", "https://bad.good.com", "http://bad.good.com"].map(ask)).toEqual([
      "allow rule",
      "ask default",
      "deny rule",
      "deny rule",
    ]);
    expect(verdict(decideAccess(url("https://x.com"), { allowances: { allTools: true } }, "web_fetch"))).toBe(
      "ask default",
    );
    expect(verdict(decideAccess(url("https://x.com"), { allowances: yolo }, "web_fetch"))).toBe("allow mode");
  });

  it("the permission policy decides MCP tools by server and tool, never by what the server says of itself", () => {
    expect(verdict(decideAccess(mcp("search"), {}, "github-search"))).toBe("ask default");
    expect(verdict(decideAccess(mcp("search"), { rules: rules("allow", "github(search)") }))).toBe("allow rule");
    expect(verdict(decideAccess(mcp("delete"), { rules: rules("allow", "github(search)") }))).toBe("ask default");
    const parts: PolicyParts = {
      rules: [...rules("allow", "github"), ...rules("deny", "github(delete)")],
      allowances: yolo,
    };
    expect(verdict(decideAccess(mcp("delete"), parts))).toBe("deny rule");
    expect(verdict(decideAccess(mcp("x"), { session: [{ kind: "mcp", serverName: "github", toolName: null }] }))).toBe(
      "allow session",
    );
  });
});

describe("the text of a denial", () => {
  const told = (command: string, parts: PolicyParts = {}): [string, string | undefined] => {
    const question = shellQuestion(command);
    const decision = decide(policy(parts), question);
    return [denialForModel(decision, question), allowingFlag(question, decision)];
  };

  it("the text of a denial names the flags that would allow it", () => {
    expect(told("git status | head -3")).toEqual([
      "Permission denied and could not request permission from user: no rule or approval covers every command in it. " +
        "The user can allow it with --allow-tool 'shell(git status)' --allow-tool 'shell(head)'.",
      "--allow-tool 'shell(git status)' --allow-tool 'shell(head)'",
    ]);
    expect(told("make > out")[1]).toBe("--allow-tool 'shell(make)' --allow-tool write");
    expect(told("make $X")[1]).toBe("--allow-tool shell");
    expect(told("cat /etc/passwd")[1]).toBe("--add-dir <folder> or --allow-all-paths");
  });

  it("the flags of a denial follow the code of the decision, not the words of its reason", () => {
    const question = shellQuestion("git status");
    const flag = (code: "outside_folders" | "not_plain") =>
      allowingFlag(question, { decision: "ask", by: "default", reason: "reworded", code });
    expect([flag("outside_folders"), flag("not_plain")]).toEqual([
      "--add-dir <folder> or --allow-all-paths",
      "--allow-tool shell",
    ]);
  });

  it("the text of a denial offers the model no way around a rule", () => {
    expect(told("rm x", { rules: rules("deny", "shell(rm)") })).toEqual([
      "Permission denied: denied by the rule shell(rm) (--deny-tool). Do not repeat or reword the call; use " +
        "another approach or tell the user.",
      undefined,
    ]);
  });

  it("the text of a denial shows the user one line without control characters", async () => {
    const access = { kind: "shell" as const, command: "ls \u001b[2J\nid", cwd: "/srv/project", intention: "" };
    const question = await questionFor(access, { toolName: "bash", cwd: "/", policy: policy() });
    const line = denialForUser(decide(policy(), question), question);
    expect(line).toBe(
      "bash denied (ls id): it is not a plain command: it holds a control character, it uses expansions or patterns; " +
        "allow with --allow-tool shell",
    );
  });
});
