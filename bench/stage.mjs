import {
  closeSync,
  fdatasyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  realpathSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { arch, cpus, loadavg, platform, tmpdir, totalmem } from "node:os";
import { join } from "node:path";
import { now } from "./run-child.mjs";
import { quantile } from "./statistics.mjs";

/** A temporary folder with the files that the agents read, and room for state and scratch. */
export function makeStage() {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "troupe-bench-")));
  const stage = { root, workspace: join(root, "workspace"), home: join(root, "home"), scratch: join(root, "scratch") };
  for (const folder of [stage.workspace, stage.home, stage.scratch]) mkdirSync(folder);
  for (let index = 0; index < 100; index++) {
    const lines = `file ${index} of the bench\n${"a line of text in a small file\n".repeat(6)}`;
    writeFileSync(join(stage.workspace, `f${index}.txt`), lines);
  }
  return { ...stage, remove: () => rmSync(root, { recursive: true, force: true, maxRetries: 3 }) };
}

/** What the figures were measured on. A log is synced to disk in every turn, so the disk is part of it. */
export function describeMachine(stage) {
  const [first] = cpus();
  return {
    cores: cpus().length,
    processor: first?.model.trim() ?? "unknown",
    memoryGB: Math.round(totalmem() / 2 ** 30),
    node: process.version,
    system: `${platform()} ${arch()}`,
    load: Number(loadavg()[0].toFixed(2)),
    syncMs: Number(syncTime(stage).toFixed(2)),
  };
}

function syncTime({ scratch }) {
  const file = openSync(join(scratch, "sync"), "a");
  const block = Buffer.alloc(512, "x");
  const times = Array.from({ length: 30 }, () => {
    const from = now();
    writeSync(file, block);
    fdatasyncSync(file);
    return now() - from;
  });
  closeSync(file);
  return quantile(times, 0.5);
}
