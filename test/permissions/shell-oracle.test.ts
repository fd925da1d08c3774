import { spawnSync } from "node:child_process";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { decide } from "../../src/permissions/decide.ts";
import type { ShellAnalysis } from "../../src/permissions/shell/analyse.ts";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { generateCommand, random } from "./generate.ts";
import { generatePathCommand, LINKS } from "./generate-paths.ts";
import { baseline, type PolicyParts, policy, rules, shellQuestion, yolo } from "./stage.ts";
import { createTracer } from "./tracer.ts";

const COUNT = process.env.TROUPE_SLOW ? 10_000 : 150;
const LANES = 4;
const SEED = Number(process.env.TROUPE_SEED ?? 20260401);

const denied = rules("deny", "shell(curl *)", "shell(rm)", "shell(wget:*)", "shell(git push)");
const policies: Record<string, PolicyParts> = {
  "everything but": { rules: denied, allowances: yolo },
  "the shell but": { rules: [...denied, ...rules("allow", "shell", "write")], allowances: { allPaths: true } },
  baseline: { rules: [...baseline, ...denied], allowances: { allPaths: true } },
  "wrappers allowed": {
    rules: [
      ...denied,
      ...rules(
        "allow",
        "write",
        ...["env", "bash", "sh", "xargs", "timeout", "setsid", "find"].map((name) => `shell(${name}:*)`),
      ),
      ...rules(
        "allow",
        ...["echo", "true", "foo", "cat", "ls", "git", "grep", "make"].map((name) => `shell(${name}:*)`),
      ),
    ],
    allowances: { allPaths: true },
  },
};

/** Bash runs these itself unless a program starts them. */
const BUILTINS = new Set(["echo", "true", "printf", "command", "test", "[", ":"]);
const SHELLS = new Set(["sh", "bash", "command"]);

interface Tally {
  commands: number;
  plain: number;
  deniedRan: number;
  allowed: Record<string, number>;
  violations: string[];
  disagreements: string[];
}

describe.skipIf(!existsSync("/bin/bash") || process.platform !== "linux")(
  "the analysis of commands compared with bash",
  () => {
    it(`the analysis runs no denied program under an allow, and reads plain commands as bash does (${COUNT} commands)`, {
      timeout: COUNT * 500,
    }, async () => {
      await using folder = await tempFolder();
      const next = random(SEED);
      const commands = Array.from({ length: COUNT }, () => generateCommand(next));
      const tally: Tally = { commands: 0, plain: 0, deniedRan: 0, allowed: {}, violations: [], disagreements: [] };
      const lane = async (number: number): Promise<void> => {
        const tracer = createTracer(folder.at(`lane-${number}`));
        for (let command = commands.pop(); command !== undefined; command = commands.pop()) {
          judge(tally, command, await tracer.run(command));
        }
      };
      await Promise.all(Array.from({ length: LANES }, (_, number) => lane(number)));
      if (process.env.TROUPE_SLOW) console.log({ ...tally, seed: SEED });
      expect({ violations: tally.violations, disagreements: tally.disagreements }).toEqual({
        violations: [],
        disagreements: [],
      });
      // A tracer that sees nothing, or an analysis that calls nothing plain, would prove nothing.
      expect(tally.deniedRan).toBeGreaterThan(COUNT / 10);
      expect(tally.plain).toBeGreaterThan(COUNT / 10);
      expect(Object.values(tally.allowed).every((count) => count > COUNT / 100)).toBe(true);
    });
  },
);

/** How many commands are tried for where they write; about a fifth is allowed and runs. */
const PATH_COUNT = process.env.TROUPE_SLOW ? 20_000 : 800;

describe.skipIf(!existsSync("/bin/bash") || process.platform !== "linux")(
  "the analysis of commands compared with bash and real links",
  () => {
    it(`commands write nothing outside and nothing protected under narrow rules (${PATH_COUNT} commands)`, {
      timeout: 300_000 + PATH_COUNT * 50,
    }, async () => {
      await using folder = await tempFolder();
      // Deep enough for every `..` of a command to stay in the folder of the test.
      const base = folder.at("1/2/3/4/5/6/7/8");
      const programs = "echo tee touch cp dd sort mkdir ln mv cd pushd".split(" ");
      const allowed = rules("allow", "write", ...programs.map((name) => `shell(${name}:*)`));
      const next = random(SEED);
      const violations: string[] = [];
      let ran = 0;
      let expected = setUp(base);
      for (let count = 0; count < PATH_COUNT; count++) {
        const command = generatePathCommand(next);
        const { decision } = decide(
          policy({ rules: allowed, root: join(base, "ws") }),
          shellQuestion(command, join(base, "ws")),
        );
        if (decision !== "allow") continue;
        ran++;
        spawnSync("/bin/bash", ["--norc", "--noprofile", "-c", command], {
          cwd: join(base, "ws"),
          env: { PATH: "/usr/bin:/bin", HOME: join(base, "home") },
          stdio: "ignore",
          timeout: 60_000,
        });
        if (guarded(base) !== expected) violations.push(command);
        if (guarded(base) !== expected || ran % 10 === 0) expected = setUp(base);
      }
      if (process.env.TROUPE_SLOW) console.log({ ran, of: PATH_COUNT, seed: SEED });
      expect(violations).toEqual([]);
      expect(ran).toBeGreaterThan(PATH_COUNT / 50);
    });
  },
);

/** Makes the folder anew. Returns what must stay as it is. */
function setUp(base: string): string {
  rmSync(base, { recursive: true, force: true });
  for (const path of ["ws/.git/hooks", "ws/sub/deep", "out", "home"]) mkdirSync(join(base, path), { recursive: true });
  for (const path of ["ws/.git/config", "ws/.git/hooks/sample", "out/kept", "ws/seed", "ws/a"]) {
    writeFileSync(join(base, path), "kept\n");
  }
  for (const [name, target] of Object.entries(LINKS)) symlinkSync(target, join(base, "ws", name));
  return guarded(base);
}

/** Everything outside the workspace, and what is protected in it. */
function guarded(base: string): string {
  const seen: string[] = [];
  const look = (path: string): void => {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat === undefined) return;
    seen.push(path, stat.isFile() ? readFileSync(path, "utf8") : "");
    if (stat.isDirectory() && path !== join(base, "ws")) for (const name of readdirSync(path)) look(join(path, name));
  };
  look(base);
  for (const name of [".git", ".vscode"]) look(join(base, "ws", name));
  return seen.join("\n");
}

function judge(tally: Tally, command: string, ran: string[][]): void {
  const question = shellQuestion(command);
  tally.commands++;
  const forbidden = ran.filter(isDenied);
  if (forbidden.length > 0) tally.deniedRan++;
  for (const [name, parts] of Object.entries(policies)) {
    const { decision } = decide(policy(parts), question);
    tally.allowed[name] = (tally.allowed[name] ?? 0) + (decision === "allow" ? 1 : 0);
    if (decision === "allow" && forbidden.length > 0) tally.violations.push(`${name}: ${JSON.stringify(command)}`);
  }
  if (!question.analysis?.plain) return;
  tally.plain++;
  if (!agrees(question.analysis, ran)) {
    tally.disagreements.push(`${JSON.stringify(command)} ran ${JSON.stringify(ran)}`);
  }
}

function isDenied([program = "", ...args]: string[]): boolean {
  if (["curl", "rm", "wget"].includes(program)) return true;
  if (program !== "git") return false;
  const start = args.findIndex((word, index) => !word.startsWith("-") && args[index - 1] !== "-C");
  return args[start] === "push";
}

/** Every program that ran was foreseen, and without `||` every program that was foreseen ran. */
function agrees(analysis: ShellAnalysis, ran: string[][]): boolean {
  const foreseen = analysis.commands.filter(({ words, via }) => {
    const byShell = via.length === 0 || SHELLS.has(via.at(-1) ?? "");
    return !(byShell && BUILTINS.has(words[0] ?? ""));
  });
  const left = [...foreseen];
  for (const words of ran) {
    const index = left.findIndex((one) => {
      const exact = one.words.length === words.length || one.escapes;
      return exact && one.words.every((word, at) => (at === 0 ? word.endsWith(words[0] ?? "") : word === words[at]));
    });
    if (index === -1) return false;
    left.splice(index, 1);
  }
  const missingInput = analysis.redirections.some((one) => !one.write && one.target !== "README");
  return left.length === 0 || missingInput || /\|\|/.test(analysis.text);
}
