/** J: repositories that name programs wherever git would run one. */
import { rmSync } from "node:fs";
import { tempFolder } from "../../src/testing/temp-folder.ts";
import { hostileRepository } from "../git/hostile-repository.ts";
import { type Attack, Findings } from "./attack.ts";
import { bundled } from "./bundled.ts";
import { call, type Stage } from "./stage.ts";

export const gitAttacks: readonly Attack[] = [
  { id: "J01", title: "programs that a repository names", run: namedPrograms },
];

const QUESTIONS = [
  ["status", "--porcelain=v2"],
  ["diff"],
  ["diff", "HEAD"],
  ["log", "-p", "-3"],
  ["show", "HEAD"],
  ["branch", "--show-current"],
  ["remote", "-v"],
  ["stash", "list"],
  ["ls-files", "-m"],
  ["cat-file", "-p", "HEAD:absent.txt"],
];
const PLAIN = [
  ["status"],
  ["diff"],
  ["diff", "--", "converted.cnv"],
  ["ls-remote", "ssh://example.invalid/x"],
  ["credential", "fill"],
  ["evil"],
];

const asking = `
import { runGit } from "./lib/node/git.ts";
const [cwd, ...questions] = process.argv.slice(2);
for (const question of questions) {
  const reply = await runGit(JSON.parse(question), { cwd });
  console.log(question, reply.code, reply.stdout.length);
}
`;

async function namedPrograms(stage: Stage): Promise<Findings> {
  const findings = new Findings();
  await using folder = await tempFolder();
  const repository = await hostileRepository(folder);
  await repository.ran();
  if (!stage.guarded) {
    for (const args of PLAIN) await repository.plain(args);
    for (const program of await repository.ran()) findings.effect(true, `${program} ran`);
    return findings;
  }
  const program = await bundled(stage, asking);
  for (const cwd of [repository.path, repository.bare]) {
    const questions = QUESTIONS.map((question) => JSON.stringify(question));
    const asked = await stage.spawned([process.execPath, program, cwd, ...questions], {
      environment: { PATH: process.env.PATH ?? "", HOME: stage.home },
    });
    findings.expect(
      cwd === repository.bare || / 0 [1-9]/.test(asked.stdout),
      `answers from git: ${asked.said.slice(-200)}`,
    );
  }
  for (const name of await repository.ran()) findings.effect(true, `${name} ran, by our own git`);
  await bySession(stage, repository.path);
  for (const name of await repository.ran()) findings.effect(true, `${name} ran, during a session`);
  rmSync(program, { force: true });
  return findings;
}

/** A session in such a folder: opening, reading, changing, undoing. */
async function bySession(stage: Stage, cwd: string): Promise<void> {
  const steps = [
    call("view", { path: "plain.txt" }),
    call("grep", { pattern: "one" }),
    call("glob", { pattern: "**/*" }),
    call("create", { path: "made.txt", file_text: "made\n" }),
    call("edit", { path: "plain.txt", old_str: "one", new_str: "two" }),
  ];
  await stage.prompt({ steps, flags: ["--allow-tool", "write"], cwd });
  for (const args of [["undo", "--list"], ["undo"], ["sessions", "list"], ["trust", "list"], ["trust", "--yes"]])
    await stage.troupe(args, { cwd });
}
