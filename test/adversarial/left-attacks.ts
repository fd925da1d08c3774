/** D: what a command leaves in the workspace for programs of the user. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { linkPlace, plantedLinks, useLink } from "../shell/planted-links.ts";
import { type Attack, Findings } from "./attack.ts";
import { bash, type Stage, write } from "./stage.ts";

export const leftAttacks: readonly Attack[] = [
  { id: "D26", title: "links through which git would write elsewhere", run: writtenByGit },
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
