/** D: what a command leaves in the workspace for programs of the user. */
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { linkPlace, plantedLinks, useLink } from "../shell/planted-links.ts";
import { type Attack, Findings } from "./attack.ts";
import { bash, type Prompted, type Stage, write } from "./stage.ts";

export const leftAttacks: readonly Attack[] = [
  { id: "D26", title: "links through which git would write elsewhere", run: writtenByGit },
  { id: "D27", title: "second names for files that are hidden later", run: secondNames },
];

async function writtenByGit(stage: Stage): Promise<Findings> {
  const findings = new Findings();
  for (const [name, planted] of Object.entries(plantedLinks)) {
    const base = join(stage.folder, name.replaceAll(" ", "-"));
    mkdirSync(base);
    const place = linkPlace(base);
    write(join(place.planted.path, "link.sh"), `victim='${place.victim}'\n${planted.script}\n`);
    await stage.prompt({
      steps: [bash("sh link.sh", { initial_wait: 60 })],
      flags: ["--allow-all-tools"],
      environment: { TROUPE_SANDBOX: stage.guarded ? "required" : "off" },
      cwd: place.planted.path,
    });
    useLink(place, planted);
    for (const path of place.changed()) findings.effect(true, `git wrote ${path} through ${name}`);
  }
  return findings;
}

/** A command gives an empty .env file and a clean git configuration other names, and uses these later. */
async function secondNames(stage: Stage): Promise<Findings> {
  const findings = new Findings();
  const canary = `canary${process.pid}`;
  const play = (command: string): Promise<Prompted> =>
    stage.prompt({
      steps: [bash(command, { initial_wait: 60 })],
      flags: ["--allow-all-tools"],
      environment: { TROUPE_SANDBOX: stage.guarded ? "required" : "off" },
    });
  stage.files({
    "link.sh": "git init -q lib; ln lib/.git/config config-too; touch .env; ln .env plain\n",
    "use.sh": "printf '[core]\\n\\tfsmonitor = false\\n' >> config-too; cat plain; echo ENDED\n",
  });
  await play("sh link.sh");
  stage.files({ ".env": canary });
  const { results } = await play("sh use.sh");
  const output = results[0]?.result?.content ?? "";
  findings.effect(output.includes(canary), "the content of .env was read");
  findings.effect(readFileSync(join(stage.workspace, "lib/.git/config"), "utf8").includes("fsmonitor"), "git runs it");
  if (stage.guarded) findings.expect(output.includes("ENDED"), `the last command runs: ${output.slice(-200)}`);
  return findings;
}
