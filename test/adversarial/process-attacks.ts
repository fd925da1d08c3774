/** K: what goes on when troupe is gone. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type Attack, Findings } from "./attack.ts";
import { type Stage, write } from "./stage.ts";

export const processAttacks: readonly Attack[] = [
  { id: "K01", title: "hooks that outlive troupe", control: "weakened program", run: survivingHooks },
];

const WITHIN_MS = 5_000;

/** Neither the person's hook nor the project's may run on when troupe is killed in the middle of it. */
async function survivingHooks(stage: Stage): Promise<Findings> {
  const findings = new Findings();
  const at = (name: string): string => join(stage.workspace, name);
  // Closes its input and takes no hint, as a hostile or broken one would.
  const hook = (name: string): string =>
    JSON.stringify({
      version: 1,
      hooks: {
        sessionStart: [
          { bash: `exec <&-; trap '' TERM HUP; sleep 61 & echo $! $$ > ${at(name)}; wait`, timeoutSec: 60 },
        ],
      },
    });
  for (const [file, name] of [
    [join(stage.state, "hooks", "own.json"), "user"],
    [join(stage.workspace, ".troupe", "hooks", "own.json"), "project"],
  ] as const) {
    write(file, hook(name));
    const script = join(stage.folder, `script-${name}.json`);
    write(script, JSON.stringify({ steps: [], otherwise: { say: "done" } }));
    const words = `"${process.execPath}" "${join(stage.root, "bin", "troupe.js")}" -p go --model "faux:${script}" --trust-folder`;
    await stage.spawned(
      [
        "sh",
        "-c",
        `${words} & pid=$!; for i in $(seq 200); do [ -s ${at(name)} ] && break; sleep 0.05; done; kill -9 $pid`,
      ],
      {
        environment: {
          PATH: process.env.PATH ?? "/usr/bin:/bin",
          HOME: stage.home,
          TROUPE_HOME: stage.state,
          TROUPE_NO_DISCOVERY: "1",
          TROUPE_SANDBOX: "off",
        },
      },
    );
    const pids = existsSync(at(name)) ? readFileSync(at(name), "utf8").trim().split(" ").map(Number) : [];
    findings.expect(pids.length === 2, `the hook of the ${name} runs`);
    for (let waited = 0; waited < WITHIN_MS && pids.some(isAlive); waited += 100) await delay(100);
    findings.effect(pids.some(isAlive), `the hook of the ${name} is still there`);
    for (const pid of pids.filter(isAlive)) process.kill(pid, "SIGKILL");
    write(file, "{}");
  }
  return findings;
}

function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}
