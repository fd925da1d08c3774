import { mkdirSync, symlinkSync } from "node:fs";
import { homedir } from "node:os";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { decide } from "../../src/permissions/decide.ts";
import { isUnsettled, realPathOf } from "../../src/permissions/resolve-path.ts";
import { type TempFolder, tempFolder } from "../../src/testing/temp-folder.ts";
import { decideAccess, decideCommand, policy, rules, shellQuestion, verdict, yolo } from "./stage.ts";

let folder: TempFolder;
let root: string;

beforeAll(async () => {
  folder = await tempFolder({
    "ws/.git/config": "",
    "ws/.git/hooks/sample": "",
    "ws/sub/deep/file": "",
    "ws/plain.txt": "",
    "out/kept": "",
    "home/x": "",
  });
  root = folder.at("ws");
  const links = { l: ".git/hooks", o: "../out", config: ".git/config", d: "../out/new", s: "sub/deep", loop: "loop" };
  for (const [name, target] of Object.entries(links)) symlinkSync(target, folder.at(`ws/${name}`));
  symlinkSync("../out/kept", folder.at("ws/bare"));
  mkdirSync(folder.at("ws/empty"));
});
afterAll(() => folder.remove());

const narrow = () => ({
  root,
  rules: rules("allow", "write", ...PROGRAMS.map((name) => `shell(${name}:*)`)),
});
const PROGRAMS = "echo cat tee cd pushd popd ln mv cp mkdir touch dd sort tar git head env".split(" ");

describe("targets of paths", () => {
  it.each([
    ["l/../config", ".git/config"],
    ["s/../x", "sub/x"],
    ["./sub/../plain.txt", "plain.txt"],
    ["l/../../plain.txt", "plain.txt"],
    ["missing/a", "missing/a"],
    ["s/missing/a", "sub/deep/missing/a"],
  ])("paths in commands are resolved through links before `..`: %s", (path, expected) => {
    expect(realPathOf(path, root)).toBe(folder.at(`ws/${expected}`));
  });

  it("a path in a command leaves a folder where its link leads", () => {
    expect(realPathOf("o/../home/x", root)).toBe(folder.at("home/x"));
    expect(realPathOf("d", root)).toBe(folder.at("out/new"));
    expect(realPathOf("~", root)).toBe(realPathOf(homedir(), "/"));
  });

  it("paths in commands are uncertain behind missing names and circular links", () => {
    expect(["missing/../x", "loop/x", "s/none/../x"].map((path) => isUnsettled(path, root))).toEqual([
      true,
      true,
      true,
    ]);
    expect(["l/../x", "missing/x", "./sub/../x", ".."].some((path) => isUnsettled(path, root))).toBe(false);
  });
});

describe("protected files, by the text of a command", () => {
  it.each([
    "echo y > l/../config",
    "echo y > l/pre-commit",
    "echo y >| l/x",
    "echo y &> l/x",
    "echo y <> l/x",
    "echo y >> config",
    "cd .git/hooks && echo y > pre-commit",
    "cd l && echo y > pre-commit",
    "cd sub && cd .. && echo y > .git/config",
    "cd empty; echo y > ../.git/config",
  ])("a redirection in a command never writes a protected file: %s", (command) => {
    for (const parts of [narrow(), { root, allowances: yolo }]) {
      expect(verdict(decideCommand(command, parts))).toBe("deny policy");
    }
  });

  it.each([
    "tee config",
    "tee l/x",
    "dd if=plain.txt of=l/pre-commit",
    "cp plain.txt --target-directory=l",
    "cp -tl plain.txt",
    "sort -oconfig plain.txt",
    "sort --output=config plain.txt",
    "tar -Cl -xf a.tar",
    "git --git-dir=.git -C sub config x y",
    "cd l && touch pre-commit",
    "echo y > missing/../x",
  ])("a program in a command needs permission when it receives the name of a protected file: %s", (command) => {
    for (const parts of [narrow(), { root, allowances: yolo }])
      expect(decideCommand(command, parts).decision).toBe("ask");
  });
});

describe("paths outside the allowed folders, by the text of a command", () => {
  it.each([
    "cat bare",
    "cat -- bare",
    "tee d",
    "cat o/kept",
    "cat sub/../o/../home/x",
    "head -n1 -v ../out/kept",
    "cat --number=../out/kept",
    "cat file://../out/kept",
    "sort -T../out plain.txt",
    "cd",
    "cd && cat x",
    "cd -",
    "cd sub && cd -",
    "pushd ../out",
    "pushd sub && popd && touch x",
    "cd o && touch x",
    "cd o && cat ../home/x",
    "cd sub || cat ../out/kept",
    "cd sub; cat ../out/kept",
    "(cd sub); cat ../out/kept",
    "cd sub | cat ../out/kept",
    "cd sub & cat ../out/kept",
    "env -C ../out cat kept",
  ])("a command with a path outside the allowed folders needs an answer: %s", (command) => {
    expect(verdict(decideCommand(command, narrow()))).toMatch(/^ask/);
  });

  it.each([
    "cat plain.txt",
    "cat s/file",
    "cd sub && cat ../plain.txt",
    "cd sub/deep && cat ../../plain.txt",
    "cd s && cat file",
    "cd sub && cd .. && cat plain.txt",
    "(cat plain.txt) | head",
    "echo ../out/kept-not-there/x",
    "echo y > new.txt",
    "tee new.txt",
  ])("a command with paths inside the allowed folders is allowed, and asked about in a subshell: %s", (command) => {
    const { decision } = decideCommand(command, narrow());
    expect([command, decision]).toEqual([command, command.startsWith("(") ? "ask" : "allow"]);
  });
});

describe("commands that change the targets of paths", () => {
  it.each([
    "ln -s sub q && echo x > q/pre-commit",
    "mv s t && echo x > t/a",
    "cp -a s t && tee t/a",
    "git checkout other && echo x > sub/a",
    "tar xf a.tar && echo x > sub/a",
  ])("require the user's decision about later writes: %s", (command) => {
    const decision = decideCommand(command, narrow());
    expect(decision.decision).toBe("ask");
  });

  it.each(["mv plain.txt other.txt", "ln -s sub q", "git checkout other && cat plain.txt"])(
    "commands that change the targets of paths are allowed when they run alone: %s",
    (command) => {
      expect(decideCommand(command, narrow()).decision).toBe("allow");
    },
  );
});

describe("a shell that may have changed its folder", () => {
  const decided = (command: string): string => {
    const { cwd: _, ...question } = shellQuestion(command, root);
    return verdict(decide(policy(narrow()), { ...question, cwd: root, folderUnknown: true }));
  };

  it("narrow rules for relative paths do not apply in a shell that may have changed its folder", () => {
    expect(decided("echo y > pre-commit")).toBe("ask default");
    expect(decided("cat sub/deep/file")).toBe("ask default");
    expect(decided("echo done")).toBe("allow rule");
  });
});

describe("file tools", () => {
  it("file tools resolve `..` by its text, and a link on the way opens nothing", () => {
    const denied = { root, rules: rules("deny", `read(${folder.at("ws/config")})`) };
    const read = (path: string) => ({ kind: "read" as const, path });
    expect(verdict(decideAccess(read("l/../config"), denied))).toBe("deny rule");
    expect(verdict(decideAccess(read("o/../plain.txt"), { root }))).toBe("ask policy");
  });
});
