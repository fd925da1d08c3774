/** D20 to D25: ways out of the sandbox by links, races, forged records, planted repositories, hidden files and sockets. */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { startTicks } from "../../src/lib/node/process-identity.ts";
import { PROTECTED_FILES, PROTECTED_FOLDERS, PROTECTED_PARTS } from "../../src/lib/protected-names.ts";
import { PlantedWorkspace, plantingScript } from "../shell/planted-repositories.ts";
import { type Attack, Findings } from "./attack.ts";
import { bash, call, type Prompted, type Stage, write } from "./stage.ts";

export const escapeAttacks: readonly Attack[] = [
  { id: "D20", title: "links named like protected names", run: protectedLinks },
  { id: "D21", title: "a folder swapped for a link while a command starts", run: swap },
  { id: "D22", title: "forged records of detached commands", run: forgedRecords },
  { id: "D23", title: "nested repositories that run programs later", run: plantedRepositories },
  { id: "D23-kill", title: "the same, left by a program that is killed", run: killedWithPlanted },
  { id: "D24", title: ".env files uncovered by load, moves and modes", run: uncovered },
  { id: "D25", title: "sockets that lead past the network namespace", run: socketFamilies },
];

const ENDED = "PROBE ENDED";
const WITHIN_MS = 10_000;

interface Place {
  readonly cwd?: string;
  readonly flags?: readonly string[];
}

function play(stage: Stage, steps: readonly object[], { cwd, flags = [] }: Place = {}): Promise<Prompted> {
  return stage.prompt({
    steps,
    flags: ["--allow-all-tools", ...flags],
    environment: { TROUPE_SANDBOX: stage.guarded ? "required" : "off" },
    ...(cwd !== undefined && { cwd }),
  });
}

/** The output of each call. */
const outputs = ({ results }: Prompted): string[] =>
  results.map(({ result, error }) => result?.content ?? error?.message ?? "");

function expectEnded(stage: Stage, findings: Findings, run: Prompted): void {
  const last = outputs(run).at(-1) ?? run.stderr;
  if (stage.guarded) findings.expect(last.includes(ENDED), `the last probe runs: ${last.slice(-400)}`);
}

function makeCanary(stage: Stage): string {
  const canary = `canary${process.pid}${stage.folder.slice(-6)}`;
  write(join(stage.home, ".ssh", "id"), canary);
  write(join(stage.home, ".netrc"), canary);
  return canary;
}

/** Links to the home folder, to a hidden folder and to a folder outside, under every protected name. */
async function protectedLinks(stage: Stage): Promise<Findings> {
  const findings = new Findings();
  const canary = makeCanary(stage);
  const { home, outside } = stage;
  const all = [...PROTECTED_FOLDERS, ...PROTECTED_FILES, ...Object.keys(PROTECTED_PARTS), ".git"];
  for (const [index, target] of ["../home", "../home/.ssh", "../outside", "../home/.netrc"].entries()) {
    const cwd = join(stage.folder, `links-${index}`);
    mkdirSync(join(cwd, "below"), { recursive: true });
    // The program does not start where a folder that it reads is a file.
    const isFile = target.endsWith(".netrc");
    const names = all.filter((name) => !isFile || ![".troupe", ...Object.keys(PROTECTED_PARTS)].includes(name));
    for (const name of names) symlinkSync(target, join(cwd, name));
    for (const name of names) symlinkSync(join("..", target), join(cwd, "below", name));
    const each = [...names, ...names.map((name) => `below/${name}`)];
    write(
      join(cwd, "probe.sh"),
      `for name in ${each.join(" ")}; do
        cat $name $name/id $name/.ssh/id $name/.netrc
        for at in $name $name/.ssh; do [ -d $at/ ] && echo PWNED > $at/planted; done
      done
      cat ~/.ssh/id ~/.netrc; echo PWNED > ~/.ssh/planted; echo PWNED > ~/planted; echo PWNED > ${outside}/planted
      echo ${ENDED}`,
    );
    const run = await play(stage, [bash("sh probe.sh 2>/dev/null")], { cwd });
    findings.effect(run.said.includes(canary), `read by links to ${target}`);
    for (const folder of [home, join(home, ".ssh"), outside])
      findings.effect(existsSync(join(folder, "planted")), `written by links to ${target}: ${folder}`);
    expectEnded(stage, findings, run);
  }
  return findings;
}

const SWAPPER = `
import ctypes, os, time
libc = ctypes.CDLL(None)
os.makedirs("x", exist_ok=True); open("x/.env", "w").close(); os.symlink("../home", "y")
end = time.time() + 60
while time.time() < end:
  for _ in range(200): libc.renameat2(-100, b"x", -100, b"y", 2)
`;

/** A background command swaps a folder for a link to the home folder, while others start again and again. */
async function swap(stage: Stage): Promise<Findings> {
  const findings = new Findings();
  const canary = makeCanary(stage);
  write(join(stage.home, ".env"), "");
  stage.files({
    "swap.py": SWAPPER,
    "try.sh": "cat ~/.ssh/id; echo PWNED > ~/planted; true\n",
  });
  const tries = Array.from({ length: 24 }, () => bash("sh try.sh 2>/dev/null"));
  const background = bash("python3 swap.py", { mode: "async", shellId: "swap", initial_wait: 1 });
  const last = [call("stop_bash", { shellId: "swap" }), bash(`echo ${ENDED}`)];
  const run = await play(stage, [background, ...tries, ...last]);
  findings.effect(existsSync(join(stage.home, "planted")), "written into the home folder");
  findings.effect(run.said.includes(canary), "the canary was read");
  expectEnded(stage, findings, run);
  return findings;
}

const SESSION = "11111111-2222-4333-8444-555555555555";

/** Records that a command writes where the program looks for its own: as links, pipes, and with the pid of another. */
async function forgedRecords(stage: Stage): Promise<Findings> {
  const findings = new Findings();
  const canary = makeCanary(stage);
  const victim = spawn("sleep", ["300"], { stdio: "ignore" });
  const pid = victim.pid ?? 0;
  let isAlive = true;
  victim.once("exit", () => {
    isAlive = false;
  });
  const session = join(stage.state, "session-state", SESSION);
  const record = (shellId: string, of: number): string =>
    JSON.stringify({ shellId, command: "x", pid: of, started: startTicks(of) ?? "", mark: "m.0" });
  const secret = join(stage.home, ".ssh", "id");
  stage.files({
    "forge.sh": `
      for folder in ${join(session, "files")} ${join(session, "records")}; do
        mkdir -p $folder; cd $folder || continue
        for id in linked copied piped; do
          printf '%s' '${record("ID", pid)}' | sed s/ID/$id/ > shell-detached-$id-1.pid; echo 0 > shell-detached-$id-1.exit
        done
        ln -s ${secret} shell-detached-linked-1.log; cp ${secret} shell-detached-copied-1.log; mkfifo shell-detached-piped-1.log
        printf '%s' '${record("victim", pid)}' > shell-detached-victim-1.pid; : > shell-detached-victim-1.exit; : > shell-detached-victim-1.log
      done
      echo ${ENDED}`,
  });
  const reads = ["linked", "copied", "victim"].map((shellId) => call("read_bash", { shellId, delay: 1 }));
  const readPipe = call("read_bash", { shellId: "piped", delay: 1 });
  const stops = ["victim", "linked"].map((shellId) => call("stop_bash", { shellId }));
  const steps = [bash("sh forge.sh 2>/dev/null"), ...reads, ...stops, readPipe, bash(`echo ${ENDED}`)];
  const run = await play(stage, steps, { flags: ["--session-id", SESSION] });
  await delay(200);
  findings.effect(run.said.includes(canary), "a file outside was read through a record");
  findings.effect(!isAlive, "a process of the user was ended through a record");
  if (stage.guarded) findings.expect(run.code === 0, `the program goes on: ${run.said.slice(-300)}`);
  expectEnded(stage, findings, run);
  victim.kill("SIGKILL");
  return findings;
}

function planted(stage: Stage): PlantedWorkspace {
  const base = join(stage.folder, "planted");
  mkdirSync(base);
  const place = new PlantedWorkspace(base);
  write(join(place.path, "plant.sh"), `(${plantingScript(place.canaries)})\necho ${ENDED}\n`);
  return place;
}

/** A command plants them at once, another arms in a second step what was harmless after the first. */
async function plantedRepositories(stage: Stage): Promise<Findings> {
  const findings = new Findings();
  const place = planted(stage);
  const evil = `touch ${place.canaries}/second-step; false`;
  write(
    join(place.path, "first.sh"),
    "git init -q node_modules/later; git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),node_modules/later\n",
  );
  write(
    join(place.path, "second.sh"),
    `printf '[core]\\n\\tfsmonitor = "${evil}"\\n' >> node_modules/later/.git/config\necho ${ENDED}\n`,
  );
  const steps = ["plant.sh", "first.sh", "second.sh"].map((name) =>
    bash(`sh ${name} 2>/dev/null`, { initial_wait: 60 }),
  );
  const run = await play(stage, steps, { cwd: place.path });
  for (const name of new Set([...place.useAtTop(), ...(await place.use())])) findings.effect(true, `${name} ran`);
  expectEnded(stage, findings, run);
  return findings;
}

async function killedWithPlanted(stage: Stage): Promise<Findings> {
  const findings = new Findings();
  const place = planted(stage);
  const at = (name: string): string => join(place.path, name);
  mkdirSync(at("conf"));
  symlinkSync("conf", at(".vscode"));
  write(
    at("wait.sh"),
    `touch waiting; until [ -e go ]; do sleep 0.05; done; sh plant.sh
    rm .vscode; mkdir .vscode; echo PWNED > .vscode/tasks.json; touch done; sleep 100\n`,
  );
  const script = join(stage.folder, "killed.json");
  write(script, JSON.stringify({ steps: [bash("sh wait.sh", { initial_wait: 60 })], otherwise: { say: "done" } }));
  const args = [join(stage.root, "bin", "troupe.js"), "-p", "go", "--model", `faux:${script}`, "--allow-all-tools"];
  const host = spawn(process.execPath, args, {
    cwd: place.path,
    stdio: "ignore",
    env: {
      PATH: process.env.PATH ?? "/usr/bin:/bin",
      HOME: stage.home,
      TROUPE_HOME: stage.state,
      TROUPE_NO_DISCOVERY: "1",
      TROUPE_SANDBOX: stage.guarded ? "required" : "off",
    },
  });
  const isThere = (name: string) => () => existsSync(at(name));
  findings.expect(await until(isThere("waiting"), 30_000), "the command runs");
  // Stopped, so that it cannot tidy up before it is killed.
  host.kill("SIGSTOP");
  writeFileSync(at("go"), "");
  findings.expect(await until(isThere("done"), 60_000), "the command plants");
  host.kill("SIGKILL");
  const left = (): string[] =>
    [".gitmodules", ".envrc", ".mcp.json", ".troupe", ".idea", ".git/commondir"].filter((name) => existsSync(at(name)));
  const isTidy = (): boolean => left().length === 0 && !existsSync(at(".vscode/tasks.json"));
  if (stage.guarded) await until(isTidy, WITHIN_MS);
  const report = (): boolean => {
    const folder = join(stage.state, "sandbox");
    return existsSync(folder) && readdirSync(folder).some((name) => name.startsWith("report-"));
  };
  if (stage.guarded) findings.expect(await until(report, WITHIN_MS), "a report for the next start");
  findings.effect(existsSync(at(".vscode/tasks.json")), "a protected link was replaced");
  for (const name of await place.use()) findings.effect(true, `${name} ran`);
  if (stage.guarded) findings.expect(left().length === 0, `no placeholders are left: ${left().join(", ")}`);
  return findings;
}

async function until(holds: () => boolean, withinMs: number): Promise<boolean> {
  for (const end = performance.now() + withinMs; !holds(); await delay(50)) if (performance.now() > end) return false;
  return true;
}

/** First commands change modes and places, then others read, while the machine is busy. */
async function uncovered(stage: Stage): Promise<Findings> {
  const findings = new Findings();
  const canary = `canary${process.pid}uncovered`;
  for (let index = 0; index < 1500; index++)
    mkdirSync(join(stage.workspace, `f${index % 40}`, `g${index}`, "h"), { recursive: true });
  const secrets = ["f39/g1479/h/deep/.env", "app/config/.env", "closed/.env.local", ".env", "lib/inner/.env"];
  stage.files(Object.fromEntries(secrets.map((name) => [name, canary])));
  stage.files({
    "change.sh": `
      mkdir -p node_modules .git; mv app node_modules/app; mv app/config node_modules/config; mv lib .git/lib
      mv lib/inner node_modules/inner; mv lib other; chmod 000 closed f39/g1479/h/deep; chmod 311 lib
      ln .env hard; mv .env plain; mv .env .env.example; ln f39/g1479/h/deep/.env hard2`,
    "read.sh": `
      chmod -R u+rwX closed lib f39/g1479; cat ${secrets.join(" ")} hard hard2 plain .env.example
      cat node_modules/*/.env node_modules/*/*/.env .git/lib/inner/.env other/inner/.env; grep -rs ${canary} app lib other closed node_modules
      echo ${ENDED}`,
  });
  const busy = Array.from({ length: 6 }, () => spawn("sh", ["-c", "while :; do :; done"], { stdio: "ignore" }));
  try {
    const steps = ["change.sh", "read.sh", "read.sh"].map((name) =>
      bash(`sh ${name} 2>/dev/null`, { initial_wait: 60 }),
    );
    const run = await play(stage, steps);
    findings.effect(outputs(run).join("\n").includes(canary), "a .env file was read");
    expectEnded(stage, findings, run);
  } finally {
    for (const child of busy) child.kill("SIGKILL");
  }
  return findings;
}

const FAMILIES = `
use Errno;
for my $family (0 .. 63) {
  next if grep { $_ == $family } (0, 2, 10, 16);
  for my $type (1, 2, 3, 5) {
    if (socket(my $s, $family, $type, 0)) { print "MADE $family\\n"; last }
    # Where the filter does not answer, the kernel asks for a right first.
    if ($family == 17 && $!{EPERM}) { print "MADE 17\\n"; last }
  }
}
print "${ENDED}\\n";
`;

/** AF_VSOCK reaches the host of a virtual machine; other families reach devices and seldom used kernel code. */
async function socketFamilies(stage: Stage): Promise<Findings> {
  const findings = new Findings();
  stage.files({ "families.pl": FAMILIES });
  const run = await play(stage, [bash("perl families.pl")]);
  for (const [, family] of outputs(run)
    .join("\n")
    .matchAll(/MADE (\d+)/g))
    findings.effect(true, `socket of family ${family}`);
  expectEnded(stage, findings, run);
  return findings;
}
