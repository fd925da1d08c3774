import { spawn } from "node:child_process";
import { cpus } from "node:os";
import { expect, it } from "vitest";
import { findRepository } from "../../src/worktrees/worktree-git.ts";

/** It takes a machine that is busy with other things for git to be known to have ended before it was read. */
it.runIf(process.env.TROUPE_SLOW)(
  "the output of git is read to its end, however busy the machine is",
  async () => {
    const others = Array.from({ length: cpus().length * 4 }, () =>
      spawn("timeout", ["120", "sh", "-c", "while :; do :; done"], { stdio: "ignore" }),
    );
    try {
      for (let round = 0; round < 25; round++) {
        const found = await Promise.all(Array.from({ length: 20 }, () => findRepository(".")));
        expect(new Set(found.map(({ head, common }) => `${head} ${common}`)).size).toBe(1);
      }
    } finally {
      for (const other of others) other.kill();
    }
  },
  180_000,
);
