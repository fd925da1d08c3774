import { describe, expect, it } from "vitest";
import { decide } from "../../src/permissions/decide.ts";
import { DeniedFileFinder } from "../../src/permissions/denied-files.ts";
import { denialForUser } from "../../src/permissions/messages.ts";
import type { Decision, PermissionQuestion } from "../../src/permissions/policy.ts";
import type { Access } from "../../src/protocol/permission.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { decideAccess, decideCommand, type PolicyParts, policy, rules, shellQuestion, verdict, yolo } from "./stage.ts";

const files = [
  "src/a.ts",
  "src/deep/b.ts",
  "src/c.js",
  "lib/src/a.ts",
  "docs/x.md",
  "keys/one.pem",
  "keys/deep/two.PEM",
];

async function workspace() {
  return tempFolder(
    Object.fromEntries(["out/three.pem", ...files.map((name) => `w/${name}`)].map((name) => [name, ""])),
  );
}

describe("paths in rules", () => {
  it.each([
    ["write(src/)", ["src/a.ts", "src/deep/b.ts", "src/c.js", "src/new.ts"]],
    ["write(src)", ["src/a.ts", "src/deep/b.ts", "src/c.js", "src/new.ts"]],
    ["write(./src/**)", ["src/a.ts", "src/deep/b.ts", "src/c.js", "src/new.ts"]],
    ["write(src/*.ts)", ["src/a.ts", "src/new.ts"]],
    ["write(src/**/*.ts)", ["src/a.ts", "src/deep/b.ts", "src/new.ts"]],
    ["write(**/a.ts)", ["src/a.ts", "lib/src/a.ts"]],
    ["write(src/?.js)", ["src/c.js"]],
    ["write(a.ts)", ["src/a.ts", "lib/src/a.ts"]],
    ["write(src/a.ts)", ["src/a.ts", "lib/src/a.ts"]],
  ])("an allow rule with %s allows exactly the path that it names", async (rule, expected) => {
    await using folder = await workspace();
    const root = folder.at("w");
    const allowed = [...files, "src/new.ts", "srcs/z.ts"].filter((name) => {
      const access = { kind: "write", path: `${root}/${name}`, intention: "", diff: "" } as const;
      return decideAccess(access, { root, rules: rules("allow", rule) }, "edit").decision === "allow";
    });
    expect(allowed.sort()).toEqual([...expected].sort());
  });

  it("no pattern of an allow rule reaches beyond the allowed folders or to a protected file", async () => {
    await using folder = await workspace();
    const root = folder.at("w");
    const allowing = { root, rules: rules("allow", "write(**)", "write(../**)") };
    const write = (path: string) => ({ kind: "write", path, intention: "", diff: "" }) as const;
    expect(verdict(decideAccess(write(folder.at("out/x")), allowing, "edit"))).toBe("ask policy");
    expect(verdict(decideAccess(write(`${root}/.git/config`), allowing, "edit"))).toBe("deny policy");
    expect(verdict(decideAccess(write(`${root}/src/a.ts`), allowing, "edit"))).toBe("allow rule");
  });

  it.each([
    ["read(*.pem)", ["keys/one.pem", "keys/deep/two.PEM"]],
    ["read(**/*.pem)", ["keys/one.pem", "keys/deep/two.PEM"]],
    ["read(keys/*.pem)", ["keys/one.pem"]],
    ["read(keys/**)", ["keys/one.pem", "keys/deep/two.PEM"]],
    ["read(src/d*)", ["src/deep/b.ts"]],
  ])("a deny rule with %s also denies everything below, in any spelling", async (rule, expected) => {
    await using folder = await workspace();
    const root = folder.at("w");
    const parts = { root, rules: rules("deny", rule) };
    const denied = files.filter(
      (name) => decideAccess({ kind: "read", path: `${root}/${name}` }, parts).decision === "deny",
    );
    expect(denied).toEqual(expected);
    expect(verdict(decideCommand(`cat ${expected[0]}`, parts))).toBe("deny rule");
  });

  it("deny patterns yield the files that the sandbox must hide", async () => {
    await using folder = await workspace();
    const root = folder.at("w");
    const found = async (rule: string) =>
      new DeniedFileFinder(policy({ root, rules: rules("deny", rule) }), root).find();
    const at = (...names: string[]) => names.map((name) => folder.at(name));
    expect((await found("read(*.pem)")).paths.toSorted()).toEqual(at("w/keys/deep/two.PEM", "w/keys/one.pem"));
    expect((await found("read(keys/**)")).paths).toEqual(at("w/keys"));
    expect((await found(`read(${folder.at("out")}/*.pem)`)).paths).toEqual(at("out/three.pem"));
    expect(await found("read(**)")).toMatchObject({ complete: false });
  });
});

describe("paths that need the user's consent", () => {
  const workflow = { kind: "write", path: "/srv/project/.github/workflows/ci.yml", intention: "", diff: "" } as const;
  const decided = (parts: PolicyParts & { consented?: string[] }, access: Access = workflow): Decision =>
    decide({ ...policy(parts), consented: parts.consented ?? [] }, { access, toolName: "edit", cwd: "/srv/project" });

  it("paths that need consent are denied despite rules, and the denial names the flag that allows them", () => {
    const parts = { rules: rules("allow", "write"), allowances: yolo };
    const question: PermissionQuestion = { access: workflow, toolName: "edit", cwd: "/srv/project" };
    const decision = decided(parts);
    expect(verdict(decision)).toBe("ask policy");
    expect(denialForUser(decision, question)).toContain(`allow with --allow-consent-path '${workflow.path}'`);
  });

  it("consent to a path, a folder or a pattern allows exactly these paths", () => {
    for (const path of [".github/workflows", ".github/workflows/ci.yml", ".github/**"])
      expect(verdict(decided({ consented: [path] }))).toBe("allow rule");
    expect(verdict(decided({ consented: [".circleci"] }))).toBe("ask policy");
  });

  it("paths with consent stay denied by deny rules, and consent never covers a protected file", () => {
    expect(verdict(decided({ consented: ["**"], rules: rules("deny", "write(.github)") }))).toBe("deny rule");
    expect(verdict(decided({ consented: ["**"], rules: rules("ask", "write") }))).toBe("ask rule");
    const hooks = { ...workflow, path: "/srv/project/.git/hooks/pre-commit" };
    expect(verdict(decided({ consented: ["**"] }, hooks))).toBe("deny policy");
  });

  it("commands can write to paths that need consent once there is consent", () => {
    const command = "echo x > .github/workflows/ci.yml";
    const allowing = { ...policy({ rules: rules("allow", "shell(echo)", "write") }) };
    expect(verdict(decide(allowing, shellQuestion(command)))).toBe("ask policy");
    const consented = { ...allowing, consented: [".github/workflows"] };
    expect(verdict(decide(consented, shellQuestion(command)))).toBe("allow rule");
    expect(verdict(decide(consented, shellQuestion("echo x > .vscode/tasks.json")))).toBe("deny policy");
  });
});
